<?php

declare(strict_types=1);

namespace Keyward;

require_once __DIR__ . '/LicenseFile.php';

/** A response of the service and its request, which a signature binds together (docs/api.md, G1 to G5). */
final class SignedAnswer
{
    private const CLOCK_TOLERANCE_MS = 5 * 60 * 1000;
    private const MAX_LENGTH = 4 * 1024;
    private const STEP_BYTES = 33;
    private const TIME = '(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)';
    private const DELEGATION = '/^keyward-delegation-v1 ([\w-]+) ' . self::TIME . ' ' . self::TIME . ' ([\w-]{43})$/D';
    private const STATEMENT = '/^keyward-answers-v1 ' . self::TIME . ' ([\w-]{43})$/D';

    public function __construct(
        /** The header `keyward-signature`, or null without the header. */
        private readonly ?string $signature,
        /** The path in the API, such as /api/v2/license/validate. */
        private readonly string $path,
        private readonly int $status,
        private readonly string $apiKey,
        /** The body of the request. */
        private readonly string $request,
        /** The body of the response. */
        private readonly string $response,
    ) {
    }

    /**
     * Returns GOOD with the signed time in milliseconds since 1970, or the first problem.
     *
     * @param string $key the 32 bytes of the public key with the id $keyId
     * @param float $latestSignedMs the time of the latest signed response, or 0
     * @return array{string, ?float}
     */
    public function verify(string $keyId, string $key, float $latestSignedMs): array
    {
        if ($this->signature === null) {
            return ['UNSIGNED', null];
        }
        $isShort = strlen($this->signature) <= self::MAX_LENGTH;
        $parts = $isShort ? array_map(LicenseFile::decode(...), explode('.', $this->signature)) : [];
        if (count($parts) !== 5 || in_array(null, $parts, true)) {
            return ['MALFORMED', null];
        }
        [$delegation, $delegated, $statement, $signed, $steps] = $parts;
        $isDelegation = preg_match(self::DELEGATION, $delegation, $delegates) === 1 && $delegates[1] === $keyId;
        if (!$isDelegation || !self::isSigned($key, $delegation, $delegated)) {
            return ['BAD_DELEGATION', null];
        }
        $isStatement = preg_match(self::STATEMENT, $statement, $states) === 1;
        $validator = LicenseFile::decode($delegates[4]);
        if (!$isStatement || $validator === null || !self::isSigned($validator, $statement, $signed)) {
            return ['BAD_SIGNATURE', null];
        }
        // Times of this form have the order of their texts.
        if (strcmp($states[1], $delegates[2]) < 0 || strcmp($states[1], $delegates[3]) >= 0) {
            return ['DELEGATION_EXPIRED', null];
        }
        $root = self::climb($this->leaf(), $steps);
        if ($root === null || LicenseFile::encode($root) !== $states[2]) {
            return ['OTHER_ANSWER', null];
        }
        $signedMs = LicenseFile::toMs($states[1]);
        $isLate = $signedMs !== null && $signedMs >= $latestSignedMs - self::CLOCK_TOLERANCE_MS;
        return $isLate ? ['GOOD', $signedMs] : ['BACK_DATED', null];
    }

    private function leaf(): string
    {
        $hash = static fn (string $data): string => LicenseFile::encode(hash('sha256', $data, true));
        $hashes = implode(' ', array_map($hash, [$this->apiKey, $this->request, $this->response]));
        return hash('sha256', "keyward-answer-v1 $this->path $this->status $hashes", true);
    }

    /** Returns the root to which the steps lead from a leaf. Returns null for malformed steps. */
    private static function climb(string $node, string $steps): ?string
    {
        if (strlen($steps) % self::STEP_BYTES !== 0) {
            return null;
        }
        for ($at = 0; $at < strlen($steps); $at += self::STEP_BYTES) {
            $neighbour = substr($steps, $at + 1, self::STEP_BYTES - 1);
            $children = match ($steps[$at]) {
                "\x00" => $node . $neighbour,
                "\x01" => $neighbour . $node,
                default => null,
            };
            if ($children === null) {
                return null;
            }
            $node = hash('sha256', "\x01" . $children, true);
        }
        return $node;
    }

    private static function isSigned(string $key, string $data, string $signature): bool
    {
        $isComplete = strlen($key) === SODIUM_CRYPTO_SIGN_PUBLICKEYBYTES && strlen($signature) === SODIUM_CRYPTO_SIGN_BYTES;
        return $isComplete && sodium_crypto_sign_verify_detached($signature, $data, $key);
    }
}
