<?php

declare(strict_types=1);

namespace Keyward;

/** Verifies license files: Ed25519 signatures over JSON (docs/api.md, F1 to F9). Uses neither a clock nor a network. */
final class LicenseFile
{
    private const CLOCK_TOLERANCE_MS = 5 * 60 * 1000;
    private const MAX_LENGTH = 16 * 1024;
    // The DER bytes that precede the key in SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING { 32 bytes } }.
    private const SPKI_PREFIX = "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

    private function __construct(
        public readonly string $licenseKey,
        public readonly ?string $productId,
        public readonly ?string $machineId,
        public readonly string $kid,
        public readonly ?string $expiresAt,
        public readonly float $issuedMs,
        public readonly float $refreshAfterMs,
        public readonly string $refreshAfter,
        public readonly ?string $graceEndsAt,
        /** @var array<string, true|int|string> */
        public readonly array $entitlements,
    ) {
    }

    /**
     * Returns GOOD with the file, or the first problem of the file. Times are milliseconds since 1970.
     *
     * @param array<string, string> $keys the 32 bytes of each public key by its id
     * @param ?string $productId the product id of the app; null accepts files of all products
     * @param ?string $machineId the machine id of the app; null rejects files for one machine
     * @return array{string, ?LicenseFile}
     */
    public static function judge(
        string $text,
        array $keys,
        string $licenseKey,
        float $nowMs,
        float $latestSeenMs,
        ?string $productId = null,
        ?string $machineId = null,
    ): array {
        [$outcome, $file] = self::verify($text, $keys, $licenseKey, $productId, $machineId);
        if ($file === null) {
            return [$outcome, null];
        }
        $passedMs = max($file->issuedMs, $latestSeenMs);
        $problem = match (true) {
            $nowMs < $passedMs - self::CLOCK_TOLERANCE_MS => 'CLOCK_SET_BACK',
            self::hasPassed($file->graceEndsAt ?? $file->expiresAt, $nowMs) => 'FILE_EXPIRED',
            $file->refreshAfterMs <= $nowMs => 'REFRESH_NEEDED',
            default => null,
        };
        return $problem === null ? ['GOOD', $file] : [$problem, null];
    }

    /**
     * Verifies the form, the signature, the license, the product and the machine of a file, independent of the time.
     *
     * @param array<string, string> $keys the 32 bytes of each public key by its id
     * @return array{string, ?LicenseFile}
     */
    public static function verify(string $text, array $keys, string $licenseKey, ?string $productId, ?string $machineId): array
    {
        $parts = strlen($text) > self::MAX_LENGTH ? [] : array_map(self::decode(...), explode('.', $text));
        if (count($parts) !== 2 || $parts[0] === null || strlen($parts[1] ?? '') !== SODIUM_CRYPTO_SIGN_BYTES) {
            return ['MALFORMED', null];
        }
        $file = self::parse($parts[0]);
        if ($file === null) {
            return ['MALFORMED', null];
        }
        if (!isset($keys[$file->kid])) {
            return ['UNKNOWN_KEY', null];
        }
        $isSigned = sodium_crypto_sign_verify_detached($parts[1], $parts[0], $keys[$file->kid]);
        $problem = match (true) {
            !$isSigned => 'BAD_SIGNATURE',
            $file->licenseKey !== $licenseKey => 'WRONG_LICENSE',
            $productId !== null && $file->productId !== $productId => 'WRONG_PRODUCT',
            $file->machineId !== null && $file->machineId !== $machineId => 'WRONG_MACHINE',
            default => null,
        };
        return $problem === null ? ['GOOD', $file] : [$problem, null];
    }

    /** Reads the standard base64 of an X.509 SubjectPublicKeyInfo. Returns the 32 bytes of the key, or null for any other text. */
    public static function readPublicKey(string $text): ?string
    {
        $spki = (string) base64_decode($text, true);
        $isKey = base64_encode($spki) === $text && strlen($spki) === strlen(self::SPKI_PREFIX) + 32;
        return $isKey && str_starts_with($spki, self::SPKI_PREFIX) ? substr($spki, strlen(self::SPKI_PREFIX)) : null;
    }

    /** Returns the milliseconds since 1970 for text such as 2030-01-01T00:00:00.000Z. Returns null for any other value. */
    public static function toMs(mixed $value): ?float
    {
        $time = is_string($value) ? \DateTimeImmutable::createFromFormat('Y-m-d\TH:i:s.v\Z', $value, new \DateTimeZone('UTC')) : false;
        return $time !== false && $time->format('Y-m-d\TH:i:s.v\Z') === $value ? (float) $time->format('Uv') : null;
    }

    /** Parses a JSON object. Returns null for any other text. */
    public static function parseObject(string $text): ?\stdClass
    {
        $value = json_decode($text);
        return $value instanceof \stdClass ? $value : null;
    }

    /** Returns whether the license has expired. It may be in its grace period. */
    public function isExpired(float $nowMs): bool
    {
        return self::hasPassed($this->expiresAt, $nowMs);
    }

    private static function hasPassed(?string $time, float $nowMs): bool
    {
        return $time !== null && self::toMs($time) <= $nowMs;
    }

    private static function parse(string $bytes): ?self
    {
        $payload = self::parseObject($bytes);
        $policy = $payload->policy ?? null;
        if (!$policy instanceof \stdClass || !property_exists($policy, 'maxMachines') || !property_exists($policy, 'expiresAt')) {
            return null;
        }
        $machine = property_exists($payload, 'machineId') ? ['machineId'] : [];
        foreach (['licenseKey', 'licenseId', 'customerEmail', 'kid', ...$machine] as $name) {
            if (!is_string($payload->$name ?? null) || $payload->$name === '') {
                return null;
            }
        }
        ['maxMachines' => $limit, 'expiresAt' => $expiresAt] = (array) $policy;
        $issuedMs = self::toMs($payload->issuedAt ?? null);
        $refreshAfterMs = self::toMs($payload->refreshAfter ?? null);
        $isGood = $issuedMs !== null
            && $refreshAfterMs !== null
            && in_array($policy->type ?? null, ['PERPETUAL', 'SUBSCRIPTION', 'TRIAL'], true)
            && ($limit === null || (is_int($limit) && $limit >= 1))
            && ($expiresAt === null || self::toMs($expiresAt) !== null)
            && ($policy->type === 'PERPETUAL') === ($expiresAt === null);
        $productId = is_string($payload->productId ?? null) ? $payload->productId : null;
        if (!$isGood) {
            return null;
        }
        $grace = self::toMs($policy->graceEndsAt ?? null) === null ? null : $policy->graceEndsAt;
        $refreshAfter = $payload->refreshAfter;
        $granted = self::readEntitlements($payload->entitlements ?? null) ?? [];
        $owner = [$payload->licenseKey, $productId, $payload->machineId ?? null, $payload->kid];
        return new self(...$owner, ...[$expiresAt, $issuedMs, $refreshAfterMs, $refreshAfter, $grace, $granted]);
    }

    /**
     * Returns parsed entitlements without those that are false, or null unless each is a boolean, an integer or a text.
     *
     * @return ?array<string, true|int|string>
     */
    public static function readEntitlements(mixed $value): ?array
    {
        $given = $value instanceof \stdClass ? (array) $value : [null];
        $isGood = static fn (mixed $each): bool => is_bool($each) || is_int($each) || is_string($each);
        $isUnlocked = static fn (mixed $each): bool => $each !== false;
        return array_filter($given, $isGood) === $given ? array_filter($given, $isUnlocked) : null;
    }

    /**
     * Returns the code of a request for the file of a machine (F9).
     *
     * @param array<string, string> $request
     */
    public static function requestCode(array $request): string
    {
        $body = 'KWR1.' . self::encode(json_encode($request, JSON_INVALID_UTF8_SUBSTITUTE));
        return "$body." . substr(self::encode(hash('sha256', $body, true)), 0, 8);
    }

    /** Decodes base64url without padding. Returns null unless the text is the canonical encoding. */
    public static function decode(string $text): ?string
    {
        $bytes = (string) base64_decode(strtr($text, '-_', '+/'), true);
        return self::encode($bytes) === $text ? $bytes : null;
    }

    /** Encodes bytes as base64url without padding. */
    public static function encode(string $bytes): string
    {
        return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
    }
}
