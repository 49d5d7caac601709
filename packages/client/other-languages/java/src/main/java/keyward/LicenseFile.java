package keyward;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/** The payload of a verified license file (docs/api.md, F1 to F9). The class uses neither a clock nor a network. */
public record LicenseFile(
        String licenseKey,
        String productId,
        String machineId,
        String keyId,
        Instant expiresAt,
        Instant issuedAt,
        Instant refreshAfter,
        Instant graceEndsAt,
        Map<String, Object> entitlements) {
    private static final Duration CLOCK_TOLERANCE = Duration.ofMinutes(5);
    private static final int MAX_LENGTH = 16 * 1024;
    private static final int SIGNATURE_BYTES = 64;
    private static final double MAX_INTEGER = (1L << 53) - 1;
    private static final Set<String> TYPES = Set.of("PERPETUAL", "SUBSCRIPTION", "TRIAL");
    static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    /** The app that uses a file. A null product accepts files of all products. A null machine rejects files for one machine. */
    public record User(String licenseKey, String productId, String machineId) {}

    /** The outcome of a judgement: GOOD with the file, or the first problem without a file. */
    public record Judgement(String outcome, LicenseFile file) {}

    /** Judges a file. {@code latestSeen} is the latest time that the app has observed, or the epoch. */
    public static Judgement judge(String text, Map<String, PublicKey> keys, User user, Instant now, Instant latestSeen) {
        Judgement verified = verify(text, keys, user);
        LicenseFile file = verified.file;
        if (file == null) return verified;
        Instant passed = file.issuedAt.isAfter(latestSeen) ? file.issuedAt : latestSeen;
        if (now.isBefore(passed.minus(CLOCK_TOLERANCE))) return new Judgement("CLOCK_SET_BACK", null);
        Instant end = file.graceEndsAt == null ? file.expiresAt : file.graceEndsAt;
        if (end != null && !now.isBefore(end)) return new Judgement("FILE_EXPIRED", null);
        return now.isBefore(file.refreshAfter) ? verified : new Judgement("REFRESH_NEEDED", null);
    }

    /** Verifies the form, the signature, the license, the product and the machine of a file, independent of the time. */
    public static Judgement verify(String text, Map<String, PublicKey> keys, User user) {
        String[] parts = text.length() > MAX_LENGTH ? new String[0] : text.split("\\.", -1);
        byte[] payload = parts.length == 2 ? decode(parts[0]) : null;
        byte[] signature = parts.length == 2 ? decode(parts[1]) : null;
        LicenseFile file = payload == null ? null : parse(payload);
        if (file == null || signature == null || signature.length != SIGNATURE_BYTES) return new Judgement("MALFORMED", null);
        PublicKey key = keys.get(file.keyId);
        if (key == null) return new Judgement("UNKNOWN_KEY", null);
        if (!isSigned(key, payload, signature)) return new Judgement("BAD_SIGNATURE", null);
        if (!file.licenseKey.equals(user.licenseKey)) return new Judgement("WRONG_LICENSE", null);
        if (user.productId != null && !user.productId.equals(file.productId)) return new Judgement("WRONG_PRODUCT", null);
        boolean isForMachine = file.machineId == null || file.machineId.equals(user.machineId);
        return isForMachine ? new Judgement("GOOD", file) : new Judgement("WRONG_MACHINE", null);
    }

    /** Reads the standard base64 of an X.509 SubjectPublicKeyInfo. Throws an IllegalArgumentException for another text. */
    public static PublicKey readPublicKey(String text) {
        try {
            return KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(Base64.getDecoder().decode(text)));
        } catch (GeneralSecurityException | IllegalArgumentException error) {
            String message = "publicKey must be the base64 of an Ed25519 SubjectPublicKeyInfo; got \"" + text + "\".";
            throw new IllegalArgumentException(message, error);
        }
    }

    /** Returns the time for text such as 2030-01-01T00:00:00.000Z. Returns null for any other value. */
    static Instant parseTime(Object value) {
        try {
            Instant time = value instanceof String text ? Instant.from(TIME.parse(text)) : null;
            return time != null && TIME.format(time).equals(value) ? time : null;
        } catch (DateTimeException error) {
            return null;
        }
    }

    /** Decodes strict UTF-8. Returns an empty text for any other bytes. */
    static String decodeText(byte[] bytes) {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException error) {
            return "";
        }
    }

    /** Returns whether the license has expired. It may be in its grace period. */
    boolean isExpired(Instant now) {
        return expiresAt != null && !now.isBefore(expiresAt);
    }

    private static LicenseFile parse(byte[] bytes) {
        Map<String, Object> payload = Json.parseObject(decodeText(bytes));
        if (!(payload.get("policy") instanceof Map<?, ?> policy)) return null;
        boolean hasTexts = Stream.of("licenseKey", "licenseId", "customerEmail", "kid", "machineId")
                .filter(name -> !name.equals("machineId") || payload.containsKey(name))
                .allMatch(name -> payload.get(name) instanceof String text && !text.isEmpty());
        Object limit = policy.get("maxMachines");
        boolean hasLimit = policy.containsKey("maxMachines")
                && (limit == null || limit instanceof Double number && number >= 1 && number == Math.rint(number));
        Object expires = policy.get("expiresAt");
        Instant expiresAt = parseTime(expires);
        boolean hasExpiry = policy.containsKey("expiresAt") && (expires == null) == (expiresAt == null);
        boolean hasType = policy.get("type") instanceof String type
                && TYPES.contains(type)
                && type.equals("PERPETUAL") == (expires == null);
        Instant issuedAt = parseTime(payload.get("issuedAt"));
        Instant refreshAfter = parseTime(payload.get("refreshAfter"));
        if (!hasTexts || !hasLimit || !hasExpiry || !hasType || issuedAt == null || refreshAfter == null) return null;
        String productId = payload.get("productId") instanceof String product ? product : null;
        Map<String, Object> entitlements = readEntitlements(payload.get("entitlements"));
        return new LicenseFile(
                (String) payload.get("licenseKey"),
                productId,
                (String) payload.get("machineId"),
                (String) payload.get("kid"),
                expiresAt,
                issuedAt,
                refreshAfter,
                parseTime(policy.get("graceEndsAt")),
                entitlements == null ? Map.of() : entitlements);
    }

    /** Converts the parsed JSON of entitlements: true, integers as Long, and texts, without those that are false. Returns null for any other value. */
    static Map<String, Object> readEntitlements(Object value) {
        if (!(value instanceof Map<?, ?> given)) return null;
        Map<String, Object> read = new LinkedHashMap<>();
        for (var each : given.entrySet()) {
            Object member = each.getValue();
            if (Boolean.FALSE.equals(member)) continue;
            boolean isInteger = member instanceof Double number && number == Math.rint(number) && Math.abs(number) <= MAX_INTEGER;
            if (!isInteger && !(member instanceof String) && !Boolean.TRUE.equals(member)) return null;
            read.put((String) each.getKey(), isInteger ? (Object) ((Double) member).longValue() : member);
        }
        return read;
    }

    /** Returns the code of a request for the file of a machine (F9). */
    static String requestCode(Map<String, Object> request) {
        String body = "KWR1." + SignedAnswer.encode(Json.write(request).getBytes(StandardCharsets.UTF_8));
        return body + "." + SignedAnswer.encode(SignedAnswer.sha256(body.getBytes(StandardCharsets.UTF_8))).substring(0, 8);
    }

    static boolean isSigned(PublicKey key, byte[] payload, byte[] signature) {
        try {
            Signature verifier = Signature.getInstance("Ed25519");
            verifier.initVerify(key);
            verifier.update(payload);
            return verifier.verify(signature);
        } catch (GeneralSecurityException error) {
            return false; // for example because S is not below the group order
        }
    }

    /** Decodes base64url without padding. Returns null unless the text is the canonical encoding. */
    static byte[] decode(String text) {
        try {
            byte[] bytes = Base64.getUrlDecoder().decode(text);
            return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes).equals(text) ? bytes : null;
        } catch (IllegalArgumentException error) {
            return null;
        }
    }
}
