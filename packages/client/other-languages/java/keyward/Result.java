package keyward;

import java.time.Instant;
import java.util.Map;

/**
 * The outcome of a call. Inapplicable fields are null.
 *
 * @param source "online" if the service decided, "offline" if it was not reachable
 * @param code VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, or an outcome of one of the other calls
 * @param expiresAt null if the license never expires or the check is rejected
 * @param reason the reason of CONFIGURATION, OFFLINE_REFUSED, BAD_FILE and NOT_IMPORTED
 * @param rejectedAs the code of the online rejection that ended the use of the file
 * @param message a sentence for the user of the app, if the license is not valid; the text may change
 * @param detail a description of an outage for the developer
 * @param refreshAfter the time from which the file is no longer good
 * @param graceEndsAt the end of the grace period, if the license has expired and is in it
 * @param entitlements true, a Long or a String for each name, if the license is valid and the option is set
 * @param machines the used slots, if {@code activate} returns TOO_MANY_MACHINES
 */
public record Result(
        String source,
        String code,
        Instant expiresAt,
        String reason,
        String rejectedAs,
        String message,
        String detail,
        Instant refreshAfter,
        Instant graceEndsAt,
        Map<String, Object> entitlements,
        Machines machines) {
    /** The used slots of a license and their limit. */
    public record Machines(int used, int max) {}

    /** Returns whether the app may run. */
    public boolean valid() {
        return code.equals("VALID");
    }

    static Result online(String code, String message) {
        return failed("online", code, null, message, null);
    }

    static Result failed(String source, String code, String reason, String message, String detail) {
        return new Result(source, code, null, reason, null, message, detail, null, null, null, null);
    }

    static Result rejected(String code, String message, Machines machines) {
        return new Result("online", code, null, null, null, message, null, null, null, null, machines);
    }

    static Result valid(Instant expiresAt, Instant graceEndsAt, Map<String, Object> entitlements) {
        return new Result("online", "VALID", expiresAt, null, null, null, null, null, graceEndsAt, entitlements, null);
    }

    /** The outcome of a call that has stored a file. */
    static Result stored(String source, String code, LicenseFile file) {
        return new Result(source, code, file.expiresAt(), null, null, null, null, file.refreshAfter(), null, null, null);
    }
}
