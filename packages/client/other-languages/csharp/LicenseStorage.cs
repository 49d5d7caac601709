using System.Text.Json;

namespace Keyward;

/// <summary>A stored file. <c>RejectedAs</c> is the code that ended the use of the file, or null.</summary>
internal sealed record StoredLicense(string LicenseKey, string File, string? RejectedAs);

/// <summary>The content of the storage, newest file first.</summary>
internal sealed class LicenseState
{
    private const int MaxLicenses = 10;

    /// <summary>The latest observed time in milliseconds since 1970, or 0.</summary>
    public long LatestSeenMs { get; set; }

    /// <summary>The time of the latest signed response in milliseconds since 1970, or 0.</summary>
    public long LatestSignedMs { get; set; }

    public List<StoredLicense> Licenses { get; } = [];

    public StoredLicense? Find(string licenseKey) => Licenses.Find(each => each.LicenseKey == licenseKey);

    public void Add(string licenseKey, string file)
    {
        Licenses.RemoveAll(each => each.LicenseKey == licenseKey);
        Licenses.Insert(0, new StoredLicense(licenseKey, file, null));
        if (Licenses.Count > MaxLicenses) Licenses.RemoveRange(MaxLicenses, Licenses.Count - MaxLicenses);
    }

    public void Reject(string licenseKey, string? code)
    {
        var position = Licenses.FindIndex(each => each.LicenseKey == licenseKey);
        if (position >= 0) Licenses[position] = Licenses[position] with { RejectedAs = code };
    }
}

/// <summary>The client's state in a file: the license file of each license key, and the latest observed time.</summary>
internal sealed class LicenseStorage(string file)
{
    private readonly string path = Path.GetFullPath(file);

    /// <summary>Returns the stored state. Returns an empty state when the storage fails or contains another text.</summary>
    public LicenseState Read()
    {
        var state = new LicenseState();
        try
        {
            if (LicenseFile.ParseObject(File.ReadAllBytes(path)) is not { } content) return state;
            if (content.TryGetProperty("latestSeenMs", out var seen) && seen.ValueKind == JsonValueKind.Number)
                state.LatestSeenMs = (long)seen.GetDouble();
            if (content.TryGetProperty("latestSignedMs", out var signed) && signed.ValueKind == JsonValueKind.Number)
                state.LatestSignedMs = (long)signed.GetDouble();
            if (!content.TryGetProperty("licenses", out var licenses) || licenses.ValueKind != JsonValueKind.Array) return state;
            foreach (var each in licenses.EnumerateArray().Where(each => each.ValueKind == JsonValueKind.Object))
                if (LicenseFile.Text(each, "licenseKey") is { } key && LicenseFile.Text(each, "file") is { } text)
                    state.Licenses.Add(new StoredLicense(key, text, LicenseFile.Text(each, "rejectedAs")));
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            // The state stays empty.
        }
        return state;
    }

    /// <summary>Replaces the file atomically: a crash leaves either the old or the new text.</summary>
    public void Write(LicenseState state)
    {
        var content = LicenseFile.WriteObject(json =>
        {
            json.WriteNumber("version", 2);
            json.WriteNumber("latestSeenMs", state.LatestSeenMs);
            json.WriteNumber("latestSignedMs", state.LatestSignedMs);
            json.WriteStartArray("licenses");
            foreach (var (licenseKey, stored, rejectedAs) in state.Licenses)
            {
                json.WriteStartObject();
                json.WriteString("licenseKey", licenseKey);
                json.WriteString("file", stored);
                json.WriteString("rejectedAs", rejectedAs); // null becomes a JSON null
                json.WriteEndObject();
            }
            json.WriteEndArray();
        });
        var draft = WriteDraft(path, content);
        try
        {
            File.Move(draft, path, overwrite: true);
        }
        finally
        {
            File.Delete(draft);
        }
    }

    /// <summary>
    /// Writes a new file beside <c>path</c> that only its owner can read, flushed to the disk, and returns its path. On Windows, the
    /// permissions of the folder apply instead.
    /// </summary>
    internal static string WriteDraft(string path, byte[] content)
    {
        Directory.CreateDirectory(Path.GetDirectoryName(path)!);
        var draft = $"{path}.{Guid.NewGuid():N}.tmp";
        var options = new FileStreamOptions { Mode = FileMode.CreateNew, Access = FileAccess.Write };
        if (!OperatingSystem.IsWindows()) options.UnixCreateMode = UnixFileMode.UserRead | UnixFileMode.UserWrite;
        using var stream = new FileStream(draft, options);
        stream.Write(content);
        stream.Flush(flushToDisk: true);
        return draft;
    }
}
