<?php

declare(strict_types=1);

namespace Keyward;

/**
 * Checks a license: the service decides when it is reachable, and a signed file during an outage (docs/api.md, C1 to C6).
 * Only the constructor throws, for invalid options.
 */
final class LicenseClient
{
    private const DAY_MS = 24 * 60 * 60 * 1000;
    private const MAX_LICENSES = 10;
    private const REFRESH_PAUSE_SECONDS = 60;
    private const GENERATED_KEY = '/^[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}$/D';
    private const OFFLINE_MESSAGES = [
        'NO_FILE' => 'The license could not be checked. Connect to the internet and try again.',
        'BAD_SIGNATURE' => 'The stored license file is damaged. Connect to the internet and try again.',
        'UNKNOWN_KEY' => 'This version of the app cannot read the stored license file. Connect to the internet and try again.',
        'WRONG_LICENSE' => 'The stored license file belongs to another license key. Connect to the internet and try again.',
        'WRONG_PRODUCT' => 'The stored license file belongs to another product. Connect to the internet and try again.',
        'WRONG_MACHINE' => 'The stored license file belongs to another machine. Connect to the internet and try again.',
        'FILE_EXPIRED' => 'The license has expired. Renew the license, connect to the internet and try again.',
        'REFRESH_NEEDED' => 'The license must be checked online again. Connect to the internet and try again.',
        'CLOCK_SET_BACK' => 'The clock of this machine is wrong. Set the correct date and time and try again.',
    ];
    private const MESSAGE_AFTER_REJECTION = 'The last online check rejected the license, or it was deactivated on this machine. '
        . 'Connect to the internet and try again.';

    /** @var array<string, string> */
    private readonly array $keys;
    private readonly string $licenseKey;
    private readonly ?string $productId;
    private readonly Transport $transport;
    private readonly Storage $state;
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
     * @param ?\Closure $isCancelled returns whether the current call shall end at once; called several times a second
     * @param bool $entitlements whether the results of valid checks contain the entitlements of the license
     */
    public function __construct(
        string $baseUrl,
        string $apiKey,
        array $publicKeys,
        string $licenseKey,
        string $storage,
        private readonly ?string $machineId = null,
        private readonly ?string $hostname = null,
        private readonly float $timeout = 5,
        bool $allowHttp = false,
        ?\Closure $now = null,
        ?string $productId = null,
        private readonly bool $requireSignature = false,
        private readonly bool $entitlements = false,
        ?\Closure $isCancelled = null,
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
        $this->productId = $productId === null ? null : strtolower($productId); // as in license files
        $this->state = new Storage($storage);
        $this->transport = new Transport($baseUrl, $apiKey, $timeout, $requireSignature ? $this->keys : [], $isCancelled);
        $this->now = $now ?? static fn (): float => microtime(true) * 1000;
    }

    /** Checks the license online, or with the stored file during an outage. */
    public function validate(): Result
    {
        return $this->check('/api/v2/license/validate', $this->body('license'), Transport::readVerdictV2(...));
    }

    /** Checks the license like validate() and sends the name of this machine. */
    public function activate(): Result
    {
        $body = $this->body('licenseKey') + ($this->hostname === null ? [] : ['hostname' => $this->hostname]);
        return $this->check('/api/v1/activate', $body, Transport::readVerdict(...));
    }

    /** Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service. */
    public function deactivate(): Result
    {
        $read = Transport::readDeactivation(...);
        [$result, $serviceMs] = $this->call(Transport::DEACTIVATE_PATH, $this->body('licenseKey'), $this->deadline(), $read);
        if ($result->code === 'DEACTIVATED') {
            $this->change(function (array &$state) use ($serviceMs): void {
                $state['latestSeenMs'] = $this->requireSignature ? $serviceMs : $state['latestSeenMs'];
                $this->reject($state, 'DEACTIVATED');
            });
        }
        return $result;
    }

    /**
     * Lists the machines that hold slots of the license, so that a person can choose which one to release. Requires the service. Returns LISTED,
     * NOT_ENABLED if the license does not let apps list its machines, NOT_FOUND, CONFIGURATION or UNREACHABLE.
     */
    public function machines(): Result
    {
        return $this->call(Transport::MACHINES_PATH, $this->body('licenseKey'), $this->deadline(), Transport::readMachines(...))[0];
    }

    /**
     * Releases the slot of another machine of the license. $ref is that of a listed machine. Returns the codes of deactivate(), or NOT_ENABLED
     * like machines().
     */
    public function release(string $ref): Result
    {
        $body = ['licenseKey' => $this->licenseKey, 'ref' => $ref];
        return $this->call(Transport::DEACTIVATE_PATH, $body, $this->deadline(), Transport::readDeactivation(...))[0];
    }

    /**
     * Fetches and stores a license file now. Returns REFRESHED, UNREACHABLE, CONFIGURATION, or the reason why the service issues no file.
     * BAD_FILE: the received file is for another license, product or machine, or no shipped key has signed it. NOT_STORED: the storage failed.
     * The stored file is kept then.
     */
    public function refreshFile(): Result
    {
        return $this->fetchFile($this->deadline());
    }

    /**
     * Stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now. Returns IMPORTED, or
     * NOT_IMPORTED with the reason of an offline refusal or NOT_STORED.
     */
    public function importFile(string $text): Result
    {
        $text = trim($text);
        $latestSeenMs = $this->state->read()['latestSeenMs'];
        [$outcome, $file] = $this->judge($text, ($this->now)(), $latestSeenMs);
        if ($file !== null && $this->store($text)) {
            return Result::stored('offline', 'IMPORTED', $file);
        }
        return new Result('offline', 'NOT_IMPORTED', reason: $file === null ? self::forApps($outcome) : 'NOT_STORED');
    }

    /**
     * Returns the code with which a person requests the file of this machine, for a machine without network access. The vendor turns the code
     * into a file for importFile(). Returns null without a machine id.
     */
    public function requestCode(): ?string
    {
        $hostname = $this->hostname === null ? [] : ['hostname' => $this->hostname];
        $request = ['licenseKey' => $this->licenseKey, 'machineId' => $this->machineId] + $hostname;
        return $this->machineId === null || $this->machineId === '' ? null : LicenseFile::requestCode($request);
    }

    /** Returns a generated key in upper case with hyphens. Returns any other text unchanged. */
    public static function normalizeLicenseKey(string $text): string
    {
        $trimmed = preg_replace('/^\s+|\s+$/u', '', $text) ?? $text;
        $key = strtoupper(preg_replace('/[\s\x{2010}-\x{2015}\x{2212}-]+/u', '-', $trimmed) ?? $text);
        return preg_match(self::GENERATED_KEY, $key) === 1 ? $key : $text;
    }

    /** @return array{string, ?LicenseFile} */
    private function judge(string $file, float $nowMs, float $latestSeenMs): array
    {
        return LicenseFile::judge($file, $this->keys, $this->licenseKey, $nowMs, $latestSeenMs, $this->productId, $this->machineId);
    }

    /** @return array<string, mixed> */
    private function body(string $keyField): array
    {
        $machine = $this->machineId === null || $this->machineId === '' ? [] : ['fingerprint' => $this->machineId];
        return [$keyField => $this->licenseKey] + $machine;
    }

    private function deadline(): float
    {
        return hrtime(true) / 1e9 + $this->timeout;
    }

    /** @param array<string, mixed> $body */
    private function check(string $path, array $body, \Closure $read): Result
    {
        $deadline = $this->deadline();
        $body += $this->entitlements ? ['include' => ['entitlements']] : [];
        $readAll = fn (int $status, string $text): ?Result => $read($status, $text, $this->entitlements);
        [$result, $serviceMs] = $this->call($path, $body, $deadline, $readAll);
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
            $this->refreshIfDue($result->expiresAt, $deadline);
        }
        return $result;
    }

    private function decideOffline(?string $detail): Result
    {
        $nowMs = ($this->now)();
        $state = $this->state->read();
        $stored = $state['licenses'][$this->licenseKey] ?? null;
        $rejectedAs = $this->rejectedAs ?? $stored['rejectedAs'] ?? null;
        [$outcome, $file] = $stored === null || $rejectedAs !== null
            ? ['NO_FILE', null]
            : $this->judge($stored['file'], $nowMs, $state['latestSeenMs']);
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
                entitlements: $this->entitlements ? $file->entitlements : null,
            );
        }
        $reason = self::forApps($outcome);
        $message = $rejectedAs === null ? self::OFFLINE_MESSAGES[$reason] : self::MESSAGE_AFTER_REJECTION;
        return new Result('offline', 'OFFLINE_REFUSED', reason: $reason, rejectedAs: $rejectedAs, message: $message, detail: $detail);
    }

    /** Fetches a new file if one is due, within the rest of the time budget. */
    private function refreshIfDue(?string $expiresAt, float $deadline): void
    {
        if (!$this->isDue($expiresAt) || hrtime(true) / 1e9 < $this->nextRefresh) {
            return;
        }
        $this->nextRefresh = hrtime(true) / 1e9 + self::REFRESH_PAUSE_SECONDS;
        $this->fetchFile($deadline);
    }

    private function fetchFile(float $deadline): Result
    {
        // The message of the result contains the text of the file.
        $read = static fn (int $status, string $text): ?Result => $status === 200
            ? new Result('online', 'RECEIVED', message: $text)
            : Transport::readRejection(LicenseFile::parseObject($text));
        [$received] = $this->call(Transport::FILE_PATH, $this->body('licenseKey'), $deadline, $read);
        if ($received->code !== 'RECEIVED') {
            return $received;
        }
        $owner = [$this->licenseKey, $this->productId, $this->machineId];
        [$outcome, $file] = LicenseFile::verify($received->message, $this->keys, ...$owner);
        if ($file === null) {
            return new Result('online', 'BAD_FILE', reason: self::forApps($outcome));
        }
        return $this->store($received->message) ? Result::stored('online', 'REFRESHED', $file) : new Result('online', 'NOT_STORED');
    }

    /** Stores a file and allows its use. Returns false if the write failed. */
    private function store(string $file): bool
    {
        return $this->change(function (array &$state) use ($file): void {
            $this->rejectedAs = null;
            unset($state['licenses'][$this->licenseKey]);
            $newest = [$this->licenseKey => ['licenseKey' => $this->licenseKey, 'file' => $file, 'rejectedAs' => null]];
            $state['licenses'] = array_slice($newest + $state['licenses'], 0, self::MAX_LICENSES, true);
        });
    }

    /** Returns the reason of an outcome, because apps handle malformed and wrongly signed files in the same way. */
    private static function forApps(string $outcome): string
    {
        return $outcome === 'MALFORMED' ? 'BAD_SIGNATURE' : $outcome;
    }

    /** Returns whether a new file is due: there is no good file, it is a day or half of its lifetime old, or its expiry differs. */
    private function isDue(?string $expiresAt): bool
    {
        $nowMs = ($this->now)();
        $state = $this->state->read();
        $text = $state['licenses'][$this->licenseKey]['file'] ?? '';
        [, $file] = $this->judge($text, $nowMs, $state['latestSeenMs']);
        if ($file === null || $file->expiresAt !== $expiresAt) {
            return true;
        }
        return $nowMs >= $file->issuedMs + min(self::DAY_MS, ($file->refreshAfterMs - $file->issuedMs) / 2);
    }

    /**
     * Calls an endpoint, and remembers the time of a signed response.
     *
     * @param array<string, mixed> $body
     * @return array{Result, ?float}
     */
    private function call(string $path, array $body, float $deadline, \Closure $read): array
    {
        $latestSignedMs = max($this->state->read()['latestSignedMs'], $this->latestSignedMs);
        [$result, $serviceMs] = $this->transport->call($path, $body, $deadline, $read, $latestSignedMs);
        if ($this->requireSignature && $path !== Transport::FILE_PATH) {
            $this->latestSignedMs = max($this->latestSignedMs, $serviceMs ?? 0.0);
        }
        return [$result, $serviceMs];
    }

    /** Records the code that ends the use of the file. Null allows it again. */
    private function reject(array &$state, ?string $code): void
    {
        $this->rejectedAs = $code;
        if (isset($state['licenses'][$this->licenseKey])) {
            $state['licenses'][$this->licenseKey]['rejectedAs'] = $code;
        }
    }

    /** Reads the state, applies the edit and writes the result. Returns false if the write failed. */
    private function change(\Closure $edit): bool
    {
        $state = $this->state->read();
        $edit($state);
        $state['latestSignedMs'] = max($state['latestSignedMs'], $this->latestSignedMs);
        $state['licenses'] = array_values($state['licenses']);
        return $this->state->write(json_encode($state, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES));
    }
}
