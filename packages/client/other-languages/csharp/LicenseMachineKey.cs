using System.Security.Cryptography;
using Org.BouncyCastle.Crypto.Parameters;

namespace Keyward;

/// <summary>A machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file.</summary>
/// <param name="MachineId">The id for the option <c>MachineId</c>: <c>mk1_</c> and the SHA-256 of the public key in base64url.</param>
/// <param name="IsNew">Whether the call has created the key.</param>
/// <param name="IsEphemeral">
/// Whether the key is lost when the container is replaced or the machine restarts, because its folder is in a layer of a container or in
/// memory. Always false on Windows.
/// </param>
public sealed record LicenseMachineKey(string MachineId, bool IsNew, bool IsEphemeral)
{
    private const int SeedBytes = 32;

    // The DER bytes that precede the seed in a PKCS #8 key.
    private static readonly byte[] Prefix = Convert.FromHexString("302e020100300506032b657004220420");

    /// <summary>
    /// Returns the key of this machine from a file, and creates it if the file is missing. Only the owner can read the file. Processes that
    /// start at the same time get the same key. Throws an IOException when the file cannot be created, or an InvalidDataException when it
    /// does not contain an Ed25519 key.
    /// </summary>
    public static LicenseMachineKey Open(string file)
    {
        var path = Path.GetFullPath(file);
        var folder = Path.GetDirectoryName(path)!;
        Directory.CreateDirectory(folder);
        var isNew = !File.Exists(path) && Create(path);
        var key = new Ed25519PrivateKeyParameters(ReadSeed(path), 0).GeneratePublicKey().GetEncoded();
        var isEphemeral = !OperatingSystem.IsWindows()
            && new DriveInfo(folder).DriveFormat is "overlay" or "overlayfs" or "aufs" or "tmpfs" or "ramfs";
        return new LicenseMachineKey($"mk1_{LicenseFile.Encode(SHA256.HashData(key))}", isNew, isEphemeral);
    }

    private static byte[] ReadSeed(string path)
    {
        var text = File.ReadAllText(path);
        var isPem = PemEncoding.TryFind(text, out var fields) && text[fields.Label] == "PRIVATE KEY";
        var der = isPem ? Convert.FromBase64String(text[fields.Base64Data]) : [];
        if (der.Length >= Prefix.Length + SeedBytes && der.AsSpan().StartsWith(Prefix)) return der[Prefix.Length..(Prefix.Length + SeedBytes)];
        throw new InvalidDataException(
            $"The file {path} does not contain a machine key. Delete it to create a new one, which needs another slot.");
    }

    /// <summary>Creates the file, complete and flushed to the disk. Returns false if another process has created it meanwhile.</summary>
    private static bool Create(string path)
    {
        byte[] der = [.. Prefix, .. RandomNumberGenerator.GetBytes(SeedBytes)];
        var draft = LicenseStorage.WriteDraft(path, System.Text.Encoding.ASCII.GetBytes(PemEncoding.WriteString("PRIVATE KEY", der)));
        try
        {
            File.Move(draft, path, overwrite: false);
            return true;
        }
        catch (IOException) when (File.Exists(path))
        {
            return false;
        }
        finally
        {
            File.Delete(draft);
        }
    }
}
