// Verifies license files: Ed25519 signatures over JSON (docs/api.md, F1 to F8). Uses neither a clock nor a network.
// Requires C++17, OpenSSL 3 and nlohmann-json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace keyward {

using json = nlohmann::json;
using PublicKey = std::shared_ptr<EVP_PKEY>;
using Keys = std::map<std::string, PublicKey>; // by key id

constexpr std::int64_t clock_tolerance_ms = 5 * 60 * 1000;
constexpr std::size_t max_file_length = 16 * 1024;

// Entitlements by name. A `bool` is always true.
using Entitlements = std::map<std::string, std::variant<bool, std::int64_t, std::string>>;

// The payload of a verified license file. Times are milliseconds since 1970.
struct LicenseFile {
    std::string license_key;
    std::string product_id; // empty in files of earlier versions
    std::string machine_id; // empty in files for all machines
    std::string key_id;
    std::optional<std::string> expires_at; // ISO 8601 in UTC; none if the license never expires
    std::int64_t issued_ms = 0;
    std::int64_t refresh_after_ms = 0;
    std::string refresh_after;
    std::optional<std::string> grace_ends_at; // ISO 8601 in UTC; none without a grace period
    Entitlements entitlements;

    bool is_expired(std::int64_t now_ms) const;
    // The end of the grace period, or the expiry of a license without one.
    std::optional<std::string> ends_at() const { return grace_ends_at ? grace_ends_at : expires_at; }
};

// The app that uses a file.
struct FileUser {
    std::string license_key;
    std::string product_id; // empty to accept files of all products
    std::string machine_id; // empty to reject files for one machine
};

// GOOD with the file, or the first problem without a file.
struct Judgement {
    std::string outcome;
    std::optional<LicenseFile> file;
};

// Parses a JSON object. Returns an empty object for any other text. Rejects a byte order mark, which the parser would skip.
inline json parse_object(std::string_view text) {
    if (text.substr(0, 3) == "\xEF\xBB\xBF") return json::object();
    json value = json::parse(text, nullptr, false);
    return value.is_object() ? value : json::object();
}

// Returns the member as a string, or an empty string if it is missing or has another type.
inline std::string text_of(const json& object, const char* name) {
    const auto member = object.find(name);
    return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

// Returns the milliseconds since 1970 for text such as 2030-01-01T00:00:00.000Z, or none for any other text.
inline std::optional<std::int64_t> to_ms(const std::string& text) {
    int year, month, day, hour, minute, second, ms;
    const char* form = "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ";
    if (std::sscanf(text.c_str(), form, &year, &month, &day, &hour, &minute, &second, &ms) != 7) return std::nullopt;
    if (hour > 23 || minute > 59 || second > 59 || month < 1 || month > 12 || day < 1) return std::nullopt;
    char again[64];
    std::snprintf(again, sizeof again, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month, day, hour, minute, second, ms);
    const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int days[] = {31, is_leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (text != again || day > days[month - 1]) return std::nullopt;
    // The days since 1970 of a date of the Gregorian calendar, with years that begin in March.
    const std::int64_t y = month > 2 ? year : year - 1;
    const std::int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    const std::int64_t since_1970 = 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
    return (((since_1970 * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms;
}

// Returns the time in a member, or none if the member is not a time.
inline std::optional<std::string> time_of(const json& object, const char* name) {
    const std::string text = text_of(object, name);
    return to_ms(text) ? std::optional(text) : std::nullopt;
}

// Reads the member `entitlements`, which may be missing, without those that are false. Returns none unless each is a boolean, an
// integer or a text.
inline std::optional<Entitlements> read_entitlements(const json& object) {
    Entitlements read;
    const json given = object.value("entitlements", json::object());
    if (!given.is_object()) return std::nullopt;
    for (const auto& [name, value] : given.items()) {
        if (value.is_string()) read[name] = value.get<std::string>();
        else if (value.is_number_integer()) read[name] = value.get<std::int64_t>();
        else if (value == true) read[name] = true;
        else if (value == false) continue;
        else return std::nullopt;
    }
    return read;
}

inline bool LicenseFile::is_expired(std::int64_t now_ms) const { return expires_at && *to_ms(*expires_at) <= now_ms; }

// Decodes base64 with this alphabet, canonically and without padding. Returns none for any other text.
inline std::optional<std::string> decode_base64(std::string_view text, std::string_view alphabet) {
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char character : text) {
        const auto value = alphabet.find(character);
        if (value == std::string_view::npos) return std::nullopt;
        bits = (bits << 6) | static_cast<std::uint32_t>(value);
        count += 6;
        if (count >= 8) bytes.push_back(static_cast<char>((bits >> (count -= 8)) & 0xff));
        bits &= (1u << count) - 1;
    }
    // Unused bits must be zero, because otherwise several texts would have the same bytes.
    return bits == 0 && count < 6 ? std::optional(bytes) : std::nullopt;
}

inline const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

// Reads the standard base64 of an X.509 SubjectPublicKeyInfo. Returns null for any other text.
inline PublicKey read_public_key(std::string text) {
    while (!text.empty() && text.back() == '=') text.pop_back();
    const auto der = decode_base64(text, letters + "+/");
    if (!der) return nullptr;
    auto start = reinterpret_cast<const unsigned char*>(der->data());
    PublicKey key(d2i_PUBKEY(nullptr, &start, static_cast<long>(der->size())), EVP_PKEY_free);
    return key && EVP_PKEY_is_a(key.get(), "ED25519") ? key : nullptr;
}

inline bool is_signed(const PublicKey& key, const std::string& payload, const std::string& signature) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    const auto bytes = [](const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); };
    return key && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(payload), payload.size()) == 1;
}

inline std::optional<LicenseFile> parse_payload(const std::string& bytes) {
    const json payload = parse_object(bytes);
    for (const char* name : {"licenseKey", "licenseId", "customerEmail", "kid"})
        if (text_of(payload, name).empty()) return std::nullopt;
    if (payload.contains("machineId") && text_of(payload, "machineId").empty()) return std::nullopt;
    const auto found = payload.find("policy");
    if (found == payload.end() || !found->is_object()) return std::nullopt;
    const json& policy = *found;
    if (!policy.contains("maxMachines") || !policy.contains("expiresAt")) return std::nullopt;
    const json& limit = policy["maxMachines"];
    if (!limit.is_null() && !(limit.is_number_integer() && limit.get<std::int64_t>() >= 1)) return std::nullopt;
    const std::string type = text_of(policy, "type");
    const bool never_expires = policy["expiresAt"].is_null();
    if (type != "PERPETUAL" && type != "SUBSCRIPTION" && type != "TRIAL") return std::nullopt;
    if ((type == "PERPETUAL") != never_expires) return std::nullopt;
    const std::string expires_at = text_of(policy, "expiresAt");
    const auto issued = to_ms(text_of(payload, "issuedAt"));
    const auto refresh_after = to_ms(text_of(payload, "refreshAfter"));
    if (!issued || !refresh_after || (!never_expires && !to_ms(expires_at))) return std::nullopt;
    const auto expiry = never_expires ? std::nullopt : std::optional(expires_at);
    return LicenseFile{text_of(payload, "licenseKey"), text_of(payload, "productId"), text_of(payload, "machineId"),
                       text_of(payload, "kid"), expiry, *issued, *refresh_after, text_of(payload, "refreshAfter"), time_of(policy, "graceEndsAt"),
                       read_entitlements(payload).value_or(Entitlements{})};
}

// Verifies the form, the signature, the license, the product and the machine of a file, independent of the time.
inline Judgement verify(const std::string& text, const Keys& keys, const FileUser& user) {
    const auto dot = text.find('.');
    if (text.size() > max_file_length || dot == std::string::npos) return {"MALFORMED", {}};
    const auto payload = decode_base64(std::string_view(text).substr(0, dot), letters + "-_");
    const auto signature = decode_base64(std::string_view(text).substr(dot + 1), letters + "-_");
    if (!payload || !signature || signature->size() != 64) return {"MALFORMED", {}};
    const auto file = parse_payload(*payload);
    if (!file) return {"MALFORMED", {}};
    const auto key = keys.find(file->key_id);
    if (key == keys.end()) return {"UNKNOWN_KEY", {}};
    if (!is_signed(key->second, *payload, *signature)) return {"BAD_SIGNATURE", {}};
    if (file->license_key != user.license_key) return {"WRONG_LICENSE", {}};
    if (!user.product_id.empty() && file->product_id != user.product_id) return {"WRONG_PRODUCT", {}};
    if (!file->machine_id.empty() && file->machine_id != user.machine_id) return {"WRONG_MACHINE", {}};
    return {"GOOD", file};
}

// Judges a file at a time. latest_seen_ms is the latest time that the app has observed, or 0.
inline Judgement judge(const std::string& text, const Keys& keys, const FileUser& user, std::int64_t now_ms, std::int64_t latest_seen_ms) {
    Judgement verified = verify(text, keys, user);
    if (!verified.file) return verified;
    const LicenseFile& file = *verified.file;
    if (now_ms < std::max(file.issued_ms, latest_seen_ms) - clock_tolerance_ms) return {"CLOCK_SET_BACK", {}};
    if (const auto end = file.ends_at(); end && *to_ms(*end) <= now_ms) return {"FILE_EXPIRED", {}};
    if (file.refresh_after_ms <= now_ms) return {"REFRESH_NEEDED", {}};
    return verified;
}

} // namespace keyward
