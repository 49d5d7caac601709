package keyward;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A response of the service and its request, which a signature binds together (docs/api.md, G1 to G5). {@code signature} is the header
 * {@code keyward-signature}, or null without the header. {@code path} is the path in the API, such as /api/v2/license/validate.
 */
public record SignedAnswer(String signature, String path, int status, String apiKey, byte[] request, byte[] response) {
    private static final Duration CLOCK_TOLERANCE = Duration.ofMinutes(5);
    private static final int MAX_LENGTH = 4 * 1024;
    private static final int STEP_BYTES = 33;
    private static final String TIME = "(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)";
    private static final Pattern DELEGATION =
            Pattern.compile("keyward-delegation-v1 ([\\w-]+) " + TIME + " " + TIME + " ([\\w-]{43})");
    private static final Pattern STATEMENT = Pattern.compile("keyward-answers-v1 " + TIME + " ([\\w-]{43})");
    /** The bytes before the key in an X.509 SubjectPublicKeyInfo. */
    private static final byte[] SPKI_PREFIX = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

    /** The outcome of a verification: GOOD with the signed time, or the first problem without a time. */
    public record Verification(String outcome, Instant signedAt) {}

    /** Verifies the response with the public key {@code keyId}. {@code latestSigned} is the time of the latest signed response, or the epoch. */
    public Verification verify(String keyId, PublicKey key, Instant latestSigned) {
        if (signature == null) return problem("UNSIGNED");
        String[] texts = signature.length() > MAX_LENGTH ? new String[0] : signature.split("\\.", -1);
        byte[][] parts = Arrays.stream(texts).map(LicenseFile::decode).toArray(byte[][]::new);
        if (parts.length != 5 || Arrays.stream(parts).anyMatch(Objects::isNull)) return problem("MALFORMED");
        Matcher delegation = DELEGATION.matcher(text(parts[0]));
        if (!delegation.matches() || !delegation.group(1).equals(keyId) || !LicenseFile.isSigned(key, parts[0], parts[1]))
            return problem("BAD_DELEGATION");
        Matcher statement = STATEMENT.matcher(text(parts[2]));
        PublicKey validator = keyOf(LicenseFile.decode(delegation.group(4)));
        if (!statement.matches() || validator == null || !LicenseFile.isSigned(validator, parts[2], parts[3]))
            return problem("BAD_SIGNATURE");
        String time = statement.group(1);
        // Times of this form have the order of their texts.
        if (time.compareTo(delegation.group(2)) < 0 || time.compareTo(delegation.group(3)) >= 0) return problem("DELEGATION_EXPIRED");
        byte[] root = climb(leaf(), parts[4]);
        if (root == null || !encode(root).equals(statement.group(2))) return problem("OTHER_ANSWER");
        Instant signedAt = LicenseFile.parseTime(time);
        boolean isLate = signedAt != null && !signedAt.isBefore(latestSigned.minus(CLOCK_TOLERANCE));
        return isLate ? new Verification("GOOD", signedAt) : problem("BACK_DATED");
    }

    static String encode(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }

    private static Verification problem(String outcome) {
        return new Verification(outcome, null);
    }

    private byte[] leaf() {
        String hashes = encode(sha256(apiKey.getBytes(StandardCharsets.UTF_8))) + " " + encode(sha256(request)) + " " + encode(sha256(response));
        return sha256(("keyward-answer-v1 " + path + " " + status + " " + hashes).getBytes(StandardCharsets.UTF_8));
    }

    /** Returns the root to which the steps lead from a leaf. Returns null for malformed steps. */
    private static byte[] climb(byte[] leaf, byte[] steps) {
        if (steps.length % STEP_BYTES != 0) return null;
        byte[] node = leaf;
        for (int at = 0; at < steps.length; at += STEP_BYTES) {
            byte[] neighbour = Arrays.copyOfRange(steps, at + 1, at + STEP_BYTES);
            if (steps[at] != 0 && steps[at] != 1) return null;
            byte[] one = {1};
            node = steps[at] == 0 ? sha256(one, node, neighbour) : sha256(one, neighbour, node);
        }
        return node;
    }

    private static PublicKey keyOf(byte[] key) {
        if (key == null) return null;
        byte[] spki = Arrays.copyOf(SPKI_PREFIX, SPKI_PREFIX.length + key.length);
        System.arraycopy(key, 0, spki, SPKI_PREFIX.length, key.length);
        try {
            return LicenseFile.readPublicKey(Base64.getEncoder().encodeToString(spki));
        } catch (IllegalArgumentException error) {
            return null;
        }
    }

    /** Returns the bytes as characters. No text with a byte over 127 has the form of a delegation or statement. */
    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    static byte[] sha256(byte[]... parts) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (byte[] part : parts) digest.update(part);
            return digest.digest();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException("Every JDK has SHA-256.", error);
        }
    }
}
