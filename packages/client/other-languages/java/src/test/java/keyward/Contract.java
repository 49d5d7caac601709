package keyward;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/** Runs the Java client as a program for the contract suite (packages/client/contract-suite/README.md). */
final class Contract {
    public static void main(String[] arguments) throws IOException {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        LicenseClient client = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Map<String, Object> command = Json.parseObject(line);
            Map<String, Object> reply = new HashMap<>();
            switch (text(command, "command")) {
                case "open" -> {
                    try {
                        client = open(command);
                    } catch (IllegalArgumentException error) {
                        reply.put("error", String.valueOf(error.getMessage()));
                    }
                }
                case "judge" -> reply.put("outcome", judge(command));
                case "verify" -> reply.put("outcome", verify(command));
                case "validate" -> write(reply, client.validate());
                case "validateAndCancel" -> {
                    Thread caller = Thread.currentThread();
                    CompletableFuture.delayedExecutor(number(command, "afterMs"), TimeUnit.MILLISECONDS).execute(caller::interrupt);
                    write(reply, client.validate());
                    reply.put("cancelled", Thread.interrupted());
                }
                case "machineKey" -> {
                    try {
                        MachineKey key = MachineKey.open(Path.of(text(command, "path")));
                        reply.putAll(Map.of("machineId", key.machineId(), "isNew", key.isNew(), "isEphemeral", key.isEphemeral()));
                    } catch (IOException error) {
                        reply.put("error", String.valueOf(error.getMessage()));
                    }
                }
                case "activate" -> write(reply, client.activate());
                case "deactivate" -> write(reply, client.deactivate());
                case "machines" -> write(reply, client.machines());
                case "release" -> write(reply, client.release(text(command, "ref")));
                case "requestCode" -> reply.put("code", client.requestCode());
                case "refreshFile" -> write(reply, client.refreshFile());
                default -> write(reply, client.importFile(text(command, "file")));
            }
            output.println(Json.write(reply));
        }
    }

    private static LicenseClient open(Map<String, Object> command) {
        var builder = LicenseClient.builder()
                .baseUrl(text(command, "baseUrl"))
                .apiKey(text(command, "apiKey"))
                .licenseKey(text(command, "licenseKey"))
                .storage(Path.of(text(command, "storage")))
                .productId(text(command, "productId"))
                .machineId(text(command, "machineId"))
                .hostname(text(command, "hostname"))
                .requireSignature((Boolean) command.get("requireSignature"))
                .entitlements((Boolean) command.get("entitlements"))
                .timeout(Duration.ofMillis(number(command, "timeoutMs")))
                .clock(Clock.offset(Clock.systemUTC(), Duration.ofMillis(number(command, "clockAheadMs"))));
        eachKey(command, builder::publicKey);
        return builder.build();
    }

    private static String judge(Map<String, Object> command) {
        var keys = new HashMap<String, java.security.PublicKey>();
        eachKey(command, (id, key) -> keys.put(id, LicenseFile.readPublicKey(key)));
        Instant now = Instant.ofEpochMilli(number(command, "nowMs"));
        Instant latestSeen = Instant.ofEpochMilli(number(command, "latestSeenMs"));
        var user = new LicenseFile.User(text(command, "licenseKey"), text(command, "productId"), text(command, "machineId"));
        return LicenseFile.judge(text(command, "file"), keys, user, now, latestSeen).outcome();
    }

    private static String verify(Map<String, Object> command) {
        byte[] request = text(command, "request").getBytes(StandardCharsets.UTF_8);
        byte[] response = text(command, "response").getBytes(StandardCharsets.UTF_8);
        int status = (int) number(command, "status");
        var answer = new SignedAnswer(
                text(command, "signature"), text(command, "path"), status, text(command, "apiKey"), request, response);
        Instant latestSigned = Instant.ofEpochMilli(number(command, "latestSignedMs"));
        var outcomes = new ArrayList<String>();
        eachKey(command, (id, key) -> outcomes.add(answer.verify(id, LicenseFile.readPublicKey(key), latestSigned).outcome()));
        return outcomes.get(0);
    }

    private static void write(Map<String, Object> reply, Result result) {
        reply.put("source", result.source());
        reply.put("valid", result.valid());
        reply.put("deactivated", result.code().equals("DEACTIVATED"));
        reply.put("imported", result.code().equals("IMPORTED"));
        reply.put("code", result.code());
        reply.put("entitlements", result.entitlements());
        var machines = result.machines();
        if (machines != null) reply.put("machines", Map.of("used", machines.used(), "max", machines.max()));
        reply.put("releasesLeft", result.releasesLeft());
        reply.put("list", result.list().stream().map(Contract::describe).toList());
        reply.put("refreshAfter", result.refreshAfter() == null ? null : LicenseFile.TIME.format(result.refreshAfter()));
        reply.put("expiresAt", result.expiresAt() == null ? null : LicenseFile.TIME.format(result.expiresAt()));
        reply.put("graceEndsAt", result.graceEndsAt() == null ? null : LicenseFile.TIME.format(result.graceEndsAt()));
        reply.put("reason", result.reason());
        reply.put("rejectedAs", result.rejectedAs());
        reply.put("message", result.message());
    }

    private static Map<String, Object> describe(Result.Machine machine) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("ref", machine.ref());
        fields.put("hostname", machine.hostname());
        fields.put("lastSeenAt", LicenseFile.TIME.format(machine.lastSeenAt()));
        fields.put("current", machine.current());
        return fields;
    }

    private static void eachKey(Map<String, Object> command, BiConsumer<String, String> use) {
        for (Object each : (List<?>) command.get("publicKeys")) {
            Map<?, ?> key = (Map<?, ?>) each;
            use.accept((String) key.get("keyId"), (String) key.get("publicKey"));
        }
    }

    private static String text(Map<String, Object> command, String name) {
        return (String) command.get(name);
    }

    private static long number(Map<String, Object> command, String name) {
        return ((Double) command.get(name)).longValue();
    }
}
