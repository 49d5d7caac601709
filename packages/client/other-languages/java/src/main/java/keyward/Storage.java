package keyward;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The client's state in a file: the license file of each license key, and the latest observed time. */
final class Storage {
    private static final int MAX_LICENSES = 10;

    /** A stored file. {@code rejectedAs} is the code that ended the use of the file, or null. */
    record Stored(String licenseKey, String file, String rejectedAs) {}

    /** The content, newest file first. The latest observed time and the latest signed time are in milliseconds since 1970, or 0. */
    static final class State {
        long latestSeenMs;
        long latestSignedMs;
        final List<Stored> licenses = new ArrayList<>();

        Stored find(String licenseKey) {
            return licenses.stream().filter(stored -> stored.licenseKey.equals(licenseKey)).findFirst().orElse(null);
        }

        void add(String licenseKey, String file) {
            licenses.removeIf(stored -> stored.licenseKey.equals(licenseKey));
            licenses.add(0, new Stored(licenseKey, file, null));
            while (licenses.size() > MAX_LICENSES) licenses.remove(MAX_LICENSES);
        }

        void reject(String licenseKey, String code) {
            licenses.replaceAll(
                    stored -> stored.licenseKey.equals(licenseKey) ? new Stored(licenseKey, stored.file, code) : stored);
        }
    }

    private final Path path;

    Storage(Path path) {
        this.path = path.toAbsolutePath();
    }

    /** Returns the stored state. Returns an empty state when the storage fails or contains another text. */
    State read() {
        State state = new State();
        Map<String, Object> content;
        try {
            content = Json.parseObject(LicenseFile.decodeText(Files.readAllBytes(path)));
        } catch (IOException error) {
            return state;
        }
        if (content.get("latestSeenMs") instanceof Double seen) state.latestSeenMs = seen.longValue();
        if (content.get("latestSignedMs") instanceof Double signed) state.latestSignedMs = signed.longValue();
        if (!(content.get("licenses") instanceof List<?> licenses)) return state;
        for (Object each : licenses)
            if (each instanceof Map<?, ?> stored
                    && stored.get("licenseKey") instanceof String licenseKey
                    && stored.get("file") instanceof String file)
                state.licenses.add(new Stored(licenseKey, file, stored.get("rejectedAs") instanceof String code ? code : null));
        return state;
    }

    /** Replaces the file atomically: a crash leaves either the old or the new text. */
    void write(State state) throws IOException {
        Map<String, Object> content = new LinkedHashMap<>();
        content.put("version", 2);
        content.put("latestSeenMs", state.latestSeenMs);
        content.put("latestSignedMs", state.latestSignedMs);
        content.put("licenses", state.licenses.stream().map(Storage::toMap).toList());
        Files.createDirectories(path.getParent());
        Path draft = writeDraft(path.getParent(), Json.write(content).getBytes(StandardCharsets.UTF_8));
        try {
            Files.move(draft, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(draft);
        }
    }

    /**
     * Writes a new file that only its owner can read, flushed to the disk, and returns its path. On Windows, the permissions of the folder
     * apply instead.
     */
    static Path writeDraft(Path folder, byte[] content) throws IOException {
        Path draft = Files.createTempFile(folder, "keyward", ".tmp"); // has mode 0600
        try (FileChannel channel = FileChannel.open(draft, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(content));
            channel.force(true);
            return draft;
        } catch (IOException error) {
            Files.deleteIfExists(draft);
            throw error;
        }
    }

    private static Map<String, Object> toMap(Stored stored) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("licenseKey", stored.licenseKey);
        map.put("file", stored.file);
        map.put("rejectedAs", stored.rejectedAs);
        return map;
    }
}
