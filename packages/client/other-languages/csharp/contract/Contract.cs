// Runs the C# client as a program for the contract suite (packages/client/contract-suite/README.md).

using System.Globalization;
using System.Text;
using System.Text.Json;
using Keyward;

LicenseClient? client = null;
while (Console.ReadLine() is { } line)
{
    using var document = JsonDocument.Parse(line);
    var command = document.RootElement;
    object reply;
    switch (command.GetProperty("command").GetString())
    {
        case "open":
            try
            {
                client = Open(command);
                reply = new { };
            }
            catch (ArgumentException error)
            {
                reply = new { error = error.Message };
            }
            break;
        case "judge":
            reply = new { outcome = Judge(command) };
            break;
        case "verify":
            reply = new { outcome = Verify(command) };
            break;
        case "validate":
            reply = Describe(await client!.ValidateAsync());
            break;
        case "activate":
            reply = Describe(await client!.ActivateAsync());
            break;
        case "validateAndCancel":
            using (var source = new CancellationTokenSource(command.GetProperty("afterMs").GetInt32()))
            {
                try
                {
                    reply = Describe(await client!.ValidateAsync(source.Token));
                }
                catch (OperationCanceledException)
                {
                    reply = new { cancelled = true };
                }
            }
            break;
        case "machineKey":
            try
            {
                var key = LicenseMachineKey.Open(Text(command, "path")!);
                reply = new { machineId = key.MachineId, isNew = key.IsNew, isEphemeral = key.IsEphemeral };
            }
            catch (Exception error) when (error is IOException or InvalidDataException)
            {
                reply = new { error = error.Message };
            }
            break;
        case "requestCode":
            reply = new { code = client!.RequestCode() };
            break;
        case "deactivate":
            reply = Describe(await client!.DeactivateAsync());
            break;
        case "machines":
            reply = Describe(await client!.MachinesAsync());
            break;
        case "release":
            reply = Describe(await client!.ReleaseAsync(Text(command, "ref")!));
            break;
        case "refreshFile":
            reply = Describe(await client!.RefreshFileAsync());
            break;
        default:
            reply = Describe(client!.ImportFile(Text(command, "file")!));
            break;
    }
    Console.WriteLine(JsonSerializer.Serialize(reply));
}

static LicenseClient Open(JsonElement command)
{
    var ahead = TimeSpan.FromMilliseconds(command.GetProperty("clockAheadMs").GetInt64());
    return new LicenseClient(new LicenseOptions
    {
        BaseUrl = Text(command, "baseUrl")!,
        ApiKey = Text(command, "apiKey")!,
        PublicKeys = Keys(command),
        LicenseKey = Text(command, "licenseKey")!,
        ProductId = Text(command, "productId"),
        Storage = Text(command, "storage")!,
        MachineId = Text(command, "machineId"),
        Hostname = Text(command, "hostname"),
        RequireSignature = command.GetProperty("requireSignature").GetBoolean(),
        Entitlements = command.GetProperty("entitlements").GetBoolean(),
        Timeout = TimeSpan.FromMilliseconds(command.GetProperty("timeoutMs").GetInt64()),
        Now = () => DateTimeOffset.UtcNow + ahead,
    });
}

static string Judge(JsonElement command)
{
    var keys = Keys(command).ToDictionary(each => each.Key, each => LicenseFile.ReadPublicKey(each.Value));
    var now = DateTimeOffset.FromUnixTimeMilliseconds(command.GetProperty("nowMs").GetInt64());
    var latestSeen = DateTimeOffset.FromUnixTimeMilliseconds(command.GetProperty("latestSeenMs").GetInt64());
    var user = new LicenseFileUser(Text(command, "licenseKey")!, Text(command, "productId"), Text(command, "machineId"));
    return LicenseFile.Judge(Text(command, "file")!, keys, user, now, latestSeen).Outcome;
}

static string Verify(JsonElement command)
{
    var (keyId, key) = Keys(command).Single();
    var (request, response) = (Encoding.UTF8.GetBytes(Text(command, "request")!), Encoding.UTF8.GetBytes(Text(command, "response")!));
    var (signature, path, apiKey) = (Text(command, "signature"), Text(command, "path")!, Text(command, "apiKey")!);
    var answer = new LicenseAnswer(signature, path, command.GetProperty("status").GetInt32(), apiKey, request, response);
    var latestSigned = DateTimeOffset.FromUnixTimeMilliseconds(command.GetProperty("latestSignedMs").GetInt64());
    return answer.Verify(keyId, LicenseFile.ReadPublicKey(key), latestSigned).Outcome;
}

static object Describe(LicenseResult result) => new
{
    source = result.Source,
    valid = result.Valid,
    deactivated = result.Code == "DEACTIVATED",
    imported = result.Code == "IMPORTED",
    entitlements = result.Entitlements,
    machines = result.Machines is { } machines ? new { used = machines.Used, max = machines.Max } : null,
    releasesLeft = result.ReleasesLeft,
    list = result.List?.Select(each => new
    {
        @ref = each.Ref,
        hostname = each.Hostname,
        lastSeenAt = Format(each.LastSeenAt),
        current = each.Current,
    }),
    code = result.Code,
    expiresAt = Format(result.ExpiresAt),
    refreshAfter = Format(result.RefreshAfter),
    graceEndsAt = Format(result.GraceEndsAt),
    reason = result.Reason,
    rejectedAs = result.RejectedAs,
    message = result.Message,
};

static string? Format(DateTimeOffset? time) =>
    time?.UtcDateTime.ToString("yyyy-MM-dd'T'HH:mm:ss.fff'Z'", CultureInfo.InvariantCulture);

static Dictionary<string, string> Keys(JsonElement command) =>
    command.GetProperty("publicKeys").EnumerateArray().ToDictionary(key => Text(key, "keyId")!, key => Text(key, "publicKey")!);

static string? Text(JsonElement command, string name) => command.GetProperty(name).GetString();
