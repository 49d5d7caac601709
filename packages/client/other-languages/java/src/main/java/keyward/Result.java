package keyward;

import java.time.Instant;
import java.util.List;
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
 * @param machines the used slots, with TOO_MANY_MACHINES of {@code activate} and LISTED
 * @param releasesLeft with LISTED, the number of slots that apps may release now; null without a limit
 * @param list with LISTED, at most 100 machines that hold slots; otherwise empty
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
        Machines machines,
        Integer releasesLeft,
        List<Machine> list) {
    /** The used slots of a license and their limit, which is 0 without a limit. */
    public record Machines(int used, int max) {}

    /**
     * A machine that holds a slot of the license.
     *
     * @param ref the name of the machine for {@code release}
     * @param hostname the host name that the machine sent with {@code activate}, or null
     * @param lastSeenAt the approximate time of its last check
     * @param current whether this is the machine of the client
     */
    public record Machine(String ref, String hostname, Instant lastSeenAt, boolean current) {}

    /** Returns whether the app may run. */
    public boolean valid() {
        return code.equals("VALID");
    }

    static Result online(String code, String message) {
        return failed("online", code, null, message, null);
    }

    static Result failed(String source, String code, String reason, String message, String detail) {
        return new Result(source, code, null, reason, null, message, detail, null, null, null, null, null, List.of());
    }

    static Result rejected(String code, String message, Machines machines) {
        return new Result("online", code, null, null, null, message, null, null, null, null, machines, null, List.of());
    }

    static Result valid(Instant expiresAt, Instant graceEndsAt, Map<String, Object> entitlements) {
        return new Result("online", "VALID", expiresAt, null, null, null, null, null, graceEndsAt, entitlements, null, null, List.of());
    }

    static Result listed(Machines machines, Integer releasesLeft, List<Machine> list) {
        return new Result("online", "LISTED", null, null, null, null, null, null, null, null, machines, releasesLeft, list);
    }

    /** The outcome of a call that has stored a file. */
    static Result stored(String source, String code, LicenseFile file) {
        return new Result(source, code, file.expiresAt(), null, null, null, null, file.refreshAfter(), null, null, null, null, List.of());
    }
}
