<?php

/** Runs the PHP client as a program for the contract suite (packages/client/contract-suite/README.md). */

declare(strict_types=1);

class_exists(Keyward\LicenseClient::class) || require __DIR__ . '/Keyward.php';

$client = null;
$cancelAt = INF;
while (($line = fgets(STDIN)) !== false) {
    $command = json_decode($line, true);
    $keys = array_column($command['publicKeys'] ?? [], 'publicKey', 'keyId');
    if ($command['command'] === 'open') {
        $ahead = $command['clockAheadMs'];
        try {
            $client = new Keyward\LicenseClient(
                baseUrl: $command['baseUrl'],
                apiKey: $command['apiKey'],
                publicKeys: $keys,
                licenseKey: $command['licenseKey'],
                storage: $command['storage'],
                machineId: $command['machineId'],
                hostname: $command['hostname'],
                timeout: $command['timeoutMs'] / 1000,
                now: static fn (): float => microtime(true) * 1000 + $ahead,
                productId: $command['productId'],
                requireSignature: $command['requireSignature'],
                entitlements: $command['entitlements'],
                isCancelled: static function () use (&$cancelAt): bool {
                    return microtime(true) >= $cancelAt;
                },
            );
            $reply = new stdClass();
        } catch (InvalidArgumentException $error) {
            $reply = ['error' => $error->getMessage()];
        }
    } elseif ($command['command'] === 'machineKey') {
        try {
            $reply = get_object_vars(Keyward\MachineKey::open($command['path']));
        } catch (RuntimeException $error) {
            $reply = ['error' => $error->getMessage()];
        }
    } elseif ($command['command'] === 'validateAndCancel') {
        $cancelAt = microtime(true) + $command['afterMs'] / 1000;
        $reply = get_object_vars($client->validate());
        $cancelAt = INF;
    } elseif ($command['command'] === 'judge') {
        $keys = array_map(Keyward\LicenseFile::readPublicKey(...), $keys);
        ['file' => $file, 'licenseKey' => $key, 'nowMs' => $now, 'latestSeenMs' => $latest] = $command;
        [$outcome] = Keyward\LicenseFile::judge($file, $keys, $key, $now, $latest, $command['productId'], $command['machineId']);
        $reply = ['outcome' => $outcome];
    } elseif ($command['command'] === 'requestCode') {
        $reply = ['code' => $client->requestCode()];
    } elseif ($command['command'] === 'verify') {
        [['keyId' => $keyId, 'publicKey' => $key]] = $command['publicKeys'];
        ['signature' => $signature, 'path' => $path, 'status' => $status, 'apiKey' => $apiKey] = $command;
        $answer = new Keyward\SignedAnswer($signature, $path, $status, $apiKey, $command['request'], $command['response']);
        [$outcome] = $answer->verify($keyId, Keyward\LicenseFile::readPublicKey($key), $command['latestSignedMs']);
        $reply = ['outcome' => $outcome];
    } else {
        $result = $client->{$command['command']}(...array_values(array_diff_key($command, ['command' => 0])));
        $reply = get_object_vars($result);
        $reply['entitlements'] = $result->entitlements === null ? null : (object) $result->entitlements;
        $reply += ['deactivated' => $result->code === 'DEACTIVATED', 'imported' => $result->code === 'IMPORTED'];
    }
    echo json_encode($reply), "\n";
}
