<?php

declare(strict_types=1);

namespace Keyward;

/** A machine that holds a slot of the license. */
final class Machine
{
    public function __construct(
        /** The name of the machine for release(). */
        public readonly string $ref,
        /** The host name that the machine sent with activate(), or null. */
        public readonly ?string $hostname,
        /** The approximate time of its last check, as ISO 8601 in UTC. */
        public readonly string $lastSeenAt,
        /** Whether this is the machine of the client. */
        public readonly bool $current,
    ) {
    }

    /** Returns a listed machine, or null for a value that the service never sends. */
    public static function read(mixed $value): ?self
    {
        [$ref, $hostname] = [$value->ref ?? null, $value->hostname ?? null];
        [$seen, $current] = [$value->lastSeenAt ?? null, $value->current ?? null];
        $isGood = is_string($ref) && is_string($hostname ?? '') && is_string($seen) && is_bool($current);
        return $isGood ? new self($ref, $hostname, $seen, $current) : null;
    }
}
