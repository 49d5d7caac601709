using System.Diagnostics;
using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Text.Json;
using System.Text.RegularExpressions;
using Org.BouncyCastle.Crypto.Parameters;

namespace Keyward;

/// <summary>The outcome of a call. Inapplicable fields are null.</summary>
/// <param name="Source">"online" if the service decided, "offline" if it was not reachable.</param>
/// <param name="Code">
/// VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, or an outcome of one of the other calls.
/// </param>
/// <param name="ExpiresAt">The expiry. Null if the license never expires or the check is rejected.</param>
/// <param name="Reason">The reason of CONFIGURATION, OFFLINE_REFUSED, BAD_FILE and NOT_IMPORTED.</param>
/// <param name="RejectedAs">The code of the online rejection that ended the use of the file.</param>
/// <param name="Message">A sentence for the user of the app, if the license is not valid. The text may change.</param>
/// <param name="Detail">A description of an outage for the developer.</param>
/// <param name="RefreshAfter">The time from which the file is no longer good.</param>
/// <param name="GraceEndsAt">The end of the grace period, if the license has expired and is in it.</param>
/// <param name="Entitlements">true, a long or a string for each name, if the license is valid and the option is set.</param>
/// <param name="Machines">The used slots, with TOO_MANY_MACHINES of <c>ActivateAsync</c> and LISTED.</param>
/// <param name="ReleasesLeft">With LISTED, the number of slots that apps may release now. Null without a limit.</param>
/// <param name="List">With LISTED, at most 100 machines that hold slots.</param>
public sealed record LicenseResult(
    string Source,
    string Code,
    DateTimeOffset? ExpiresAt = null,
    string? Reason = null,
    string? RejectedAs = null,
    string? Message = null,
    string? Detail = null,
    DateTimeOffset? RefreshAfter = null,
    DateTimeOffset? GraceEndsAt = null,
    IReadOnlyDictionary<string, object>? Entitlements = null,
    LicenseMachines? Machines = null,
    int? ReleasesLeft = null,
    IReadOnlyList<LicenseMachine>? List = null)
{
    /// <summary>Whether the app may run.</summary>
    public bool Valid => Code == "VALID";
}

/// <summary>The used slots of a license and their limit, which is 0 without a limit.</summary>
public sealed record LicenseMachines(int Used, int Max);

/// <summary>A machine that holds a slot of the license.</summary>
/// <param name="Ref">The name of the machine for <c>ReleaseAsync</c>.</param>
/// <param name="Hostname">The host name that the machine sent with <c>ActivateAsync</c>, or null.</param>
/// <param name="LastSeenAt">The approximate time of its last check.</param>
/// <param name="Current">Whether this is the machine of the client.</param>
public sealed record LicenseMachine(string Ref, string? Hostname, DateTimeOffset LastSeenAt, bool Current);

/// <summary>Sends requests and classifies their outcomes. Invariant: a call ends within its time budget.</summary>
internal sealed partial class LicenseTransport(
    string baseUrl,
    string apiKey,
    TimeSpan timeout,
    Dictionary<string, Ed25519PublicKeyParameters> keys)
{
    internal const string FilePath = "/api/v1/licenses/file";
    internal const string MachinesPath = "/api/v1/machines";
    internal const string DeactivatePath = "/api/v1/deactivate";
    private const int MaxAttempts = 3;
    private const int MaxBodyBytes = 64 * 1024;
    private static readonly HashSet<string> Rejections =
    [
        "NOT_FOUND", "BLACKLISTED", "REVOKED", "SUSPENDED", "EXPIRED", "FINGERPRINT_REQUIRED", "TOO_MANY_MACHINES",
        "MACHINE_NOT_ACTIVE", "NOT_STARTED", "NOT_ENABLED", // checks are not rejected with these three
    ];

    // The service never redirects, and following a redirect would send the API key to another host.
    private readonly HttpClient http = new(new SocketsHttpHandler { AllowAutoRedirect = false })
    {
        Timeout = Timeout.InfiniteTimeSpan,
        MaxResponseContentBufferSize = MaxBodyBytes,
    };

    [GeneratedRegex("^[A-Z][A-Z0-9_]{1,63}\\z")]
    private static partial Regex CodeForm();

    /// <summary>Parses a response with a status that the endpoint defines. Returns null for a body that the service never sends.</summary>
    internal delegate LicenseResult? Reader(int status, byte[] body);

    /// <summary>A result, the time of the response (the signed time, or that of Date), and the requested pause before a retry.</summary>
    internal sealed record Response(
        LicenseResult Result,
        DateTimeOffset? Date = null,
        TimeSpan RetryAfter = default,
        bool IsSigned = false);

    /// <summary>
    /// Returns the result of <c>read</c>, UNREACHABLE or CONFIGURATION. Retries outages within the budget. Each attempt asks for a signature
    /// under the next public key, because the service does not sign under a withdrawn one. <c>keys</c> is empty if no signature is required.
    /// </summary>
    internal async Task<Response> CallAsync(
        string path,
        Dictionary<string, object> body,
        Stopwatch elapsed,
        Reader read,
        DateTimeOffset latestSigned,
        CancellationToken cancellation)
    {
        var keyIds = path is FilePath or MachinesPath ? [] : keys.Keys.ToArray();
        for (var attempt = 1; ; attempt++)
        {
            var left = timeout - elapsed.Elapsed;
            var keyId = keyIds.Length == 0 ? null : keyIds[(attempt - 1) % keyIds.Length];
            var budget = attempt < MaxAttempts ? left / 2 : left;
            var response = await RequestAsync(path, body, budget, read, keyId, latestSigned, cancellation).ConfigureAwait(false);
            // The random part prevents apps from retrying in unison after an outage.
            var pause = response.RetryAfter + TimeSpan.FromMilliseconds(Random.Shared.Next(200 * attempt));
            var isFinal = attempt == MaxAttempts || timeout - elapsed.Elapsed - pause < timeout / 8;
            if (response.Result.Code != "UNREACHABLE" || isFinal) return response;
            await Task.Delay(pause, cancellation).ConfigureAwait(false);
        }
    }

    private async Task<Response> RequestAsync(
        string path,
        Dictionary<string, object> body,
        TimeSpan budget,
        Reader read,
        string? keyId,
        DateTimeOffset latestSigned,
        CancellationToken cancellation)
    {
        var nonce = LicenseFile.Encode(RandomNumberGenerator.GetBytes(16));
        var fields = keyId is null ? body : new Dictionary<string, object>(body) { ["nonce"] = nonce, ["kid"] = keyId };
        var sent = LicenseFile.WriteObject(json =>
        {
            foreach (var (name, value) in fields) WriteField(json, name, value);
        });
        using var request = new HttpRequestMessage(HttpMethod.Post, baseUrl + path);
        request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", apiKey);
        request.Content = new ByteArrayContent(sent);
        request.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
        try
        {
            using var deadline = CancellationTokenSource.CreateLinkedTokenSource(cancellation);
            deadline.CancelAfter(budget > TimeSpan.Zero ? budget : TimeSpan.FromMilliseconds(1));
            using var response = await http.SendAsync(request, deadline.Token).ConfigureAwait(false);
            var received = await response.Content.ReadAsByteArrayAsync(deadline.Token).ConfigureAwait(false);
            var status = (int)response.StatusCode;
            if (keyId is null || status is 408 or >= 500) return Classify(path, response, received, read, null);
            var header = response.Headers.TryGetValues("keyward-signature", out var values) ? string.Join(",", values) : null;
            var answer = new LicenseAnswer(header, path, status, apiKey, sent, received);
            var (outcome, signedAt) = answer.Verify(keyId, keys[keyId], latestSigned);
            return signedAt is null
                ? Outage($"The response with status {status} is not signed for this request: {outcome}.")
                : Classify(path, response, received, read, signedAt);
        }
        catch (OperationCanceledException) when (!cancellation.IsCancellationRequested)
        {
            return Outage("No response arrived within the time budget.");
        }
        catch (Exception error) when (error is HttpRequestException or IOException)
        {
            cancellation.ThrowIfCancellationRequested();
            return Outage($"No connection: {error.Message}");
        }
    }

    private static void WriteField(Utf8JsonWriter json, string name, object value)
    {
        if (value is string text)
        {
            json.WriteString(name, text);
            return;
        }
        json.WriteStartArray(name);
        foreach (var each in (string[])value) json.WriteStringValue(each);
        json.WriteEndArray();
    }

    private static Response Classify(
        string path,
        HttpResponseMessage response,
        byte[] body,
        Reader read,
        DateTimeOffset? signedAt)
    {
        var status = (int)response.StatusCode;
        var isDefined = status == 200 || path switch
        {
            FilePath => status == 409,
            MachinesPath => status is 403 or 409,
            DeactivatePath => status == 403,
            _ => status == 400,
        };
        if (isDefined && read(status, body) is { } result)
            return new Response(result, signedAt ?? response.Headers.Date, IsSigned: signedAt is not null);
        if (status is < 400 or 408 or >= 500 || isDefined)
        {
            var pause = response.Headers.RetryAfter?.Delta ?? TimeSpan.Zero;
            return Outage($"The service is unavailable or is not Keyward: status {status}.") with { RetryAfter = pause };
        }
        var reason = status switch
        {
            401 => "UNAUTHORIZED",
            403 => "FORBIDDEN",
            404 or 405 => "WRONG_ADDRESS",
            400 or 413 or 415 or 422 => "INVALID_REQUEST",
            429 => "RATE_LIMITED",
            _ => "UNEXPECTED_STATUS",
        };
        var message = Message(LicenseFile.ParseObject(body), $"The service responded with status {status}.");
        return new Response(new LicenseResult("online", "CONFIGURATION", Reason: reason, Message: message));
    }

    internal static LicenseResult? ReadVerdictV2(int status, byte[] text, bool hasEntitlements)
    {
        if (ReadVerdict(status, text, hasEntitlements) is not { } result || LicenseFile.ParseObject(text) is not { } body) return null;
        var isOther = body.TryGetProperty("status", out var inBody)
            && !(inBody.ValueKind == JsonValueKind.Number && inBody.TryGetInt32(out var number) && number == status);
        return isOther || result.Valid != (status == 200) ? null : result;
    }

    /// <summary>Parses the fields that the verdicts of v1 and v2 have in common.</summary>
    internal static LicenseResult? ReadVerdict(int status, byte[] text, bool hasEntitlements)
    {
        if (LicenseFile.ParseObject(text) is not { } body || !body.TryGetProperty("valid", out var valid)) return null;
        var code = LicenseFile.Text(body, "code");
        if (valid.ValueKind == JsonValueKind.False && code != "VALID") return ReadRejection(body);
        if (valid.ValueKind != JsonValueKind.True || code != "VALID" || status != 200) return null;
        if (!body.TryGetProperty("expiresAt", out var expires)) return null;
        var expiresAt = LicenseFile.ParseTime(LicenseFile.Text(body, "expiresAt"));
        var isTime = expires.ValueKind == JsonValueKind.Null || expiresAt is not null;
        var graceEndsAt = LicenseFile.ParseTime(LicenseFile.Text(body, "graceEndsAt"));
        var entitlements = hasEntitlements ? LicenseFile.ReadEntitlements(body) : null;
        if (!isTime || (hasEntitlements && entitlements is null)) return null;
        return new LicenseResult("online", code, expiresAt, GraceEndsAt: graceEndsAt, Entitlements: entitlements);
    }

    /// <summary>Parses the code, the message and the used slots of a rejection.</summary>
    internal static LicenseResult? ReadRejection(JsonElement? body)
    {
        if (LicenseFile.Text(body, "code") is not { } code || !CodeForm().IsMatch(code)) return null;
        var machines = body!.Value.TryGetProperty("machines", out var counts) && counts.ValueKind == JsonValueKind.Object
            && counts.TryGetProperty("used", out var used) && used.ValueKind == JsonValueKind.Number
            && counts.TryGetProperty("max", out var max) && max.ValueKind == JsonValueKind.Number
            && used.TryGetInt32(out var usedCount) && max.TryGetInt32(out var maxCount)
            ? new LicenseMachines(usedCount, maxCount)
            : null;
        var known = Rejections.Contains(code) ? code : "REJECTED";
        return new LicenseResult("online", known, Message: Message(body, "The check was rejected."), Machines: machines);
    }

    internal static LicenseResult? ReadDeactivation(int status, byte[] text)
    {
        if (LicenseFile.ParseObject(text) is not { } body) return null;
        if (status != 200) return LicenseFile.Text(body, "code") == "NOT_ENABLED" ? ReadRejection(body) : null;
        if (!body.TryGetProperty("deactivated", out var deactivated)) return null;
        return deactivated.ValueKind switch
        {
            JsonValueKind.True => new LicenseResult("online", "DEACTIVATED"),
            JsonValueKind.False => new LicenseResult("online", "NOT_ACTIVE"),
            _ => null,
        };
    }

    /// <summary>Parses the machines of a license, or the reason why the service lists none.</summary>
    internal static LicenseResult? ReadMachines(int status, byte[] text)
    {
        if (LicenseFile.ParseObject(text) is not { } body) return null;
        if (status != 200) return ReadRejection(body);
        var isGood = TryCount(body, "used", out var used) && used is not null;
        isGood &= TryCount(body, "max", out var max) & TryCount(body, "releasesLeft", out var left);
        if (!isGood || !body.TryGetProperty("machines", out var listed) || listed.ValueKind != JsonValueKind.Array) return null;
        var list = new List<LicenseMachine>();
        foreach (var each in listed.EnumerateArray())
        {
            if (each.ValueKind != JsonValueKind.Object || LicenseFile.Text(each, "ref") is not { } reference) return null;
            var hostname = LicenseFile.Text(each, "hostname");
            var isNamed = hostname is not null || !each.TryGetProperty("hostname", out var name) || name.ValueKind == JsonValueKind.Null;
            var hasCurrent = each.TryGetProperty("current", out var current) && current.ValueKind is JsonValueKind.True or JsonValueKind.False;
            if (!isNamed || !hasCurrent || LicenseFile.ParseTime(LicenseFile.Text(each, "lastSeenAt")) is not { } seen) return null;
            list.Add(new LicenseMachine(reference, hostname, seen, current.GetBoolean()));
        }
        return new LicenseResult("online", "LISTED", Machines: new(used!.Value, max ?? 0), ReleasesLeft: left, List: list);
    }

    /// <summary>Reads an integer that may be null or absent. Returns false for any other value.</summary>
    private static bool TryCount(JsonElement body, string name, out int? count)
    {
        count = null;
        if (!body.TryGetProperty(name, out var value) || value.ValueKind == JsonValueKind.Null) return true;
        if (value.ValueKind != JsonValueKind.Number || !value.TryGetInt32(out var number)) return false;
        count = number;
        return true;
    }

    /// <summary>
    /// Returns the message of a response: <c>message</c> on v2, <c>detail</c> elsewhere. Returns <c>otherwise</c> if the response has no text.
    /// </summary>
    private static string Message(JsonElement? body, string otherwise) =>
        LicenseFile.Text(body, "message") is { Length: > 0 } message ? message
        : LicenseFile.Text(body, "detail") is { Length: > 0 } detail ? detail
        : otherwise;

    private static Response Outage(string detail) => new(new LicenseResult(
        "offline",
        "UNREACHABLE",
        Message: "The license service cannot be reached. Connect to the internet and try again.",
        Detail: detail));
}
