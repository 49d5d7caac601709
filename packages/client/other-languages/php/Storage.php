<?php

declare(strict_types=1);

namespace Keyward;

/** The client's state in a file: the license file of each license key, and the latest observed time. */
final class Storage
{
    public function __construct(private readonly string $path)
    {
    }

    /**
     * Returns the stored state. Returns an empty state when the storage fails or contains another text.
     *
     * @return array{version: int, latestSeenMs: float, latestSignedMs: float, licenses: array<string, array{licenseKey: string, file: string, rejectedAs: ?string}>}
     */
    public function read(): array
    {
        $stored = json_decode((string) @file_get_contents($this->path), true);
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

    /** Replaces the file atomically: a crash leaves either the old or the new text. Returns false if the write failed. */
    public function write(string $text): bool
    {
        $draft = self::writeDraft($this->path, $text);
        if ($draft !== null && @rename($draft, $this->path)) {
            return true;
        }
        if ($draft !== null) {
            @unlink($draft);
        }
        return false;
    }

    /**
     * Writes a new file beside $path that only its owner can read, flushed to the disk. On Windows, the permissions of the folder apply
     * instead. Returns its path, or null if the write failed.
     */
    public static function writeDraft(string $path, string $text): ?string
    {
        $folder = dirname($path);
        $draft = $path . '.' . bin2hex(random_bytes(8)) . '.tmp';
        if (!is_dir($folder) && !@mkdir($folder, 0700, true) && !is_dir($folder)) {
            return null;
        }
        $file = @fopen($draft, 'x');
        if ($file === false) {
            return null;
        }
        $isWritten = chmod($draft, 0600) && fwrite($file, $text) === strlen($text) && fsync($file);
        fclose($file);
        if ($isWritten) {
            return $draft;
        }
        @unlink($draft);
        return null;
    }
}
