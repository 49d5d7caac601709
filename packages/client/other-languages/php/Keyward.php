<?php

declare(strict_types=1);

namespace Keyward;

require_once __DIR__ . '/LicenseFile.php';
require_once __DIR__ . '/SignedAnswer.php';

/** The outcome of a call. */
final class Result
{
    public function __construct(
        /** "online" if the service decided, "offline" if it was not reachable. */
        public readonly string $source,
        /** VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, DEACTIVATED, NOT_ACTIVE or UNREACHABLE. */
        public readonly string $code,
        /** ISO 8601 in UTC; null if the license never expires or the check is rejected. */
        public readonly ?string $expiresAt = null,
        /** The reason of CONFIGURATION and OFFLINE_REFUSED. */
        public readonly ?string $reason = null,
        /** The code of the online rejection that ended the use of the file. */
        public readonly ?string $rejectedAs = null,
        /** A sentence for the user of the app, if the license is not valid. The text may change. */
        public readonly ?string $message = null,
        public readonly bool $valid = false,
        /** A description of an outage for the developer. */
        public readonly ?string $detail = null,
        /** Offline, the time from which the file is no longer good, as ISO 8601 in UTC. */
        public readonly ?string $refreshAfter = null,
        /** The end of the grace period, if the license has expired and is in it, as ISO 8601 in UTC. */
        public readonly ?string $graceEndsAt = null,
    ) {
    }
}

/**
 * Checks a license: the service decides when it is reachable, and a signed file during an outage (docs/api.md, C1 to C6).
 * Only the constructor throws, for invalid options.
 */
final class LicenseClient
{
    private const FILE_PATH = '/api/v1/licenses/file';
    private const DAY_MS = 24 * 60 * 60 * 1000;
    private const MAX_ATTEMPTS = 3;
    private const MAX_BODY_BYTES = 64 * 1024;
    private const MAX_LICENSES = 10;
    private const REFRESH_PAUSE_SECONDS = 60;
    private const GENERATED_KEY = '/^[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}$/D';
    private const REJECTIONS = [
        'NOT_FOUND', 'BLACKLISTED', 'REVOKED', 'SUSPENDED', 'EXPIRED', 'FINGERPRINT_REQUIRED', 'TOO_MANY_MACHINES',
    ];

    private const OFFLINE_MESSAGES = [
        'NO_FILE' => 'The license could not be checked. Connect to the internet and try again.',
        'BAD_SIGNATURE' => 'The stored license file is damaged. Connect to the internet and try again.',
        'UNKNOWN_KEY' => 'This version of the app cannot read the stored license file. Connect to the internet and try again.',
        'WRONG_LICENSE' => 'The stored license file belongs to another license key. Connect to the internet and try again.',
        'WRONG_PRODUCT' => 'The stored license file belongs to another product. Connect to the internet and try again.',
        'FILE_EXPIRED' => 'The license has expired. Renew the license, connect to the internet and try again.',
        'REFRESH_NEEDED' => 'The license must be checked online again. Connect to the internet and try again.',
        'CLOCK_SET_BACK' => 'The clock of this machine is wrong. Set the correct date and time and try again.',
    ];
    private const MESSAGE_AFTER_REJECTION = 'The last online check rejected the license, or it was deactivated on this machine. '
        . 'Connect to the internet and try again.';
    private const UNREACHABLE_MESSAGE = 'The license service cannot be reached. Connect to the internet and try again.';
    // After this time, the resolver of the system has given up, so closing a transfer does not wait.
    private const ABANDONED_SECONDS = 120;

    /** @var list<array{float, \CurlMultiHandle, \CurlHandle}> the transfers that wait for a name, with their start */
    private static array $abandoned = [];

    /** @var array<string, string> */
    private readonly array $keys;
    private readonly string $licenseKey;
    private readonly \Closure $now;
    /** The rejection in this process, which may not have been written to the storage. */
    private ?string $rejectedAs = null;
    private float $nextRefresh = 0;
    /** The time of the latest signed response in this process, in milliseconds since 1970. */
    private float $latestSignedMs = 0;

    /**
     * @param array<string, string> $publicKeys the keys of GET /api/v1/public-keys by key id
     * @param string $storage the path of the file for the client's state
     * @param float $timeout the time budget of a call in seconds
     * @param bool $allowHttp whether http is allowed for other hosts than this machine
     * @param ?\Closure $now returns the device's time in milliseconds since 1970
     * @param ?string $productId the product id of the app; files of other products are rejected
     * @param bool $requireSignature whether a response that the service has not signed for exactly its request counts as an outage
     */
    public function __construct(
        private readonly string $baseUrl,
        private readonly string $apiKey,
        array $publicKeys,
        string $licenseKey,
        private readonly string $storage,
        private readonly ?string $machineId = null,
        private readonly ?string $hostname = null,
        private readonly float $timeout = 5,
        bool $allowHttp = false,
        ?\Closure $now = null,
        private readonly ?string $productId = null,
        private readonly bool $requireSignature = false,
    ) {
        ['scheme' => $scheme, 'host' => $host] = (parse_url($baseUrl) ?: []) + ['scheme' => '', 'host' => ''];
        $isLocal = preg_match('/^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/D', $host) === 1;
        if ($host === '' || ($scheme !== 'https' && $scheme !== 'http')) {
            throw new \InvalidArgumentException("baseUrl must be an https URL such as https://licenses.example.com; got \"$baseUrl\".");
        }
        if ($scheme === 'http' && !$isLocal && !$allowHttp) {
            throw new \InvalidArgumentException("baseUrl must use https, because responses over http can be forged; got \"$baseUrl\".");
        }
        if (preg_match('/^[\x21-\x7e]+$/D', $apiKey) !== 1) {
            throw new \InvalidArgumentException('apiKey must consist of printable ASCII characters without blanks.');
        }
        if ($licenseKey === '' || $publicKeys === []) {
            throw new \InvalidArgumentException('licenseKey and publicKeys are required.');
        }
        $this->keys = array_map(LicenseFile::readPublicKey(...), $publicKeys);
        if (in_array(null, $this->keys, true)) {
            throw new \InvalidArgumentException('Every text in publicKeys must be the base64 of an Ed25519 SubjectPublicKeyInfo.');
        }
        $this->licenseKey = self::normalizeLicenseKey($licenseKey);
        $this->now = $now ?? static fn (): float => microtime(true) * 1000;
    }

    /** Checks the license online, or with the stored file during an outage. */
    public function validate(): Result
    {
        return $this->check('/api/v2/license/validate', $this->body('license'), self::readVerdictV2(...));
    }

    /** Checks the license like validate() and sends the name of this machine. */
    public function activate(): Result
    {
        $body = $this->body('licenseKey') + ($this->hostname === null ? [] : ['hostname' => $this->hostname]);
        return $this->check('/api/v1/activate', $body, self::readVerdict(...));
    }

    /** Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service. */
    public function deactivate(): Result
    {
        $read = static function (int $status, string $text): ?Result {
            $deactivated = LicenseFile::parseObject($text)->deactivated ?? null;
            $code = $deactivated === true ? 'DEACTIVATED' : 'NOT_ACTIVE';
            return $status === 200 && is_bool($deactivated) ? new Result('online', $code) : null;
        };
        [$result, $serviceMs] = $this->call('/api/v1/deactivate', $this->body('licenseKey'), $this->deadline(), $read);
        if ($result->code === 'DEACTIVATED') {
            $this->change(function (array &$state) use ($serviceMs): void {
                $state['latestSeenMs'] = $this->requireSignature ? $serviceMs : $state['latestSeenMs'];
                $this->reject($state, 'DEACTIVATED');
            });
        }
        return $result;
    }

    /** Returns a generated key in upper case with hyphens. Returns any other text unchanged. */
    public static function normalizeLicenseKey(string $text): string
    {
        $trimmed = preg_replace('/^\s+|\s+$/u', '', $text) ?? $text;
        $key = strtoupper(preg_replace('/[\s\x{2010}-\x{2015}\x{2212}-]+/u', '-', $trimmed) ?? $text);
        return preg_match(self::GENERATED_KEY, $key) === 1 ? $key : $text;
    }

    /** @return array<string, string> */
    private function body(string $keyField): array
    {
        $machine = $this->machineId === null || $this->machineId === '' ? [] : ['fingerprint' => $this->machineId];
        return [$keyField => $this->licenseKey] + $machine;
    }

    private function deadline(): float
    {
        return hrtime(true) / 1e9 + $this->timeout;
    }

    /** @param array<string, string> $body */
    private function check(string $path, array $body, \Closure $read): Result
    {
        $deadline = $this->deadline();
        [$result, $serviceMs] = $this->call($path, $body, $deadline, $read);
        if ($result->code === 'UNREACHABLE') {
            return $this->decideOffline($result->detail);
        }
        if ($result->code === 'CONFIGURATION') {
            return $result;
        }
        $this->change(function (array &$state) use ($result, $serviceMs): void {
            // The service's clock corrects a device whose clock was ahead.
            $state['latestSeenMs'] = $serviceMs ?? $state['latestSeenMs'];
            $this->reject($state, $result->valid ? null : $result->code);
        });
        if ($result->valid) {
            $this->refreshFile($result->expiresAt, $deadline);
        }
        return $result;
    }

    private function decideOffline(?string $detail): Result
    {
        $nowMs = ($this->now)();
        $state = $this->read();
        $stored = $state['licenses'][$this->licenseKey] ?? null;
        $rejectedAs = $this->rejectedAs ?? $stored['rejectedAs'] ?? null;
        [$outcome, $file] = $stored === null || $rejectedAs !== null
            ? ['NO_FILE', null]
            : LicenseFile::judge($stored['file'], $this->keys, $this->licenseKey, $nowMs, $state['latestSeenMs'], $this->productId);
        $this->change(static function (array &$state) use ($nowMs): void {
            $state['latestSeenMs'] = max($state['latestSeenMs'], $nowMs);
        });
        if ($file !== null) {
            return new Result(
                'offline',
                'VALID',
                expiresAt: $file->expiresAt,
                valid: true,
                detail: $detail,
                refreshAfter: $file->refreshAfter,
                graceEndsAt: $file->isExpired($nowMs) ? $file->graceEndsAt : null,
            );
        }
        $reason = $outcome === 'MALFORMED' ? 'BAD_SIGNATURE' : $outcome;
        $message = $rejectedAs === null ? self::OFFLINE_MESSAGES[$reason] : self::MESSAGE_AFTER_REJECTION;
        return new Result('offline', 'OFFLINE_REFUSED', reason: $reason, rejectedAs: $rejectedAs, message: $message, detail: $detail);
    }

    /** Fetches a new file if one is due, within the rest of the time budget. After a failure, the stored file is kept. */
    private function refreshFile(?string $expiresAt, float $deadline): void
    {
        if (!$this->isDue($expiresAt) || hrtime(true) / 1e9 < $this->nextRefresh) {
            return;
        }
        $this->nextRefresh = hrtime(true) / 1e9 + self::REFRESH_PAUSE_SECONDS;
        $text = '';
        $read = static function (int $status, string $received) use (&$text): Result {
            $text = $status === 200 ? $received : '';
            return new Result('online', 'RECEIVED');
        };
        $this->call(self::FILE_PATH, $this->body('licenseKey'), $deadline, $read);
        [, $file] = LicenseFile::verify($text, $this->keys);
        if ($file?->licenseKey === $this->licenseKey) {
            $this->change(function (array &$state) use ($text): void {
                unset($state['licenses'][$this->licenseKey]);
                $newest = [$this->licenseKey => ['licenseKey' => $this->licenseKey, 'file' => $text, 'rejectedAs' => null]];
                $state['licenses'] = array_slice($newest + $state['licenses'], 0, self::MAX_LICENSES, true);
            });
        }
    }

    /** Returns whether a new file is due: there is no good file, it is a day or half of its lifetime old, or its expiry differs. */
    private function isDue(?string $expiresAt): bool
    {
        $nowMs = ($this->now)();
        $state = $this->read();
        $text = $state['licenses'][$this->licenseKey]['file'] ?? '';
        [, $file] = LicenseFile::judge($text, $this->keys, $this->licenseKey, $nowMs, $state['latestSeenMs'], $this->productId);
        if ($file === null || $file->expiresAt !== $expiresAt) {
            return true;
        }
        return $nowMs >= $file->issuedMs + min(self::DAY_MS, ($file->refreshAfterMs - $file->issuedMs) / 2);
    }

    /**
     * Returns the result of $read, UNREACHABLE or CONFIGURATION, with the service's time. Retries outages until the deadline. Each
     * attempt asks for a signature under the next public key, because the service does not sign under a withdrawn one.
     *
     * @param array<string, string> $body
     * @return array{Result, ?float}
     */
    private function call(string $path, array $body, float $deadline, \Closure $read): array
    {
        $keyIds = $this->requireSignature && $path !== self::FILE_PATH ? array_map(strval(...), array_keys($this->keys)) : [null];
        for ($attempt = 1; ; $attempt++) {
            $keyId = $keyIds[($attempt - 1) % count($keyIds)];
            $left = $deadline - hrtime(true) / 1e9;
            [$result, $serviceMs, $retryAfter] = $this->request($path, $body, $attempt === self::MAX_ATTEMPTS ? $left : $left / 2, $keyId, $read);
            $pause = $retryAfter + random_int(0, 200_000 * $attempt) / 1e6;
            $canRetry = $attempt < self::MAX_ATTEMPTS && $deadline - hrtime(true) / 1e9 - $pause >= $this->timeout / 8;
            if ($result->code !== 'UNREACHABLE' || !$canRetry) {
                return [$result, $serviceMs];
            }
            usleep((int) ($pause * 1e6));
        }
    }

    /**
     * @param array<string, string> $body
     * @return array{Result, ?float, int}
     */
    private function request(string $path, array $body, float $timeout, ?string $keyId, \Closure $read): array
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
        $problem = self::execute($curl, hrtime(true) / 1e9 + $timeout);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($problem !== null || $status === 0) {
            return self::outage($problem ?? 'The response is not HTTP.');
        }
        $signedMs = null;
        if ($keyId !== null && $status !== 408 && $status < 500) {
            $answer = new SignedAnswer($headers['keyward-signature'] ?? null, $path, $status, $this->apiKey, $sent, $text);
            $latestMs = max($this->read()['latestSignedMs'], $this->latestSignedMs);
            [$outcome, $signedMs] = $answer->verify($keyId, $this->keys[$keyId], $latestMs);
            if ($signedMs === null) {
                return self::outage("The response with status $status is not signed for this request: $outcome.");
            }
        }
        $result = $status === 200 || $status === 400 ? $read($status, $text) : null;
        if ($result !== null && $signedMs !== null) {
            $this->latestSignedMs = max($this->latestSignedMs, $signedMs);
            return [$result, $signedMs, 0];
        }
        if ($result !== null) {
            $date = strtotime($headers['date'] ?? '');
            return [$result, $date === false ? null : $date * 1000.0, 0];
        }
        if ($status <= 400 || $status === 408 || $status >= 500) {
            $seconds = $headers['retry-after'] ?? '';
            return self::outage("The service is unavailable or is not Keyward: status $status.", ctype_digit($seconds) ? (int) $seconds : 0);
        }
        $reason = match ($status) {
            401 => 'UNAUTHORIZED',
            403 => 'FORBIDDEN',
            404, 405 => 'WRONG_ADDRESS',
            413, 415, 422 => 'INVALID_REQUEST',
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
    private static function execute(\CurlHandle $curl, float $deadline): ?string
    {
        $now = hrtime(true) / 1e9;
        self::$abandoned = array_filter(self::$abandoned, static fn (array $each): bool => $each[0] > $now - self::ABANDONED_SECONDS);
        $multi = curl_multi_init();
        curl_multi_add_handle($multi, $curl);
        do {
            curl_multi_exec($multi, $running);
            $left = $deadline - hrtime(true) / 1e9;
            if ($running > 0 && $left > 0 && curl_multi_select($multi, $left) === -1) {
                usleep(1000);
            }
        } while ($running > 0 && $left > 0);
        if ($running > 0) {
            if (curl_getinfo($curl, CURLINFO_NAMELOOKUP_TIME_T) === 0) {
                self::$abandoned[] = [$now, $multi, $curl];
            }
            return 'No response arrived within the time budget.';
        }
        $code = curl_multi_info_read($multi)['result'];
        return $code === CURLE_OK ? null : curl_strerror($code);
    }

    private static function readVerdictV2(int $status, string $text): ?Result
    {
        $result = self::readVerdict($status, $text);
        $inBody = LicenseFile::parseObject($text)->status ?? $status;
        return $result?->valid === ($status === 200) && $inBody === $status ? $result : null;
    }

    /** Parses the fields that the verdicts of v1 and v2 have in common. */
    private static function readVerdict(int $status, string $text): ?Result
    {
        $body = LicenseFile::parseObject($text);
        $code = $body->code ?? null;
        $valid = $body->valid ?? null;
        if (!is_bool($valid) || !is_string($code) || preg_match('/^[A-Z][A-Z0-9_]{1,63}$/D', $code) !== 1 || $valid !== ($code === 'VALID')) {
            return null;
        }
        if (!$valid) {
            $known = in_array($code, self::REJECTIONS, true) ? $code : 'REJECTED';
            return new Result('online', $known, message: self::message($body, 'The check was rejected.'));
        }
        $isComplete = $status === 200 && property_exists($body, 'expiresAt');
        $isGood = $isComplete && ($body->expiresAt === null || LicenseFile::toMs($body->expiresAt) !== null);
        $grace = LicenseFile::toMs($body->graceEndsAt ?? null) === null ? null : $body->graceEndsAt;
        return $isGood ? new Result('online', 'VALID', expiresAt: $body->expiresAt, valid: true, graceEndsAt: $grace) : null;
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

    /** Records the code that ends the use of the file. Null allows it again. */
    private function reject(array &$state, ?string $code): void
    {
        $this->rejectedAs = $code;
        if (isset($state['licenses'][$this->licenseKey])) {
            $state['licenses'][$this->licenseKey]['rejectedAs'] = $code;
        }
    }

    /** Reads the state, applies the edit and writes the result. If the write fails, the check continues. */
    private function change(\Closure $edit): void
    {
        $state = $this->read();
        $edit($state);
        $state['latestSignedMs'] = max($state['latestSignedMs'], $this->latestSignedMs);
        $state['licenses'] = array_values($state['licenses']);
        $this->write(json_encode($state, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES));
    }

    /**
     * Returns the stored state. Returns an empty state when the storage fails or contains another text.
     *
     * @return array{version: int, latestSeenMs: float, latestSignedMs: float, licenses: array<string, array{licenseKey: string, file: string, rejectedAs: ?string}>}
     */
    private function read(): array
    {
        $stored = json_decode((string) @file_get_contents($this->storage), true);
        $time = static function (string $name) use ($stored): float {
            $ms = is_array($stored) ? $stored[$name] ?? null : null;
            return is_int($ms) || is_float($ms) ? (float) $ms : 0.0;
        };
        $licenses = is_array($stored) ? $stored['licenses'] ?? null : null;
        $times = ['latestSeenMs' => $time('latestSeenMs'), 'latestSignedMs' => $time('latestSignedMs')];
        $state = ['version' => 2] + $times + ['licenses' => []];
        foreach (is_array($licenses) ? $licenses : [] as $each) {
            $key = is_array($each) ? $each['licenseKey'] ?? null : null;
            if (is_string($key) && is_string($each['file'] ?? null)) {
                $rejectedAs = is_string($each['rejectedAs'] ?? null) ? $each['rejectedAs'] : null;
                $state['licenses'][$key] = ['licenseKey' => $key, 'file' => $each['file'], 'rejectedAs' => $rejectedAs];
            }
        }
        return $state;
    }

    /**
     * Replaces the file atomically: a crash leaves either the old or the new text. Only its owner can read it. On Windows, the
     * permissions of the folder apply instead.
     */
    private function write(string $text): void
    {
        $folder = dirname($this->storage);
        $draft = $this->storage . '.' . bin2hex(random_bytes(8)) . '.tmp';
        if (!is_dir($folder) && !@mkdir($folder, 0700, true) && !is_dir($folder)) {
            return;
        }
        $file = @fopen($draft, 'x');
        if ($file === false) {
            return;
        }
        $isWritten = chmod($draft, 0600) && fwrite($file, $text) === strlen($text) && fsync($file);
        fclose($file);
        if (!$isWritten || !@rename($draft, $this->storage)) {
            @unlink($draft);
        }
    }
}
