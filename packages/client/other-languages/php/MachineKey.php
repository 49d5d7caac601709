<?php

declare(strict_types=1);

namespace Keyward;

/** A machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file. */
final class MachineKey
{
    // The DER bytes that precede the seed in a PKCS #8 key.
    private const PREFIX = "\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

    private function __construct(
        /** The id for the option machineId: `mk1_` and the SHA-256 of the public key in base64url. */
        public readonly string $machineId,
        /** Whether the call has created the key. */
        public readonly bool $isNew,
        /**
         * Whether the key is lost when the container is replaced or the machine restarts, because its folder is in a layer of a container
         * or in memory. Always false on systems other than Linux.
         */
        public readonly bool $isEphemeral,
    ) {
    }

    /**
     * Returns the key of this machine from a file, and creates it if the file is missing. Only the owner can read the file. Processes that
     * start at the same time get the same key. Throws a RuntimeException when the file cannot be created, or does not contain an Ed25519 key.
     */
    public static function open(string $path): self
    {
        $folder = dirname($path);
        $isNew = !is_file($path) && self::create($path);
        $lines = explode("\n", trim((string) @file_get_contents($path)));
        $der = (string) base64_decode(implode('', array_slice($lines, 1, -1)), true);
        $isKey = $lines[0] === '-----BEGIN PRIVATE KEY-----' && strlen($der) >= strlen(self::PREFIX) + SODIUM_CRYPTO_SIGN_SEEDBYTES;
        if (!$isKey || !str_starts_with($der, self::PREFIX)) {
            throw new \RuntimeException(
                "The file $path does not contain a machine key. Delete it to create a new one, which needs another slot.",
            );
        }
        $pair = sodium_crypto_sign_seed_keypair(substr($der, strlen(self::PREFIX), SODIUM_CRYPTO_SIGN_SEEDBYTES));
        $id = 'mk1_' . LicenseFile::encode(hash('sha256', sodium_crypto_sign_publickey($pair), true));
        return new self($id, $isNew, self::isEphemeral((string) realpath($folder)));
    }

    /** Creates the file, complete and flushed to the disk. Returns false if another process has created it meanwhile. */
    private static function create(string $path): bool
    {
        $der = self::PREFIX . random_bytes(SODIUM_CRYPTO_SIGN_SEEDBYTES);
        $draft = Storage::writeDraft($path, "-----BEGIN PRIVATE KEY-----\n" . base64_encode($der) . "\n-----END PRIVATE KEY-----\n");
        // Unlike a rename, a link never replaces the key of another process.
        $isCreated = $draft !== null && @link($draft, $path);
        if ($draft !== null) {
            @unlink($draft);
        }
        if (!$isCreated && !is_file($path)) {
            throw new \RuntimeException("The machine key $path could not be created.");
        }
        return $isCreated;
    }

    private static function isEphemeral(string $folder): bool
    {
        [$deepest, $type] = ['', ''];
        foreach (@file('/proc/self/mountinfo') ?: [] as $line) {
            [$before, $after] = explode(' - ', $line) + [1 => ''];
            $point = preg_replace_callback('/\\\\([0-7]{3})/', static fn (array $code): string => chr((int) octdec($code[1])), explode(' ', $before)[4] ?? '');
            // Of two mounts at the same place, the later one is visible.
            if (strlen($point) >= strlen($deepest) && str_starts_with("$folder/", rtrim($point, '/') . '/')) {
                [$deepest, $type] = [$point, explode(' ', $after)[0]];
            }
        }
        return in_array($type, ['overlay', 'aufs', 'tmpfs', 'ramfs'], true);
    }
}
