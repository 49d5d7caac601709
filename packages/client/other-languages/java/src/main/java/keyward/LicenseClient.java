package keyward;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.security.PublicKey;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * Checks the license of an app: the service decides when it is reachable, and a signed file during an outage (docs/api.md,
 * C1 to C6). Only {@link Builder#build} throws, for invalid options. Several threads may use a client. When the thread of a call is
 * interrupted, the call ends at once, and the service counts as unreachable.
 */
public final class LicenseClient {
    private static final Duration DAY = Duration.ofDays(1);
    private static final Duration REFRESH_PAUSE = Duration.ofMinutes(1);
    private static final Pattern GENERATED_KEY = Pattern.compile("[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}");
    private static final Pattern LOCAL_HOST = Pattern.compile("localhost|.+\\.localhost|127(\\.\\d+){3}|\\[::1\\]");

    private static final Map<String, String> OFFLINE_MESSAGES = Map.of(
            "WRONG_MACHINE", "The stored license file belongs to another machine. Connect to the internet and try again.",
            "NO_FILE", "The license could not be checked. Connect to the internet and try again.",
            "BAD_SIGNATURE", "The stored license file is damaged. Connect to the internet and try again.",
            "UNKNOWN_KEY", "This version of the app cannot read the stored license file. Connect to the internet and try again.",
            "WRONG_LICENSE", "The stored license file belongs to another license key. Connect to the internet and try again.",
            "WRONG_PRODUCT", "The stored license file belongs to another product. Connect to the internet and try again.",
            "FILE_EXPIRED", "The license has expired. Renew the license, connect to the internet and try again.",
            "REFRESH_NEEDED", "The license must be checked online again. Connect to the internet and try again.",
            "CLOCK_SET_BACK", "The clock of this machine is wrong. Set the correct date and time and try again.");
    private static final String MESSAGE_AFTER_REJECTION = "The last online check rejected the license, or it was deactivated on this"
            + " machine. Connect to the internet and try again.";

    private final Map<String, PublicKey> keys;
    private final LicenseFile.User user;
    private final String hostname;
    private final Duration timeout;
    private final boolean entitlements;
    private final Clock clock;
    private final Storage storage;
    private final Transport transport;
    /** The rejection in this process, which may not have been written to the storage. */
    private String rejectedAs;
    private long nextRefresh = System.nanoTime();
    /** The time of the latest signed response in this process. */
    private Instant latestSigned = Instant.EPOCH;

    private LicenseClient(Builder options, Map<String, PublicKey> keys) {
        this.keys = keys;
        String productId = options.productId == null ? null : options.productId.toLowerCase(Locale.ROOT); // as in license files
        user = new LicenseFile.User(normalizeLicenseKey(options.licenseKey), productId, options.machineId);
        hostname = options.hostname;
        timeout = options.timeout;
        entitlements = options.entitlements;
        clock = options.clock;
        storage = new Storage(options.storage);
        transport = new Transport(options.baseUrl.replaceAll("/+$", ""), options.apiKey, timeout, options.requireSignature ? keys : Map.of());
    }

    public static Builder builder() {
        return new Builder();
    }

    /** Checks the license online, or with the stored file during an outage. */
    public Result validate() {
        return check("/api/v2/license/validate", body("license"), (status, text) -> Transport.readVerdictV2(status, text, entitlements));
    }

    /** Checks the license like {@link #validate} and sends the name of this machine. */
    public Result activate() {
        Map<String, Object> body = body("licenseKey");
        if (hostname != null) body.put("hostname", hostname);
        return check("/api/v1/activate", body, (status, text) -> Transport.readVerdict(status, text, entitlements));
    }

    /** Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service. */
    public Result deactivate() {
        long deadline = System.nanoTime() + timeout.toNanos();
        var response = transport.call(Transport.DEACTIVATE_PATH, body("licenseKey"), deadline, Transport::readDeactivation, latestSigned());
        Result result = response.result();
        if (result.code().equals("DEACTIVATED"))
            change(state -> {
                if (response.isSigned()) sawSignature(state, response.date());
                reject(state, "DEACTIVATED");
            });
        return result;
    }

    /**
     * Lists the machines that hold slots of the license, so that a person can choose which one to release. Requires the service. Returns LISTED,
     * NOT_ENABLED if the license does not let apps list its machines, NOT_FOUND, CONFIGURATION or UNREACHABLE.
     */
    public Result machines() {
        long deadline = System.nanoTime() + timeout.toNanos();
        return transport.call(Transport.MACHINES_PATH, body("licenseKey"), deadline, Transport::readMachines, null).result();
    }

    /**
     * Releases the slot of another machine of the license. {@code ref} is that of a listed machine. Returns the codes of {@link #deactivate}, or
     * NOT_ENABLED like {@link #machines}.
     */
    public Result release(String ref) {
        long deadline = System.nanoTime() + timeout.toNanos();
        Map<String, Object> body = new LinkedHashMap<>(Map.of("licenseKey", user.licenseKey(), "ref", ref));
        var response = transport.call(Transport.DEACTIVATE_PATH, body, deadline, Transport::readDeactivation, latestSigned());
        if (response.isSigned()) change(state -> sawSignature(state, response.date()));
        return response.result();
    }

    /**
     * Fetches and stores a license file now. Returns REFRESHED, UNREACHABLE, CONFIGURATION, or the reason why the service issues no file.
     * BAD_FILE: the received file is for another license, product or machine, or no shipped key has signed it. NOT_STORED: the storage failed.
     * The stored file is kept then.
     */
    public Result refreshFile() {
        return fetchFile(System.nanoTime() + timeout.toNanos());
    }

    /**
     * Stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now. Returns IMPORTED, or
     * NOT_IMPORTED with the reason of an offline refusal or NOT_STORED.
     */
    public synchronized Result importFile(String text) {
        Instant latestSeen = Instant.ofEpochMilli(storage.read().latestSeenMs);
        var judged = LicenseFile.judge(text.strip(), keys, user, clock.instant(), latestSeen);
        boolean isGood = judged.file() != null;
        if (isGood && store(text.strip())) return Result.stored("offline", "IMPORTED", judged.file());
        return Result.failed("offline", "NOT_IMPORTED", isGood ? "NOT_STORED" : forApps(judged), null, null);
    }

    /**
     * Returns the code with which a person requests the file of this machine, for a machine without network access. The vendor turns the code into
     * a file for {@link #importFile}. Returns null without a machine id.
     */
    public String requestCode() {
        Map<String, Object> request = new LinkedHashMap<>(Map.of("licenseKey", user.licenseKey()));
        request.put("machineId", user.machineId());
        if (hostname != null) request.put("hostname", hostname);
        return hasMachineId() ? LicenseFile.requestCode(request) : null;
    }

    private boolean hasMachineId() {
        return user.machineId() != null && !user.machineId().isEmpty();
    }

    /** Returns a generated key in upper case with hyphens. Returns any other text unchanged. */
    static String normalizeLicenseKey(String text) {
        String key = text.strip().replaceAll("[\\s\\u00a0\\u2010-\\u2015\\u2212-]+", "-").toUpperCase(Locale.ROOT);
        return GENERATED_KEY.matcher(key).matches() ? key : text;
    }

    private Map<String, Object> body(String keyField) {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put(keyField, user.licenseKey());
        if (hasMachineId()) body.put("fingerprint", user.machineId());
        return body;
    }

    private Result check(String path, Map<String, Object> body, Transport.Reader reader) {
        long deadline = System.nanoTime() + timeout.toNanos();
        if (entitlements) body.put("include", List.of("entitlements"));
        Transport.Response response = transport.call(path, body, deadline, reader, latestSigned());
        Result result = response.result();
        if (result.code().equals("UNREACHABLE")) return decideOffline(result.detail());
        if (result.code().equals("CONFIGURATION")) return result;
        change(state -> {
            // The service's clock corrects a device whose clock was ahead.
            if (response.date() != null) state.latestSeenMs = response.date().toEpochMilli();
            if (response.isSigned()) sawSignature(state, response.date());
            reject(state, result.valid() ? null : result.code());
        });
        if (result.valid()) refreshIfDue(result.expiresAt(), deadline);
        return result;
    }

    private synchronized Result decideOffline(String detail) {
        Instant now = clock.instant();
        Storage.State state = storage.read();
        Storage.Stored stored = state.find(user.licenseKey());
        String rejection = rejectedAs != null || stored == null ? rejectedAs : stored.rejectedAs();
        var judged = stored == null || rejection != null
                ? new LicenseFile.Judgement("NO_FILE", null)
                : LicenseFile.judge(stored.file(), keys, user, now, Instant.ofEpochMilli(state.latestSeenMs));
        change(changed -> changed.latestSeenMs = Math.max(changed.latestSeenMs, now.toEpochMilli()));
        LicenseFile file = judged.file();
        if (file != null) {
            Instant grace = file.isExpired(now) ? file.graceEndsAt() : null;
            var unlocked = entitlements ? file.entitlements() : null;
            return new Result(
                    "offline", "VALID", file.expiresAt(), null, null, null, detail, file.refreshAfter(), grace, unlocked, null, null, List.of());
        }
        String reason = forApps(judged);
        String message = rejection == null ? OFFLINE_MESSAGES.get(reason) : MESSAGE_AFTER_REJECTION;
        return new Result(
                "offline", "OFFLINE_REFUSED", null, reason, rejection, message, detail, null, null, null, null, null, List.of());
    }

    /** Fetches a new file if one is due, within the rest of the time budget. */
    private void refreshIfDue(Instant expiresAt, long deadline) {
        synchronized (this) {
            if (!isDue(expiresAt) || System.nanoTime() - nextRefresh < 0) return;
            nextRefresh = System.nanoTime() + REFRESH_PAUSE.toNanos();
        }
        fetchFile(deadline);
    }

    private Result fetchFile(long deadline) {
        // The message field of the result contains the text of the file.
        Transport.Reader reader = (status, text) ->
                status == 200 ? Result.online("RECEIVED", text) : Transport.readRejection(Json.parseObject(text));
        Result received = transport.call(Transport.FILE_PATH, body("licenseKey"), deadline, reader, null).result();
        if (!received.code().equals("RECEIVED")) return received;
        var verified = LicenseFile.verify(received.message(), keys, user);
        if (verified.file() == null) return Result.failed("online", "BAD_FILE", forApps(verified), null, null);
        return store(received.message()) ? Result.stored("online", "REFRESHED", verified.file()) : Result.online("NOT_STORED", null);
    }

    /** Stores a file and allows its use. Returns false if the write failed. */
    private boolean store(String file) {
        return change(state -> {
            rejectedAs = null;
            state.add(user.licenseKey(), file);
        });
    }

    /** Returns the reason of an outcome, because apps handle malformed and wrongly signed files in the same way. */
    private static String forApps(LicenseFile.Judgement judged) {
        return judged.outcome().equals("MALFORMED") ? "BAD_SIGNATURE" : judged.outcome();
    }

    /** Returns whether a new file is due: there is no good file, it is a day or half of its lifetime old, or its expiry differs. */
    private boolean isDue(Instant expiresAt) {
        Storage.State state = storage.read();
        Storage.Stored stored = state.find(user.licenseKey());
        if (stored == null) return true;
        Instant latestSeen = Instant.ofEpochMilli(state.latestSeenMs);
        LicenseFile file = LicenseFile.judge(stored.file(), keys, user, clock.instant(), latestSeen).file();
        if (file == null || !Objects.equals(file.expiresAt(), expiresAt)) return true;
        Duration halfLife = Duration.between(file.issuedAt(), file.refreshAfter()).dividedBy(2);
        return !clock.instant().isBefore(file.issuedAt().plus(halfLife.compareTo(DAY) < 0 ? halfLife : DAY));
    }

    private synchronized Instant latestSigned() {
        Instant stored = Instant.ofEpochMilli(storage.read().latestSignedMs);
        return stored.isAfter(latestSigned) ? stored : latestSigned;
    }

    /** Records the time of a signed response, which replaces the latest observed time. */
    private void sawSignature(Storage.State state, Instant at) {
        if (at.isAfter(latestSigned)) latestSigned = at;
        state.latestSeenMs = at.toEpochMilli();
        state.latestSignedMs = Math.max(state.latestSignedMs, latestSigned.toEpochMilli());
    }

    private void reject(Storage.State state, String code) {
        rejectedAs = code;
        state.reject(user.licenseKey(), code);
    }

    /** Returns false if the change could not be written. A rejection then stays in force in this process. */
    private synchronized boolean change(Consumer<Storage.State> edit) {
        Storage.State state = storage.read();
        edit.accept(state);
        try {
            storage.write(state);
            return true;
        } catch (IOException | RuntimeException error) {
            return false;
        }
    }

    /** The options of a client. Options without a default are required. */
    public static final class Builder {
        private String baseUrl = "";
        private String apiKey = "";
        private final Map<String, String> publicKeys = new HashMap<>();
        private String licenseKey = "";
        private Path storage;
        private String productId;
        private String machineId;
        private String hostname;
        private Duration timeout = Duration.ofSeconds(5);
        private boolean allowHttp;
        private boolean requireSignature;
        private boolean entitlements;
        private Clock clock = Clock.systemUTC();

        /** The base URL of the service, such as {@code https://licenses.example.com}. */
        public Builder baseUrl(String value) {
            baseUrl = value;
            return this;
        }

        /** The API key of the organization. The app contains it, so it is not a secret. */
        public Builder apiKey(String value) {
            apiKey = value;
            return this;
        }

        /** Adds a public key of {@code GET /api/v1/public-keys}. The app contains the public keys. */
        public Builder publicKey(String keyId, String publicKey) {
            publicKeys.put(keyId, publicKey);
            return this;
        }

        /** The license key that the customer entered. */
        public Builder licenseKey(String value) {
            licenseKey = value;
            return this;
        }

        /** The path of the file for the client's state. */
        public Builder storage(Path value) {
            storage = value;
            return this;
        }

        /** The product id of the app. Files of other products are rejected. Default: none. */
        public Builder productId(String value) {
            productId = value;
            return this;
        }

        /** The id of this machine, which licenses with a machine limit require. Default: none. */
        public Builder machineId(String value) {
            machineId = value;
            return this;
        }

        /** The name of this machine for people, which {@code activate} sends. Default: none. */
        public Builder hostname(String value) {
            hostname = value;
            return this;
        }

        /** The time budget of a call with all retries. Default: 5 seconds. */
        public Builder timeout(Duration value) {
            timeout = value;
            return this;
        }

        /** Whether {@code http} is allowed for other hosts than this machine. Default: false. */
        public Builder allowHttp(boolean value) {
            allowHttp = value;
            return this;
        }

        /** Whether a response that the service has not signed for exactly its request counts as an outage. Default: false. */
        public Builder requireSignature(boolean value) {
            requireSignature = value;
            return this;
        }

        /** Whether the results of valid checks contain the entitlements of the license. Default: false. */
        public Builder entitlements(boolean value) {
            entitlements = value;
            return this;
        }

        /** The device's clock. Default: the clock of the system. */
        public Builder clock(Clock value) {
            clock = value;
            return this;
        }

        /** Creates the client. Throws an IllegalArgumentException for invalid options. */
        public LicenseClient build() {
            URI address = parse(baseUrl);
            String scheme = String.valueOf(address.getScheme());
            require(
                address.getHost() != null && scheme.matches("https?"),
                "baseUrl must be an https URL such as https://licenses.example.com; got \"" + baseUrl + "\".");
            boolean isPrivate = scheme.equals("https") || LOCAL_HOST.matcher(address.getHost()).matches();
            require(isPrivate || allowHttp, "baseUrl must use https, because responses over http can be forged.");
            require(apiKey.matches("[\\x21-\\x7e]+"), "apiKey must consist of printable ASCII characters without blanks.");
            require(!licenseKey.isEmpty() && !publicKeys.isEmpty(), "licenseKey and publicKeys are required.");
            require(storage != null, "storage must not be null.");
            Map<String, PublicKey> keys = new HashMap<>();
            publicKeys.forEach((id, text) -> keys.put(id, LicenseFile.readPublicKey(text)));
            return new LicenseClient(this, keys);
        }

        /** Returns the URL, or an empty one for another text. */
        private static URI parse(String text) {
            try {
                return new URI(text);
            } catch (URISyntaxException error) {
                return URI.create("");
            }
        }

        private static void require(boolean condition, String message) {
            if (!condition) throw new IllegalArgumentException(message);
        }
    }
}
