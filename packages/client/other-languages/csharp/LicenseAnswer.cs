using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using Org.BouncyCastle.Crypto.Parameters;

namespace Keyward;

/// <summary>The outcome of a verification: GOOD with the signed time, or the first problem without a time.</summary>
public sealed record AnswerVerification(string Outcome, DateTimeOffset? SignedAt = null);

/// <summary>A response of the service and its request, which a signature binds together (docs/api.md, G1 to G5).</summary>
/// <param name="Signature">The header <c>keyward-signature</c>, or null without the header.</param>
/// <param name="Path">The path in the API, such as /api/v2/license/validate.</param>
/// <param name="Status">The status of the response.</param>
/// <param name="ApiKey">The API key of the request.</param>
/// <param name="Request">The body of the request.</param>
/// <param name="Response">The body of the response.</param>
public sealed partial record LicenseAnswer(
    string? Signature,
    string Path,
    int Status,
    string ApiKey,
    byte[] Request,
    byte[] Response)
{
    private static readonly TimeSpan ClockTolerance = TimeSpan.FromMinutes(5);
    private const int MaxLength = 4 * 1024;
    private const int KeyBytes = 32;
    private const int StepBytes = 33;
    private const string Time = "([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z)";

    [GeneratedRegex("^keyward-delegation-v1 ([A-Za-z0-9_-]+) " + Time + " " + Time + " ([A-Za-z0-9_-]{43})\\z")]
    private static partial Regex Delegation();

    [GeneratedRegex("^keyward-answers-v1 " + Time + " ([A-Za-z0-9_-]{43})\\z")]
    private static partial Regex Statement();

    /// <summary>
    /// Verifies the response with the public key <c>keyId</c>. <c>latestSigned</c> is the time of the latest signed response, or the epoch.
    /// </summary>
    public AnswerVerification Verify(string keyId, Ed25519PublicKeyParameters key, DateTimeOffset latestSigned)
    {
        if (Signature is null) return new AnswerVerification("UNSIGNED");
        var parts = Signature.Length > MaxLength ? [] : Signature.Split('.').Select(LicenseFile.Decode).ToArray();
        if (parts is not [{ } delegation, { } delegated, { } statement, { } signed, { } steps])
            return new AnswerVerification("MALFORMED");
        var delegates = Delegation().Match(Encoding.Latin1.GetString(delegation));
        if (!delegates.Success || delegates.Groups[1].Value != keyId || !LicenseFile.IsSigned(key, delegation, delegated))
            return new AnswerVerification("BAD_DELEGATION");
        var states = Statement().Match(Encoding.Latin1.GetString(statement));
        var validator = LicenseFile.Decode(delegates.Groups[4].Value);
        if (!states.Success || validator?.Length != KeyBytes
            || !LicenseFile.IsSigned(new Ed25519PublicKeyParameters(validator, 0), statement, signed))
            return new AnswerVerification("BAD_SIGNATURE");
        // Times of this form have the order of their texts.
        var time = states.Groups[1].Value;
        if (string.CompareOrdinal(time, delegates.Groups[2].Value) < 0 || string.CompareOrdinal(time, delegates.Groups[3].Value) >= 0)
            return new AnswerVerification("DELEGATION_EXPIRED");
        if (Climb(Leaf(), steps) is not { } root || LicenseFile.Encode(root) != states.Groups[2].Value)
            return new AnswerVerification("OTHER_ANSWER");
        var signedAt = LicenseFile.ParseTime(time);
        return signedAt is null || latestSigned - signedAt > ClockTolerance
            ? new AnswerVerification("BACK_DATED")
            : new AnswerVerification("GOOD", signedAt);
    }

    private byte[] Leaf()
    {
        var hashes = new[] { Encoding.UTF8.GetBytes(ApiKey), Request, Response }.Select(each => LicenseFile.Encode(SHA256.HashData(each)));
        return SHA256.HashData(Encoding.UTF8.GetBytes($"keyward-answer-v1 {Path} {Status} {string.Join(' ', hashes)}"));
    }

    /// <summary>Returns the root to which the steps lead from a leaf. Returns null for malformed steps.</summary>
    private static byte[]? Climb(byte[] leaf, byte[] steps)
    {
        if (steps.Length % StepBytes != 0) return null;
        var node = leaf;
        for (var at = 0; at < steps.Length; at += StepBytes)
        {
            var neighbour = steps[(at + 1)..(at + StepBytes)];
            if (steps[at] > 1) return null;
            byte[] children = steps[at] == 0 ? [1, .. node, .. neighbour] : [1, .. neighbour, .. node];
            node = SHA256.HashData(children);
        }
        return node;
    }
}
