<?php

declare(strict_types=1);

namespace Keyward;

/** The outcome of a call. */
final class Result
{
    public function __construct(
        /** "online" if the service decided, "offline" if it was not reachable. */
        public readonly string $source,
        /** VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, or an outcome of one of the other calls. */
        public readonly string $code,
        /** ISO 8601 in UTC; null if the license never expires or the check is rejected. */
        public readonly ?string $expiresAt = null,
        /** The reason of CONFIGURATION, OFFLINE_REFUSED, BAD_FILE and NOT_IMPORTED. */
        public readonly ?string $reason = null,
        /** The code of the online rejection that ended the use of the file. */
        public readonly ?string $rejectedAs = null,
        /** A sentence for the user of the app, if the license is not valid. The text may change. */
        public readonly ?string $message = null,
        public readonly bool $valid = false,
        /** A description of an outage for the developer. */
        public readonly ?string $detail = null,
        /** The time from which the file is no longer good, as ISO 8601 in UTC. */
        public readonly ?string $refreshAfter = null,
        /** The end of the grace period, if the license has expired and is in it, as ISO 8601 in UTC. */
        public readonly ?string $graceEndsAt = null,
        /** @var ?array<string, true|int|string> the entitlements, if the license is valid and the option is set */
        public readonly ?array $entitlements = null,
        /** @var ?array{used: int, max: ?int} the used slots and their limit, with TOO_MANY_MACHINES of activate() and LISTED */
        public readonly ?array $machines = null,
        /** With LISTED: the number of slots that apps may release now. Null without a limit. */
        public readonly ?int $releasesLeft = null,
        /** @var list<Machine> with LISTED: at most 100 machines that hold slots */
        public readonly array $list = [],
    ) {
    }

    /** The outcome of a call that has stored a file. */
    public static function stored(string $source, string $code, LicenseFile $file): self
    {
        return new self($source, $code, expiresAt: $file->expiresAt, refreshAfter: $file->refreshAfter);
    }
}
