using System.Diagnostics;
using System.Text;
using System.Text.RegularExpressions;
using Org.BouncyCastle.Crypto.Parameters;

namespace Keyward;

/// <summary>The options of a client.</summary>
public sealed record LicenseOptions
{
    /// <summary>The base URL of the service, such as <c>https://licenses.example.com</c>.</summary>
    public required string BaseUrl { get; init; }

    /// <summary>The API key of the organization. The app contains it, so it is not a secret.</summary>
    public required string ApiKey { get; init; }

    /// <summary>The public keys of <c>GET /api/v1/public-keys</c> by key id. The app contains them.</summary>
    public required Dictionary<string, string> PublicKeys { get; init; }

    /// <summary>The license key that the customer entered.</summary>
    public required string LicenseKey { get; init; }

    /// <summary>The product id of the app. Files of other products are rejected.</summary>
    public string? ProductId { get; init; }

    /// <summary>The path of the file for the client's state.</summary>
    public required string Storage { get; init; }

    /// <summary>The id of this machine. Licenses with a machine limit require one.</summary>
    public string? MachineId { get; init; }

    /// <summary>The name of this machine for people, which <c>ActivateAsync</c> sends.</summary>
    public string? Hostname { get; init; }

    /// <summary>The time budget of a call with all retries.</summary>
    public TimeSpan Timeout { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>Whether <c>http</c> is allowed for other hosts than this machine.</summary>
    public bool AllowHttp { get; init; }

    /// <summary>Whether a response that the service has not signed for exactly its request counts as an outage.</summary>
    public bool RequireSignature { get; init; }

    /// <summary>Whether the results of valid checks contain the entitlements of the license.</summary>
    public bool Entitlements { get; init; }

    /// <summary>The device's clock.</summary>
    public Func<DateTimeOffset> Now { get; init; } = () => DateTimeOffset.UtcNow;
}

/// <summary>
/// Checks the license of an app: the service decides when it is reachable, and a signed file during an outage (docs/api.md,
/// C1 to C6). Only the constructor throws, for invalid options. A canceled call throws an OperationCanceledException, and the stored file
/// stays as it is. Several threads may use a client.
/// </summary>
public sealed partial class LicenseClient
{
    private static readonly TimeSpan Day = TimeSpan.FromDays(1);
    private static readonly TimeSpan RefreshPause = TimeSpan.FromMinutes(1);
    private const string MessageAfterRejection =
        "The last online check rejected the license, or it was deactivated on this machine. Connect to the internet and try again.";
    private static readonly Dictionary<string, string> OfflineMessages = new()
    {
        ["NO_FILE"] = "The license could not be checked. Connect to the internet and try again.",
        ["BAD_SIGNATURE"] = "The stored license file is damaged. Connect to the internet and try again.",
        ["UNKNOWN_KEY"] = "This version of the app cannot read the stored license file. Connect to the internet and try again.",
        ["WRONG_LICENSE"] = "The stored license file belongs to another license key. Connect to the internet and try again.",
        ["WRONG_PRODUCT"] = "The stored license file belongs to another product. Connect to the internet and try again.",
        ["WRONG_MACHINE"] = "The stored license file belongs to another machine. Connect to the internet and try again.",
        ["FILE_EXPIRED"] = "The license has expired. Renew the license, connect to the internet and try again.",
        ["REFRESH_NEEDED"] = "The license must be checked online again. Connect to the internet and try again.",
        ["CLOCK_SET_BACK"] = "The clock of this machine is wrong. Set the correct date and time and try again.",
    };

    private readonly LicenseOptions options;
    private readonly LicenseFileUser user;
    private readonly Dictionary<string, Ed25519PublicKeyParameters> keys;
    private readonly LicenseTransport transport;
    private readonly LicenseStorage storage;
    private readonly object mutex = new(); // guards the storage and the fields below
    private readonly Stopwatch sinceRefresh = new();
    private string? rejectedAs; // the rejection in this process, which may not have been written
    private long latestSignedMs; // the time of the latest signed response in this process

    /// <summary>Creates a client. Throws an ArgumentException for invalid options.</summary>
    public LicenseClient(LicenseOptions options)
    {
        var isAddress = Uri.TryCreate(options.BaseUrl, UriKind.Absolute, out var address);
        if (!isAddress || address!.Scheme is not ("https" or "http"))
            throw new ArgumentException(
                $"BaseUrl must be an https URL such as https://licenses.example.com; got \"{options.BaseUrl}\".");
        var isLocal = address.IsLoopback || address.Host.EndsWith(".localhost", StringComparison.Ordinal);
        if (address.Scheme == "http" && !isLocal && !options.AllowHttp)
            throw new ArgumentException($"BaseUrl must use https, because responses over http can be forged; got \"{options.BaseUrl}\".");
        if (options.ApiKey == "" || options.ApiKey.Any(character => character is < '!' or > '~'))
            throw new ArgumentException("ApiKey must consist of printable ASCII characters without blanks.");
        if (options.LicenseKey == "" || options.PublicKeys.Count == 0)
            throw new ArgumentException("LicenseKey and PublicKeys are required.");
        this.options = options;
        keys = options.PublicKeys.ToDictionary(each => each.Key, each => LicenseFile.ReadPublicKey(each.Value));
        // The product id is in lower case, as in license files.
        user = new LicenseFileUser(NormalizeLicenseKey(options.LicenseKey), options.ProductId?.ToLowerInvariant(), options.MachineId);
        transport = new LicenseTransport(options.BaseUrl.TrimEnd('/'), options.ApiKey, options.Timeout, options.RequireSignature ? keys : new());
        storage = new LicenseStorage(options.Storage);
    }

    /// <summary>Checks the license online, or with the stored file during an outage.</summary>
    public Task<LicenseResult> ValidateAsync(CancellationToken cancellation = default) =>
        CheckAsync("/api/v2/license/validate", Body("license"), LicenseTransport.ReadVerdictV2, cancellation);

    /// <summary>Checks the license like <c>ValidateAsync</c> and sends the name of this machine.</summary>
    public Task<LicenseResult> ActivateAsync(CancellationToken cancellation = default)
    {
        var body = Body("licenseKey");
        if (!string.IsNullOrEmpty(options.Hostname)) body["hostname"] = options.Hostname;
        return CheckAsync("/api/v1/activate", body, LicenseTransport.ReadVerdict, cancellation);
    }

    /// <summary>Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service.</summary>
    public async Task<LicenseResult> DeactivateAsync(CancellationToken cancellation = default)
    {
        var elapsed = Stopwatch.StartNew();
        var call = transport.CallAsync(LicenseTransport.DeactivatePath, Body("licenseKey"), elapsed, LicenseTransport.ReadDeactivation, LatestSigned(), cancellation);
        var response = await call.ConfigureAwait(false);
        if (response.Result.Code == "DEACTIVATED")
            Change(state =>
            {
                if (response.IsSigned) SawSignature(state, response.Date);
                Reject(state, "DEACTIVATED");
            });
        return response.Result;
    }

    /// <summary>
    /// Lists the machines that hold slots of the license, so that a person can choose which one to release. Requires the service. Returns LISTED,
    /// NOT_ENABLED if the license does not let apps list its machines, NOT_FOUND, CONFIGURATION or UNREACHABLE.
    /// </summary>
    public async Task<LicenseResult> MachinesAsync(CancellationToken cancellation = default)
    {
        var (path, elapsed) = (LicenseTransport.MachinesPath, Stopwatch.StartNew());
        var call = transport.CallAsync(path, Body("licenseKey"), elapsed, LicenseTransport.ReadMachines, default, cancellation);
        return (await call.ConfigureAwait(false)).Result;
    }

    /// <summary>
    /// Releases the slot of another machine of the license. <c>reference</c> is the <c>Ref</c> of a listed machine. Returns the codes of
    /// <c>DeactivateAsync</c>, or NOT_ENABLED like <c>MachinesAsync</c>.
    /// </summary>
    public async Task<LicenseResult> ReleaseAsync(string reference, CancellationToken cancellation = default)
    {
        var (path, elapsed) = (LicenseTransport.DeactivatePath, Stopwatch.StartNew());
        var body = new Dictionary<string, object> { ["licenseKey"] = user.LicenseKey, ["ref"] = reference };
        var call = transport.CallAsync(path, body, elapsed, LicenseTransport.ReadDeactivation, LatestSigned(), cancellation);
        var response = await call.ConfigureAwait(false);
        if (response.IsSigned) Change(state => SawSignature(state, response.Date));
        return response.Result;
    }

    /// <summary>
    /// Fetches and stores a license file now. Returns REFRESHED, UNREACHABLE, CONFIGURATION, or the reason why the service issues no file.
    /// BAD_FILE: the received file is for another license, product or machine, or no shipped key has signed it. NOT_STORED: the storage failed.
    /// The stored file is kept then.
    /// </summary>
    public Task<LicenseResult> RefreshFileAsync(CancellationToken cancellation = default) => FetchFileAsync(Stopwatch.StartNew(), cancellation);

    /// <summary>
    /// Stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now. Returns IMPORTED, or
    /// NOT_IMPORTED with the reason of an offline refusal or NOT_STORED.
    /// </summary>
    public LicenseResult ImportFile(string text)
    {
        text = text.Trim();
        Judgement judged;
        lock (mutex) judged = JudgeAt(text, storage.Read(), options.Now());
        if (judged.File is { } file && Store(text)) return Stored("offline", "IMPORTED", file);
        return new LicenseResult("offline", "NOT_IMPORTED", Reason: judged.File is null ? ForApps(judged) : "NOT_STORED");
    }

    /// <summary>
    /// Returns the code with which a person requests the file of this machine, for a machine without network access. The vendor turns the code into
    /// a file for <c>ImportFile</c>. Returns null without a machine id.
    /// </summary>
    public string? RequestCode()
    {
        if (string.IsNullOrEmpty(user.MachineId)) return null;
        var request = new Dictionary<string, string> { ["licenseKey"] = user.LicenseKey, ["machineId"] = user.MachineId };
        if (!string.IsNullOrEmpty(options.Hostname)) request["hostname"] = options.Hostname;
        return LicenseFile.RequestCode(request);
    }

    [GeneratedRegex("[\\s\u2010-\u2015\u2212-]+")]
    private static partial Regex Separators();

    [GeneratedRegex("^[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}\\z")]
    private static partial Regex GeneratedKey();

    /// <summary>Returns a generated key in upper case with hyphens. Returns any other text unchanged.</summary>
    internal static string NormalizeLicenseKey(string text)
    {
        var key = Separators().Replace(text.Trim(), "-").ToUpperInvariant();
        return GeneratedKey().IsMatch(key) ? key : text;
    }

    private Dictionary<string, object> Body(string keyField)
    {
        var body = new Dictionary<string, object> { [keyField] = user.LicenseKey };
        if (!string.IsNullOrEmpty(options.MachineId)) body["fingerprint"] = options.MachineId;
        return body;
    }

    private delegate LicenseResult? ReadVerdict(int status, byte[] text, bool hasEntitlements);

    private async Task<LicenseResult> CheckAsync(
        string path,
        Dictionary<string, object> body,
        ReadVerdict read,
        CancellationToken cancellation)
    {
        var elapsed = Stopwatch.StartNew();
        if (options.Entitlements) body["include"] = new[] { "entitlements" };
        LicenseResult? ReadAll(int status, byte[] text) => read(status, text, options.Entitlements);
        var call = transport.CallAsync(path, body, elapsed, ReadAll, LatestSigned(), cancellation);
        var (result, date, _, isSigned) = await call.ConfigureAwait(false);
        if (result.Code == "UNREACHABLE") return DecideOffline(result.Detail);
        if (result.Code == "CONFIGURATION") return result;
        Change(state =>
        {
            // The service's clock corrects a device whose clock was ahead.
            state.LatestSeenMs = date?.ToUnixTimeMilliseconds() ?? state.LatestSeenMs;
            if (isSigned) SawSignature(state, date);
            Reject(state, result.Valid ? null : result.Code);
        });
        if (result.Valid) await RefreshIfDueAsync(result.ExpiresAt, elapsed, cancellation).ConfigureAwait(false);
        return result;
    }

    private LicenseResult DecideOffline(string? detail)
    {
        var now = options.Now();
        var judged = new Judgement("NO_FILE");
        string? rejection = null;
        Change(state =>
        {
            var stored = state.Find(user.LicenseKey);
            rejection = rejectedAs ?? stored?.RejectedAs;
            if (stored is not null && rejection is null) judged = JudgeAt(stored.File, state, now);
            state.LatestSeenMs = Math.Max(state.LatestSeenMs, now.ToUnixTimeMilliseconds());
        });
        if (judged.File is { } file)
        {
            var grace = file.ExpiresAt <= now ? file.GraceEndsAt : null;
            return Stored("offline", "VALID", file) with
            {
                Detail = detail,
                GraceEndsAt = grace,
                Entitlements = options.Entitlements ? file.Entitlements : null,
            };
        }
        var reason = ForApps(judged);
        var message = rejection is null ? OfflineMessages[reason] : MessageAfterRejection;
        return new LicenseResult("offline", "OFFLINE_REFUSED", null, reason, rejection, message, detail);
    }

    /// <summary>Fetches a new file if one is due, within the rest of the time budget.</summary>
    private async Task RefreshIfDueAsync(DateTimeOffset? expiresAt, Stopwatch elapsed, CancellationToken cancellation)
    {
        lock (mutex)
        {
            var isTooSoon = sinceRefresh.IsRunning && sinceRefresh.Elapsed < RefreshPause;
            if (isTooSoon || !IsDue(expiresAt)) return;
            sinceRefresh.Restart();
        }
        await FetchFileAsync(elapsed, cancellation).ConfigureAwait(false);
    }

    private async Task<LicenseResult> FetchFileAsync(Stopwatch elapsed, CancellationToken cancellation)
    {
        string? received = null;
        LicenseResult? Read(int status, byte[] body)
        {
            if (status != 200) return LicenseTransport.ReadRejection(LicenseFile.ParseObject(body));
            received = Encoding.UTF8.GetString(body);
            return new LicenseResult("online", "RECEIVED");
        }
        var call = transport.CallAsync(LicenseTransport.FilePath, Body("licenseKey"), elapsed, Read, default, cancellation);
        var (result, _, _, _) = await call.ConfigureAwait(false);
        if (received is null) return result;
        var verified = LicenseFile.Verify(received, keys, user);
        if (verified.File is not { } file) return new LicenseResult("online", "BAD_FILE", Reason: ForApps(verified));
        return Store(received) ? Stored("online", "REFRESHED", file) : new LicenseResult("online", "NOT_STORED");
    }

    /// <summary>Stores a file and allows its use. Returns false if the write failed.</summary>
    private bool Store(string file) => Change(state =>
    {
        rejectedAs = null;
        state.Add(user.LicenseKey, file);
    });

    private static LicenseResult Stored(string source, string code, LicenseFile file) =>
        new(source, code, file.ExpiresAt, RefreshAfter: file.RefreshAfter);

    /// <summary>Returns the reason of an outcome, because apps handle malformed and wrongly signed files in the same way.</summary>
    private static string ForApps(Judgement judged) => judged.Outcome == "MALFORMED" ? "BAD_SIGNATURE" : judged.Outcome;

    /// <summary>Returns whether a new file is due: there is no good file, it is a day or half of its lifetime old, or its expiry differs.</summary>
    private bool IsDue(DateTimeOffset? expiresAt)
    {
        var (state, now) = (storage.Read(), options.Now());
        if (state.Find(user.LicenseKey) is not { } stored || JudgeAt(stored.File, state, now).File is not { } file) return true;
        var halfLife = (file.RefreshAfter - file.IssuedAt) / 2;
        return file.ExpiresAt != expiresAt || now >= file.IssuedAt + (halfLife < Day ? halfLife : Day);
    }

    private Judgement JudgeAt(string file, LicenseState state, DateTimeOffset now) =>
        LicenseFile.Judge(file, keys, user, now, TimeOf(state.LatestSeenMs));

    /// <summary>Returns a stored time. A time outside the range of dates comes from an edited storage and counts as absent.</summary>
    private static DateTimeOffset TimeOf(long ms) =>
        DateTimeOffset.FromUnixTimeMilliseconds(ms is >= 0 and < 253_402_300_800_000 ? ms : 0);

    private DateTimeOffset LatestSigned()
    {
        lock (mutex) return TimeOf(Math.Max(latestSignedMs, options.RequireSignature ? storage.Read().LatestSignedMs : 0));
    }

    /// <summary>Records the time of a signed response, which replaces the latest observed time.</summary>
    private void SawSignature(LicenseState state, DateTimeOffset? signedAt)
    {
        if (signedAt is not { } at) return;
        latestSignedMs = Math.Max(latestSignedMs, at.ToUnixTimeMilliseconds());
        state.LatestSeenMs = at.ToUnixTimeMilliseconds();
        state.LatestSignedMs = Math.Max(state.LatestSignedMs, latestSignedMs);
    }

    /// <summary>Records the code that ends the use of the file. Null allows it again.</summary>
    private void Reject(LicenseState state, string? code)
    {
        rejectedAs = code;
        state.Reject(user.LicenseKey, code);
    }

    /// <summary>Reads the state, applies the edit and writes the result. Returns false if the write failed.</summary>
    private bool Change(Action<LicenseState> edit)
    {
        lock (mutex)
        {
            var state = storage.Read();
            edit(state);
            try
            {
                storage.Write(state);
                return true;
            }
            catch (Exception error) when (error is IOException or UnauthorizedAccessException)
            {
                return false; // a rejection that could not be written stays in force in this process
            }
        }
    }
}
