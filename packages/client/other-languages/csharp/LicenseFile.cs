using System.Globalization;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using Org.BouncyCastle.Crypto.Parameters;
using Org.BouncyCastle.Crypto.Signers;

namespace Keyward;

/// <summary>The outcome of a judgement: GOOD with the file, or the first problem without a file.</summary>
public sealed record Judgement(string Outcome, LicenseFile? File = null);

/// <summary>
/// The app that uses a file. Without a product id, it accepts files of all products. Without a machine id, it rejects files for one machine.
/// </summary>
public sealed record LicenseFileUser(string LicenseKey, string? ProductId, string? MachineId);

/// <summary>
/// The payload of a verified license file (docs/api.md, F1 to F9). The class uses neither a clock nor a network.
/// </summary>
public sealed record LicenseFile(
    string LicenseKey,
    string? ProductId,
    string? MachineId,
    string KeyId,
    DateTimeOffset? ExpiresAt,
    DateTimeOffset IssuedAt,
    DateTimeOffset RefreshAfter,
    DateTimeOffset? GraceEndsAt,
    IReadOnlyDictionary<string, object> Entitlements)
{
    private static readonly TimeSpan ClockTolerance = TimeSpan.FromMinutes(5);
    private const int MaxLength = 16 * 1024;
    private const int SignatureBytes = 64;
    private const int KeyBytes = 32;
    internal const string TimeFormat = "yyyy-MM-dd'T'HH:mm:ss.fff'Z'";

    // The DER bytes that precede the key in SEQUENCE { SEQUENCE { OID 1.3.101.112 } BIT STRING { 32 bytes } }.
    private static readonly byte[] SpkiPrefix = Convert.FromHexString("302a300506032b6570032100");

    /// <summary>Judges a file. <c>latestSeen</c> is the latest time that the app has observed, or the epoch.</summary>
    public static Judgement Judge(
        string text,
        IReadOnlyDictionary<string, Ed25519PublicKeyParameters> keys,
        LicenseFileUser user,
        DateTimeOffset now,
        DateTimeOffset latestSeen)
    {
        var verified = Verify(text, keys, user);
        if (verified.File is not { } file) return verified;
        var passed = file.IssuedAt > latestSeen ? file.IssuedAt : latestSeen;
        if (passed - now > ClockTolerance) return new Judgement("CLOCK_SET_BACK");
        if ((file.GraceEndsAt ?? file.ExpiresAt) <= now) return new Judgement("FILE_EXPIRED");
        return file.RefreshAfter <= now ? new Judgement("REFRESH_NEEDED") : verified;
    }

    /// <summary>Verifies the form, the signature, the license, the product and the machine of a file, independent of the time.</summary>
    public static Judgement Verify(
        string text,
        IReadOnlyDictionary<string, Ed25519PublicKeyParameters> keys,
        LicenseFileUser user)
    {
        var parts = text.Length > MaxLength ? Array.Empty<string>() : text.Split('.');
        if (parts.Length != 2) return new Judgement("MALFORMED");
        var (payload, signature) = (Decode(parts[0]), Decode(parts[1]));
        if (payload is null || signature?.Length != SignatureBytes) return new Judgement("MALFORMED");
        if (Parse(payload) is not { } file) return new Judgement("MALFORMED");
        if (!keys.TryGetValue(file.KeyId, out var key)) return new Judgement("UNKNOWN_KEY");
        if (!IsSigned(key, payload, signature)) return new Judgement("BAD_SIGNATURE");
        if (file.LicenseKey != user.LicenseKey) return new Judgement("WRONG_LICENSE");
        if (user.ProductId is not null && file.ProductId != user.ProductId) return new Judgement("WRONG_PRODUCT");
        var isForMachine = file.MachineId is null || file.MachineId == user.MachineId;
        return isForMachine ? new Judgement("GOOD", file) : new Judgement("WRONG_MACHINE");
    }

    internal static bool IsSigned(Ed25519PublicKeyParameters key, byte[] data, byte[] signature)
    {
        var verifier = new Ed25519Signer();
        verifier.Init(false, key);
        verifier.BlockUpdate(data, 0, data.Length);
        return verifier.VerifySignature(signature);
    }

    /// <summary>Reads the standard base64 of an X.509 SubjectPublicKeyInfo. Throws an ArgumentException for any other text.</summary>
    public static Ed25519PublicKeyParameters ReadPublicKey(string text)
    {
        var spki = new byte[SpkiPrefix.Length + KeyBytes];
        if (!Convert.TryFromBase64String(text, spki, out var length) || length != spki.Length || !spki.AsSpan().StartsWith(SpkiPrefix))
            throw new ArgumentException($"PublicKeys must contain the base64 of an Ed25519 SubjectPublicKeyInfo; got \"{text}\".");
        return new Ed25519PublicKeyParameters(spki, SpkiPrefix.Length);
    }

    /// <summary>Decodes strict UTF-8 and parses a JSON object. Returns null for any other bytes.</summary>
    internal static JsonElement? ParseObject(byte[] bytes)
    {
        try
        {
            var text = new UTF8Encoding(false, throwOnInvalidBytes: true).GetString(bytes);
            using var document = JsonDocument.Parse(text);
            return document.RootElement.ValueKind == JsonValueKind.Object ? document.RootElement.Clone() : null;
        }
        catch (Exception error) when (error is JsonException or ArgumentException)
        {
            return null;
        }
    }

    /// <summary>Serializes an object whose members <c>write</c> writes. Uses no reflection, which trimmed apps lack.</summary>
    internal static byte[] WriteObject(Action<Utf8JsonWriter> write)
    {
        using var buffer = new MemoryStream();
        using (var json = new Utf8JsonWriter(buffer))
        {
            json.WriteStartObject();
            write(json);
            json.WriteEndObject();
        }
        return buffer.ToArray();
    }

    /// <summary>Returns a member as a string. Returns null if it is missing or has another type.</summary>
    internal static string? Text(JsonElement? value, string name)
    {
        try
        {
            var isText = value is { } item && item.TryGetProperty(name, out var member) && member.ValueKind == JsonValueKind.String;
            return isText ? value!.Value.GetProperty(name).GetString() : null;
        }
        catch (InvalidOperationException)
        {
            return null; // the string contains half of a surrogate pair
        }
    }

    /// <summary>Returns the moment of a time such as 2030-01-01T00:00:00.000Z. Returns null for any other text.</summary>
    internal static DateTimeOffset? ParseTime(string? text)
    {
        const DateTimeStyles utc = DateTimeStyles.AssumeUniversal | DateTimeStyles.AdjustToUniversal;
        var isTime = DateTimeOffset.TryParseExact(text, TimeFormat, CultureInfo.InvariantCulture, utc, out var time);
        return isTime ? time : null;
    }

    private static LicenseFile? Parse(byte[] bytes)
    {
        if (ParseObject(bytes) is not { } payload) return null;
        if (!payload.TryGetProperty("policy", out var policy) || policy.ValueKind != JsonValueKind.Object) return null;
        if (!policy.TryGetProperty("maxMachines", out var limit) || !policy.TryGetProperty("expiresAt", out var expires)) return null;
        var texts = new[] { "licenseKey", "licenseId", "customerEmail", "kid" };
        if (texts.Any(name => string.IsNullOrEmpty(Text(payload, name)))) return null;
        var machineId = Text(payload, "machineId");
        if (payload.TryGetProperty("machineId", out _) && string.IsNullOrEmpty(machineId)) return null;
        var isLimit = limit.ValueKind == JsonValueKind.Number && limit.TryGetInt64(out var number) && number >= 1;
        if (limit.ValueKind != JsonValueKind.Null && !isLimit) return null;
        var neverExpires = expires.ValueKind == JsonValueKind.Null;
        var expiresAt = ParseTime(Text(policy, "expiresAt"));
        if ((expiresAt is null) != neverExpires) return null;
        var type = Text(policy, "type");
        if (type is not ("PERPETUAL" or "SUBSCRIPTION" or "TRIAL") || (type == "PERPETUAL") != neverExpires) return null;
        var issuedAt = ParseTime(Text(payload, "issuedAt"));
        var refreshAfter = ParseTime(Text(payload, "refreshAfter"));
        if (issuedAt is null || refreshAfter is null) return null;
        var graceEndsAt = ParseTime(Text(policy, "graceEndsAt"));
        var (licenseKey, productId, keyId) = (Text(payload, "licenseKey")!, Text(payload, "productId"), Text(payload, "kid")!);
        var entitlements = ReadEntitlements(payload) ?? new Dictionary<string, object>();
        return new LicenseFile(
            licenseKey, productId, machineId, keyId, expiresAt, issuedAt.Value, refreshAfter.Value, graceEndsAt, entitlements);
    }

    /// <summary>
    /// Reads the member <c>entitlements</c>, which may be missing, without those that are false. Returns null unless each is a boolean, an
    /// integer (as long) or a text.
    /// </summary>
    internal static Dictionary<string, object>? ReadEntitlements(JsonElement body)
    {
        var read = new Dictionary<string, object>();
        if (!body.TryGetProperty("entitlements", out var given)) return read;
        if (given.ValueKind != JsonValueKind.Object) return null;
        foreach (var each in given.EnumerateObject())
        {
            if (each.Value.ValueKind == JsonValueKind.False) continue;
            if (each.Value.ValueKind == JsonValueKind.True) read[each.Name] = true;
            else if (each.Value.ValueKind == JsonValueKind.Number && each.Value.TryGetInt64(out var number)) read[each.Name] = number;
            else if (Text(given, each.Name) is { } text) read[each.Name] = text;
            else return null;
        }
        return read;
    }

    /// <summary>Decodes base64url without padding. Returns null unless the text is the canonical encoding.</summary>
    internal static byte[]? Decode(string text)
    {
        try
        {
            var padding = new string('=', (4 - text.Length % 4) % 4);
            var bytes = Convert.FromBase64String(text.Replace('-', '+').Replace('_', '/') + padding);
            return Encode(bytes) == text ? bytes : null;
        }
        catch (FormatException)
        {
            return null;
        }
    }

    /// <summary>Returns the code of a request for the file of a machine (F9).</summary>
    internal static string RequestCode(Dictionary<string, string> request)
    {
        var body = "KWR1." + Encode(WriteObject(json =>
        {
            foreach (var (name, value) in request) json.WriteString(name, value);
        }));
        return $"{body}.{Encode(SHA256.HashData(Encoding.UTF8.GetBytes(body)))[..8]}";
    }

    /// <summary>Encodes bytes as base64url without padding.</summary>
    internal static string Encode(byte[] bytes) => Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');
}
