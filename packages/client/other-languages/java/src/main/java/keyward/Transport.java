package keyward;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Sends requests and classifies their outcomes. Invariant: a call ends within its time budget. */
final class Transport {
    static final String FILE_PATH = "/api/v1/licenses/file";
    static final String MACHINES_PATH = "/api/v1/machines";
    static final String DEACTIVATE_PATH = "/api/v1/deactivate";
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final int MAX_ATTEMPTS = 3;
    private static final int MAX_BODY_BYTES = 64 * 1024;
    private static final Set<String> REJECTIONS = Set.of(
            "NOT_FOUND", "BLACKLISTED", "REVOKED", "SUSPENDED", "EXPIRED", "FINGERPRINT_REQUIRED", "TOO_MANY_MACHINES",
            "MACHINE_NOT_ACTIVE", "NOT_STARTED", "NOT_ENABLED"); // checks are not rejected with the last three

    /** Parses the body of a response with a status that the endpoint defines. Returns null for a body that the service never sends. */
    interface Reader {
        Result read(int status, String body);
    }

    /** A result and the time of the response: the signed time, or that of Date. The time is null without both. */
    record Response(Result result, Instant date, boolean isSigned, Duration retryAfter) {}

    private final String baseUrl;
    private final String apiKey;
    private final Duration timeout;
    /** The public keys with which responses are verified, or no keys if no signature is required. */
    private final Map<String, PublicKey> keys;
    private final List<String> keyIds;
    // The service never redirects, and following a redirect would send the API key to another host.
    private final HttpClient http = HttpClient.newBuilder()
            .followRedirects(HttpClient.Redirect.NEVER)
            .version(HttpClient.Version.HTTP_1_1)
            .proxy(new EnvironmentProxy())
            .build();

    Transport(String baseUrl, String apiKey, Duration timeout, Map<String, PublicKey> keys) {
        this.baseUrl = baseUrl;
        this.apiKey = apiKey;
        this.timeout = timeout;
        this.keys = keys;
        keyIds = List.copyOf(keys.keySet());
    }

    /**
     * Returns the result of {@code reader}, UNREACHABLE or CONFIGURATION. Retries outages until the deadline in nanoseconds. Each attempt asks
     * for a signature under the next public key, because the service does not sign under a withdrawn one.
     */
    Response call(String path, Map<String, Object> body, long deadline, Reader reader, Instant latestSigned) {
        boolean isSigned = !keyIds.isEmpty() && !path.equals(FILE_PATH) && !path.equals(MACHINES_PATH);
        for (int attempt = 1; ; attempt++) {
            long left = deadline - System.nanoTime();
            String keyId = isSigned ? keyIds.get((attempt - 1) % keyIds.size()) : null;
            Response response = request(path, body, attempt < MAX_ATTEMPTS ? left / 2 : left, reader, keyId, latestSigned);
            // The random part prevents apps from retrying in unison after an outage.
            Duration pause = response.retryAfter.plusMillis(ThreadLocalRandom.current().nextLong(200L * attempt));
            long rest = deadline - System.nanoTime() - pause.toNanos();
            boolean isFinal = attempt == MAX_ATTEMPTS || rest < timeout.toNanos() / 8;
            if (!response.result.code().equals("UNREACHABLE") || isFinal) return response;
            try {
                Thread.sleep(pause.toMillis());
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
                return response;
            }
        }
    }

    private Response request(
            String path, Map<String, Object> body, long budget, Reader reader, String keyId, Instant latestSigned) {
        byte[] sent = Json.write(keyId == null ? body : signedBody(body, keyId)).getBytes(StandardCharsets.UTF_8);
        HttpRequest request = HttpRequest.newBuilder(URI.create(baseUrl + path))
                .header("Authorization", "Bearer " + apiKey)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(sent))
                .build();
        long end = System.nanoTime() + budget;
        var exchange = http.sendAsync(request, HttpResponse.BodyHandlers.ofInputStream());
        try {
            HttpResponse<InputStream> response = exchange.get(budget, TimeUnit.NANOSECONDS);
            try (InputStream stream = response.body()) {
                // Closing the stream ends the read of a slow body.
                long left = Math.max(0, end - System.nanoTime());
                CompletableFuture.delayedExecutor(left, TimeUnit.NANOSECONDS).execute(() -> close(stream));
                byte[] bytes = stream.readNBytes(MAX_BODY_BYTES + 1);
                boolean isComplete = bytes.length <= MAX_BODY_BYTES && System.nanoTime() < end;
                if (!isComplete) return outage("The response is too long or too slow.", Duration.ZERO);
                int status = response.statusCode();
                if (keyId == null || status == 408 || status >= 500) return classify(path, response, LicenseFile.decodeText(bytes), reader, null);
                String header = response.headers().firstValue("keyward-signature").orElse(null);
                var verified = new SignedAnswer(header, path, status, apiKey, sent, bytes).verify(keyId, keys.get(keyId), latestSigned);
                return verified.signedAt() != null
                        ? classify(path, response, LicenseFile.decodeText(bytes), reader, verified.signedAt())
                        : outage("The response with status " + status + " is not signed for this request: " + verified.outcome() + ".", Duration.ZERO);
            }
        } catch (TimeoutException error) {
            exchange.cancel(true);
            return outage("No response arrived within the time budget.", Duration.ZERO);
        } catch (ExecutionException | IOException error) {
            return outage("No connection: " + error, Duration.ZERO);
        } catch (InterruptedException error) {
            exchange.cancel(true);
            Thread.currentThread().interrupt();
            return outage("The thread was interrupted.", Duration.ZERO);
        }
    }

    private static Map<String, Object> signedBody(Map<String, Object> body, String keyId) {
        byte[] nonce = new byte[16];
        RANDOM.nextBytes(nonce);
        Map<String, Object> signed = new LinkedHashMap<>(body);
        signed.put("nonce", SignedAnswer.encode(nonce));
        signed.put("kid", keyId);
        return signed;
    }

    private static void close(InputStream stream) {
        try {
            stream.close();
        } catch (IOException error) {
            // The stream is already closed.
        }
    }

    /** Returns whether an endpoint defines a status. Any other status is an error. */
    private static boolean defines(String path, int status) {
        return status == 200 || switch (path) {
            case FILE_PATH -> status == 409;
            case MACHINES_PATH -> status == 403 || status == 409;
            case DEACTIVATE_PATH -> status == 403;
            default -> status == 400;
        };
    }

    private static Response classify(String path, HttpResponse<?> response, String body, Reader reader, Instant signedAt) {
        int status = response.statusCode();
        var headers = response.headers();
        Result result = defines(path, status) ? reader.read(status, body) : null;
        if (result != null && signedAt != null) return new Response(result, signedAt, true, Duration.ZERO);
        if (result != null) return new Response(result, date(headers.firstValue("date").orElse("")), false, Duration.ZERO);
        if (status < 400 || status == 408 || status >= 500 || defines(path, status)) {
            String pause = headers.firstValue("retry-after").filter(text -> text.matches("\\d{1,9}")).orElse("0");
            String detail = "The service is unavailable or is not Keyward: status " + status + ".";
            return outage(detail, Duration.ofSeconds(Long.parseLong(pause)));
        }
        String reason = switch (status) {
            case 401 -> "UNAUTHORIZED";
            case 403 -> "FORBIDDEN";
            case 404, 405 -> "WRONG_ADDRESS";
            case 400, 413, 415, 422 -> "INVALID_REQUEST";
            case 429 -> "RATE_LIMITED";
            default -> "UNEXPECTED_STATUS";
        };
        String message = message(Json.parseObject(body), "The service responded with status " + status + ".");
        return new Response(Result.failed("online", "CONFIGURATION", reason, message, null), null, false, Duration.ZERO);
    }

    static Result readVerdictV2(int status, String text, boolean hasEntitlements) {
        Result result = readVerdict(status, text, hasEntitlements);
        Object inBody = Json.parseObject(text).getOrDefault("status", (double) status);
        boolean agrees = result != null && result.valid() == (status == 200) && Double.valueOf(status).equals(inBody);
        return agrees ? result : null;
    }

    /** Parses the fields that the verdicts of v1 and v2 have in common. */
    static Result readVerdict(int status, String text, boolean hasEntitlements) {
        Map<String, Object> body = Json.parseObject(text);
        if (!(body.get("valid") instanceof Boolean valid) || valid != "VALID".equals(body.get("code"))) return null;
        if (!valid) return readRejection(body);
        Object expires = body.get("expiresAt");
        Instant expiresAt = LicenseFile.parseTime(expires);
        boolean isComplete = status == 200 && body.containsKey("expiresAt") && (expires == null) == (expiresAt == null);
        var entitlements = hasEntitlements ? LicenseFile.readEntitlements(body.getOrDefault("entitlements", Map.of())) : null;
        if (!isComplete || hasEntitlements && entitlements == null) return null;
        return Result.valid(expiresAt, LicenseFile.parseTime(body.get("graceEndsAt")), entitlements);
    }

    /** Parses the code, the message and the used slots of a rejection. */
    static Result readRejection(Map<String, Object> body) {
        if (!(body.get("code") instanceof String code) || !code.matches("[A-Z][A-Z0-9_]{1,63}")) return null;
        Result.Machines machines = body.get("machines") instanceof Map<?, ?> counts
                        && counts.get("used") instanceof Double used
                        && counts.get("max") instanceof Double max
                ? new Result.Machines(used.intValue(), max.intValue())
                : null;
        String known = REJECTIONS.contains(code) ? code : "REJECTED";
        return Result.rejected(known, message(body, "The check was rejected."), machines);
    }

    static Result readDeactivation(int status, String text) {
        Map<String, Object> body = Json.parseObject(text);
        if (status != 200) return "NOT_ENABLED".equals(body.get("code")) ? readRejection(body) : null;
        if (!(body.get("deactivated") instanceof Boolean deactivated)) return null;
        return Result.online(deactivated ? "DEACTIVATED" : "NOT_ACTIVE", null);
    }

    /** Parses the machines of a license, or the reason why the service lists none. */
    static Result readMachines(int status, String text) {
        Map<String, Object> body = Json.parseObject(text);
        if (status != 200) return readRejection(body);
        boolean areCounts = isCount(body.get("max")) && isCount(body.get("releasesLeft"));
        if (!(body.get("used") instanceof Double used) || !areCounts || !(body.get("machines") instanceof List<?> listed)) return null;
        var list = new ArrayList<Result.Machine>();
        for (Object each : listed) {
            if (!(each instanceof Map<?, ?> machine) || !(machine.get("ref") instanceof String ref)) return null;
            Object hostname = machine.get("hostname");
            Instant seen = LicenseFile.parseTime(machine.get("lastSeenAt"));
            boolean isNamed = hostname == null || hostname instanceof String;
            if (!isNamed || seen == null || !(machine.get("current") instanceof Boolean current)) return null;
            list.add(new Result.Machine(ref, (String) hostname, seen, current));
        }
        int max = body.get("max") instanceof Double limit ? limit.intValue() : 0;
        Integer left = body.get("releasesLeft") instanceof Double count ? Integer.valueOf(count.intValue()) : null;
        return Result.listed(new Result.Machines(used.intValue(), max), left, List.copyOf(list));
    }

    private static boolean isCount(Object value) {
        return value == null || value instanceof Double;
    }

    /** Returns the message of a response: {@code message} on v2, {@code detail} elsewhere. Without a text, returns {@code otherwise}. */
    private static String message(Map<String, Object> body, String otherwise) {
        for (String name : new String[] {"message", "detail"})
            if (body.get(name) instanceof String text && !text.isEmpty()) return text;
        return otherwise;
    }

    private static Instant date(String header) {
        try {
            return Instant.from(DateTimeFormatter.RFC_1123_DATE_TIME.parse(header));
        } catch (DateTimeException error) {
            return null;
        }
    }

    private static Response outage(String detail, Duration retryAfter) {
        String message = "The license service cannot be reached. Connect to the internet and try again.";
        return new Response(Result.failed("offline", "UNREACHABLE", null, message, detail), null, false, retryAfter);
    }
}
