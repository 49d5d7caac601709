package keyward;

import java.time.Instant;

/**
 * The outcome of a call. Inapplicable fields are null.
 *
 * @param source "online" if the service decided, "offline" if it was not reachable
 * @param code VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, DEACTIVATED, NOT_ACTIVE or UNREACHABLE
 * @param expiresAt null if the license never expires or the check is rejected
 * @param reason the reason of CONFIGURATION and OFFLINE_REFUSED
 * @param rejectedAs the code of the online rejection that ended the use of the file
 * @param message a sentence for the user of the app, if the license is not valid; the text may change
 * @param detail a description of an outage for the developer
 * @param refreshAfter offline, the time from which the file is no longer good
 * @param graceEndsAt the end of the grace period, if the license has expired and is in it
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
        Instant graceEndsAt) {
    /** Returns whether the app may run. */
    public boolean valid() {
        return code.equals("VALID");
    }

    static Result online(String code, String message) {
        return new Result("online", code, null, null, null, message, null, null, null);
    }

    static Result valid(Instant expiresAt, Instant graceEndsAt) {
        return new Result("online", "VALID", expiresAt, null, null, null, null, null, graceEndsAt);
    }
}
