<?php

declare(strict_types=1);

namespace Keyward;

/** Sends requests and classifies their outcomes. Invariant: a call ends within its time budget. */
final class Transport
{
    public const FILE_PATH = '/api/v1/licenses/file';
    public const MACHINES_PATH = '/api/v1/machines';
    public const DEACTIVATE_PATH = '/api/v1/deactivate';
    // The statuses that an endpoint defines, other than those of checks. Any other status is an error.
    private const STATUSES = [self::FILE_PATH => [200, 409], self::DEACTIVATE_PATH => [200, 403], self::MACHINES_PATH => [200, 403, 409]];
    private const MAX_ATTEMPTS = 3;
    private const MAX_BODY_BYTES = 64 * 1024;
    private const REJECTIONS = [
        'NOT_FOUND', 'BLACKLISTED', 'REVOKED', 'SUSPENDED', 'EXPIRED', 'FINGERPRINT_REQUIRED', 'TOO_MANY_MACHINES',
        'MACHINE_NOT_ACTIVE', 'NOT_STARTED', 'NOT_ENABLED', // checks are not rejected with these three
    ];
    private const UNREACHABLE_MESSAGE = 'The license service cannot be reached. Connect to the internet and try again.';
    private const CANCEL_SECONDS = 0.1;
    // After this time, the resolver of the system has given up, so closing a transfer does not wait.
    private const ABANDONED_SECONDS = 120;

    /** @var list<array{float, \CurlMultiHandle, \CurlHandle}> the transfers that wait for a name, with their start */
    private static array $abandoned = [];

    /** @param array<string, string> $keys the keys with which responses are verified; none if no signature is required */
    public function __construct(
        private readonly string $baseUrl,
        private readonly string $apiKey,
        private readonly float $timeout,
        private readonly array $keys,
        private readonly ?\Closure $isCancelled,
    ) {
    }

    /**
     * Returns the result of $read, UNREACHABLE or CONFIGURATION, with the time of the response: the signed time if a signature is required,
     * otherwise that of `Date`. Retries outages until the deadline. Each attempt asks for a signature under the next public key, because the
     * service does not sign under a withdrawn one.
     *
     * @param array<string, mixed> $body
     * @return array{Result, ?float}
     */
    public function call(string $path, array $body, float $deadline, \Closure $read, float $latestSignedMs): array
    {
        $keyIds = $this->keys === [] || in_array($path, [self::FILE_PATH, self::MACHINES_PATH], true) ? [null] : array_map(strval(...), array_keys($this->keys));
        for ($attempt = 1; ; $attempt++) {
            $keyId = $keyIds[($attempt - 1) % count($keyIds)];
            $left = $deadline - hrtime(true) / 1e9;
            $budget = $attempt === self::MAX_ATTEMPTS ? $left : $left / 2;
            [$result, $serviceMs, $retryAfter] = $this->request($path, $body, $budget, $keyId, $read, $latestSignedMs);
            $pause = $retryAfter + random_int(0, 200_000 * $attempt) / 1e6;
            $canRetry = !$this->isCancelled() && $attempt < self::MAX_ATTEMPTS && $deadline - hrtime(true) / 1e9 - $pause >= $this->timeout / 8;
            if ($result->code !== 'UNREACHABLE' || !$canRetry) {
                return [$result, $serviceMs];
            }
            usleep((int) ($pause * 1e6));
        }
    }

    /**
     * @param array<string, mixed> $body
     * @return array{Result, ?float, int}
     */
    private function request(string $path, array $body, float $timeout, ?string $keyId, \Closure $read, float $latestSignedMs): array
    {
        $signature = $keyId === null ? [] : ['nonce' => LicenseFile::encode(random_bytes(16)), 'kid' => $keyId];
        $sent = json_encode($body + $signature, JSON_INVALID_UTF8_SUBSTITUTE);
        $text = '';
        $headers = [];
        $curl = curl_init(rtrim($this->baseUrl, '/') . $path);
        curl_setopt_array($curl, [
            CURLOPT_POSTFIELDS => $sent,
            CURLOPT_HTTPHEADER => ["Authorization: Bearer $this->apiKey", 'Content-Type: application/json', 'Expect:'],
            // The service never redirects, and following a redirect would send the API key to another host.
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HEADERFUNCTION => static function ($_, string $line) use (&$headers): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $headers[strtolower(trim($name))] = trim($value);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($_, string $part) use (&$text): int {
                $text .= $part;
                return strlen($text) > self::MAX_BODY_BYTES ? 0 : strlen($part);
            },
        ]);
        if (defined('CURLOPT_QUICK_EXIT')) { // since PHP 8.3; closing the transfer does not wait for the resolver of the system
            curl_setopt($curl, constant('CURLOPT_QUICK_EXIT'), true);
        }
        $problem = $this->execute($curl, hrtime(true) / 1e9 + $timeout);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($problem !== null || $status === 0) {
            return self::outage($problem ?? 'The response is not HTTP.');
        }
        $signedMs = null;
        if ($keyId !== null && $status !== 408 && $status < 500) {
            $answer = new SignedAnswer($headers['keyward-signature'] ?? null, $path, $status, $this->apiKey, $sent, $text);
            [$outcome, $signedMs] = $answer->verify($keyId, $this->keys[$keyId], $latestSignedMs);
            if ($signedMs === null) {
                return self::outage("The response with status $status is not signed for this request: $outcome.");
            }
        }
        $isDefined = in_array($status, self::STATUSES[$path] ?? [200, 400], true);
        $result = $isDefined ? $read($status, $text) : null;
        if ($result !== null && $signedMs !== null) {
            return [$result, $signedMs, 0];
        }
        if ($result !== null) {
            $date = strtotime($headers['date'] ?? '');
            return [$result, $date === false ? null : $date * 1000.0, 0];
        }
        if ($status < 400 || $status === 408 || $status >= 500 || $isDefined) {
            $seconds = $headers['retry-after'] ?? '';
            return self::outage("The service is unavailable or is not Keyward: status $status.", ctype_digit($seconds) ? (int) $seconds : 0);
        }
        $reason = match ($status) {
            401 => 'UNAUTHORIZED',
            403 => 'FORBIDDEN',
            404, 405 => 'WRONG_ADDRESS',
            400, 413, 415, 422 => 'INVALID_REQUEST',
            429 => 'RATE_LIMITED',
            default => 'UNEXPECTED_STATUS',
        };
        $message = self::message(LicenseFile::parseObject($text), "The service responded with status $status.");
        return [new Result('online', 'CONFIGURATION', reason: $reason, message: $message), null, 0];
    }

    /**
     * Executes a transfer until the deadline. Returns null, or a description of the failure. A timeout of libcurl waits until the
     * resolver of the system gives up, and so does closing a handle. A transfer whose name is not resolved at the deadline is
     * therefore kept for later.
     */
    private function execute(\CurlHandle $curl, float $deadline): ?string
    {
        $now = hrtime(true) / 1e9;
        self::$abandoned = array_filter(self::$abandoned, static fn (array $each): bool => $each[0] > $now - self::ABANDONED_SECONDS);
        $multi = curl_multi_init();
        curl_multi_add_handle($multi, $curl);
        do {
            curl_multi_exec($multi, $running);
            $left = $deadline - hrtime(true) / 1e9;
            $pause = $this->isCancelled === null ? $left : min($left, self::CANCEL_SECONDS);
            if ($running > 0 && $left > 0 && curl_multi_select($multi, $pause) === -1) {
                usleep(1000);
            }
        } while ($running > 0 && $left > 0 && !$this->isCancelled());
        if ($running > 0) {
            if (curl_getinfo($curl, CURLINFO_NAMELOOKUP_TIME_T) === 0) {
                self::$abandoned[] = [$now, $multi, $curl];
            }
            return 'No response arrived within the time budget.';
        }
        $code = curl_multi_info_read($multi)['result'];
        return $code === CURLE_OK ? null : curl_strerror($code);
    }

    private function isCancelled(): bool
    {
        return $this->isCancelled !== null && ($this->isCancelled)();
    }

    public static function readVerdictV2(int $status, string $text, bool $hasEntitlements): ?Result
    {
        $result = self::readVerdict($status, $text, $hasEntitlements);
        $inBody = LicenseFile::parseObject($text)->status ?? $status;
        return $result?->valid === ($status === 200) && $inBody === $status ? $result : null;
    }

    /** Parses the fields that the verdicts of v1 and v2 have in common. */
    public static function readVerdict(int $status, string $text, bool $hasEntitlements): ?Result
    {
        $body = LicenseFile::parseObject($text);
        $valid = $body->valid ?? null;
        if (!is_bool($valid) || $valid !== (($body->code ?? null) === 'VALID')) {
            return null;
        }
        if (!$valid) {
            return self::readRejection($body);
        }
        $unlocked = $hasEntitlements ? LicenseFile::readEntitlements($body->entitlements ?? new \stdClass()) : null;
        $isComplete = $status === 200 && property_exists($body, 'expiresAt');
        $isGood = $isComplete && ($body->expiresAt === null || LicenseFile::toMs($body->expiresAt) !== null);
        $grace = LicenseFile::toMs($body->graceEndsAt ?? null) === null ? null : $body->graceEndsAt;
        if (!$isGood || ($hasEntitlements && $unlocked === null)) {
            return null;
        }
        return new Result('online', 'VALID', expiresAt: $body->expiresAt, valid: true, graceEndsAt: $grace, entitlements: $unlocked);
    }

    /** Parses the code, the message and the used slots of a rejection. */
    public static function readRejection(?\stdClass $body): ?Result
    {
        $code = $body->code ?? null;
        if (!is_string($code) || preg_match('/^[A-Z][A-Z0-9_]{1,63}$/D', $code) !== 1) {
            return null;
        }
        $counts = ['used' => $body->machines->used ?? null, 'max' => $body->machines->max ?? null];
        return new Result(
            'online',
            in_array($code, self::REJECTIONS, true) ? $code : 'REJECTED',
            message: self::message($body, 'The check was rejected.'),
            machines: is_int($counts['used']) && is_int($counts['max']) ? $counts : null,
        );
    }

    public static function readDeactivation(int $status, string $text): ?Result
    {
        $body = LicenseFile::parseObject($text);
        if ($status !== 200) {
            return ($body->code ?? null) === 'NOT_ENABLED' ? self::readRejection($body) : null;
        }
        $deactivated = $body->deactivated ?? null;
        $code = $deactivated === true ? 'DEACTIVATED' : 'NOT_ACTIVE';
        return is_bool($deactivated) ? new Result('online', $code) : null;
    }

    /** Parses the machines of a license, or the reason why the service lists none. */
    public static function readMachines(int $status, string $text): ?Result
    {
        $body = LicenseFile::parseObject($text);
        if ($status !== 200) {
            return self::readRejection($body);
        }
        [$max, $left, $list] = [$body->max ?? null, $body->releasesLeft ?? null, $body->machines ?? null];
        $areCounts = is_int($body->used ?? null) && is_int($max ?? 0) && is_int($left ?? 0);
        $machines = is_array($list) ? array_map(Machine::read(...), $list) : [null];
        if (!$areCounts || in_array(null, $machines, true)) {
            return null;
        }
        return new Result('online', 'LISTED', machines: ['used' => $body->used, 'max' => $max], releasesLeft: $left, list: $machines);
    }

    /** Returns the message of a response: `message` on v2, `detail` elsewhere. Returns $otherwise if the response has no text. */
    private static function message(?\stdClass $body, string $otherwise): string
    {
        foreach ([$body->message ?? null, $body->detail ?? null] as $text) {
            if (is_string($text) && $text !== '') {
                return $text;
            }
        }
        return $otherwise;
    }

    /** @return array{Result, null, int} the result of an outage, and the requested pause before a retry in seconds */
    private static function outage(string $detail, int $retryAfter = 0): array
    {
        return [new Result('offline', 'UNREACHABLE', message: self::UNREACHABLE_MESSAGE, detail: $detail), null, $retryAfter];
    }
}
