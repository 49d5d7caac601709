using System.Diagnostics;
using System.Text;
using System.Text.RegularExpressions;
using Org.BouncyCastle.Crypto.Parameters;

namespace Keyward;

/// <summary>The options of a client.</summary>
public sealed record LicenseOptions
{
    /// <summary>The base address of the service, such as <c>https://licenses.example.com</c>.</summary>
    public required string BaseUrl { get; init; }

    /// <summary>The API key of the organization. It ships with the app, so it is not a secret.</summary>
    public required string ApiKey { get; init; }

    /// <summary>Public keys by key id, as <c>GET /api/v1/public-keys</c> returns them. They ship with the app.</summary>
    public required Dictionary<string, string> PublicKeys { get; init; }

    /// <summary>The license key that the customer entered.</summary>
    public required string LicenseKey { get; init; }

    /// <summary>The id of the product that the app is. Files of other products are refused.</summary>
    public string? ProductId { get; init; }

    /// <summary>The path of the file for the client's state.</summary>
    public required string Storage { get; init; }

    /// <summary>The id of this machine. Licenses with a machine limit need one.</summary>
    public string? MachineId { get; init; }

    /// <summary>The name of this machine for people to read. <c>ActivateAsync</c> sends it.</summary>
    public string? Hostname { get; init; }

    /// <summary>The time budget of a call with all its retries.</summary>
    public TimeSpan Timeout { get; init; } = TimeSpan.FromSeconds(5);

    /// <summary>Allows <c>http</c> on another host than this machine.</summary>
    public bool AllowHttp { get; init; }

    /// <summary>The device's clock.</summary>
    public Func<DateTimeOffset> Now { get; init; } = () => DateTimeOffset.UtcNow;
}

/// <summary>
/// Checks the license of an app: the service decides when it can be reached, and a signed file when it cannot (docs/api.md,
/// C1 to C6). No method throws, except the constructor for options that cannot work. Several threads may use a client.
/// </summary>
public sealed partial class LicenseClient
{
    private static readonly TimeSpan Day = TimeSpan.FromDays(1);
    private static readonly TimeSpan RefreshPause = TimeSpan.FromMinutes(1);

    private readonly LicenseOptions options;
    private readonly string licenseKey;
    private readonly Dictionary<string, Ed25519PublicKeyParameters> keys;
    private readonly LicenseTransport transport;
    private readonly LicenseStorage storage;
    private readonly object mutex = new(); // guards the storage and the fields below
    private readonly Stopwatch sinceRefresh = new();
    private string? rejectedAs; // a rejection holds in this process even if it cannot be written

    /// <summary>Creates a client. Throws an ArgumentException for options that cannot work.</summary>
    public LicenseClient(LicenseOptions options)
    {
        var isAddress = Uri.TryCreate(options.BaseUrl, UriKind.Absolute, out var address);
        if (!isAddress || address!.Scheme is not ("https" or "http"))
            throw new ArgumentException($"BaseUrl must be an https address; got \"{options.BaseUrl}\".");
        var isLocal = address.IsLoopback || address.Host.EndsWith(".localhost", StringComparison.Ordinal);
        if (address.Scheme == "http" && !isLocal && !options.AllowHttp)
            throw new ArgumentException($"BaseUrl must use https, or anybody on the way could respond; got \"{options.BaseUrl}\".");
        if (options.ApiKey == "" || options.ApiKey.Any(character => character is < '!' or > '~'))
            throw new ArgumentException("ApiKey must be printable ASCII without blanks.");
        if (options.LicenseKey == "" || options.PublicKeys.Count == 0)
            throw new ArgumentException("LicenseKey and PublicKeys must not be empty.");
        this.options = options;
        keys = options.PublicKeys.ToDictionary(each => each.Key, each => LicenseFile.ReadPublicKey(each.Value));
        licenseKey = NormalizeLicenseKey(options.LicenseKey);
        transport = new LicenseTransport(options.BaseUrl.TrimEnd('/'), options.ApiKey, options.Timeout);
        storage = new LicenseStorage(options.Storage);
    }

    /// <summary>Checks the license: online where possible, else with the stored file.</summary>
    public Task<LicenseResult> ValidateAsync() =>
        CheckAsync("/api/v2/license/validate", Body("license"), LicenseTransport.ReadVerdictV2);

    /// <summary>Checks the license as <c>ValidateAsync</c> does, and sends the name of this machine.</summary>
    public Task<LicenseResult> ActivateAsync()
    {
        var body = Body("licenseKey");
        if (!string.IsNullOrEmpty(options.Hostname)) body["hostname"] = options.Hostname;
        return CheckAsync("/api/v1/activate", body, LicenseTransport.ReadVerdict);
    }

    /// <summary>Releases this machine's slot and ends the use of the stored file. Works online only.</summary>
    public async Task<LicenseResult> DeactivateAsync()
    {
        var elapsed = Stopwatch.StartNew();
        var call = transport.CallAsync("/api/v1/deactivate", Body("licenseKey"), elapsed, LicenseTransport.ReadDeactivation);
        var result = (await call.ConfigureAwait(false)).Result;
        if (result.Code is "DEACTIVATED" or "NOT_ACTIVE") Change(state => Reject(state, "DEACTIVATED"));
        return result;
    }

    [GeneratedRegex("[\\s\u2010-\u2015\u2212-]+")]
    private static partial Regex Separators();

    [GeneratedRegex("^[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}\\z")]
    private static partial Regex GeneratedKey();

    /// <summary>Returns a generated key as the service knows it, in upper case with hyphens, and other texts unchanged.</summary>
    internal static string NormalizeLicenseKey(string text)
    {
        var key = Separators().Replace(text.Trim(), "-").ToUpperInvariant();
        return GeneratedKey().IsMatch(key) ? key : text;
    }

    private Dictionary<string, string> Body(string keyField)
    {
        var body = new Dictionary<string, string> { [keyField] = licenseKey };
        if (!string.IsNullOrEmpty(options.MachineId)) body["fingerprint"] = options.MachineId;
        return body;
    }

    private async Task<LicenseResult> CheckAsync(string path, Dictionary<string, string> body, LicenseTransport.Reader read)
    {
        var elapsed = Stopwatch.StartNew();
        var (result, date, _) = await transport.CallAsync(path, body, elapsed, read).ConfigureAwait(false);
        if (result.Code == "UNREACHABLE") return DecideOffline(result.Message);
        if (result.Code == "CONFIGURATION") return result;
        Change(state =>
        {
            // The service's clock corrects a device whose clock once ran ahead.
            state.LatestSeenMs = date?.ToUnixTimeMilliseconds() ?? state.LatestSeenMs;
            Reject(state, result.Valid ? null : result.Code);
        });
        if (result.Valid) await RefreshFileAsync(result.ExpiresAt, elapsed).ConfigureAwait(false);
        return result;
    }

    private LicenseResult DecideOffline(string? message)
    {
        var now = options.Now();
        var judged = new Judgement("NO_FILE");
        string? rejection = null;
        Change(state =>
        {
            var stored = state.Find(licenseKey);
            rejection = rejectedAs ?? stored?.RejectedAs;
            if (stored is not null && rejection is null) judged = JudgeStored(stored, state, now);
            state.LatestSeenMs = Math.Max(state.LatestSeenMs, now.ToUnixTimeMilliseconds());
        });
        if (judged.File is { } file) return new LicenseResult("offline", "VALID", file.ExpiresAt, Message: message);
        var reason = judged.Outcome == "MALFORMED" ? "BAD_SIGNATURE" : judged.Outcome;
        return new LicenseResult("offline", "OFFLINE_REFUSED", null, reason, rejection, message);
    }

    /// <summary>Fetches a new file if one is due, in what is left of the time budget. A failure leaves the old one.</summary>
    private async Task RefreshFileAsync(DateTimeOffset? expiresAt, Stopwatch elapsed)
    {
        lock (mutex)
        {
            var isTooSoon = sinceRefresh.IsRunning && sinceRefresh.Elapsed < RefreshPause;
            if (isTooSoon || !IsDue(expiresAt)) return;
            sinceRefresh.Restart();
        }
        var received = "";
        LicenseResult Read(int status, byte[] body)
        {
            received = status == 200 ? Encoding.UTF8.GetString(body) : "";
            return new LicenseResult("online", "RECEIVED");
        }
        await transport.CallAsync("/api/v1/licenses/file", Body("licenseKey"), elapsed, Read).ConfigureAwait(false);
        var file = LicenseFile.Verify(received, keys).File;
        if (file?.LicenseKey == licenseKey) Change(state => state.Add(licenseKey, received));
    }

    /// <summary>Returns whether the stored file is missing, not good, a day old, past half of its life, or of another expiry.</summary>
    private bool IsDue(DateTimeOffset? expiresAt)
    {
        var (state, now) = (storage.Read(), options.Now());
        if (state.Find(licenseKey) is not { } stored || JudgeStored(stored, state, now).File is not { } file) return true;
        var halfLife = (file.RefreshAfter - file.IssuedAt) / 2;
        return file.ExpiresAt != expiresAt || now >= file.IssuedAt + (halfLife < Day ? halfLife : Day);
    }

    private Judgement JudgeStored(StoredLicense stored, LicenseState state, DateTimeOffset now)
    {
        // A time that no date can hold comes from an edited storage and counts as none.
        var isTime = state.LatestSeenMs is >= 0 and < 253_402_300_800_000;
        var latestSeen = DateTimeOffset.FromUnixTimeMilliseconds(isTime ? state.LatestSeenMs : 0);
        return LicenseFile.Judge(stored.File, keys, licenseKey, options.ProductId, now, latestSeen);
    }

    /// <summary>Records the code that ends the use of the file; null allows it again.</summary>
    private void Reject(LicenseState state, string? code)
    {
        rejectedAs = code;
        state.Reject(licenseKey, code);
    }

    /// <summary>Reads the state, applies the edit and writes it. If it cannot be written, the check continues.</summary>
    private void Change(Action<LicenseState> edit)
    {
        lock (mutex)
        {
            var state = storage.Read();
            edit(state);
            try
            {
                storage.Write(state);
            }
            catch (Exception error) when (error is IOException or UnauthorizedAccessException)
            {
                // A rejection that could not be written holds in this process.
            }
        }
    }
}
