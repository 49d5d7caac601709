// Checks the license of an app: the service decides when it is reachable, and a signed file during an outage (docs/api.md,
// C1 to C6). Requires C++17, libcurl 7.87, OpenSSL 3 and nlohmann-json. Strings are UTF-8.
#pragma once

#include "license_file.hpp"
#include "machine_key.hpp"
#include "storage.hpp"
#include "transport.hpp"

#include <mutex>
#include <stdexcept>

namespace keyward {

constexpr std::int64_t day_ms = 24 * 60 * 60 * 1000;
constexpr std::chrono::minutes refresh_pause{1};

constexpr const char* message_after_rejection =
    "The last online check rejected the license, or it was deactivated on this machine. Connect to the internet and try again.";

// Returns the messages for people by the reason of an offline refusal.
inline const std::map<std::string, std::string>& offline_messages() {
    static const std::map<std::string, std::string> messages = {
        {"NO_FILE", "The license could not be checked. Connect to the internet and try again."},
        {"BAD_SIGNATURE", "The stored license file is damaged. Connect to the internet and try again."},
        {"UNKNOWN_KEY", "This version of the app cannot read the stored license file. Connect to the internet and try again."},
        {"WRONG_LICENSE", "The stored license file belongs to another license key. Connect to the internet and try again."},
        {"WRONG_PRODUCT", "The stored license file belongs to another product. Connect to the internet and try again."},
        {"WRONG_MACHINE", "The stored license file belongs to another machine. Connect to the internet and try again."},
        {"FILE_EXPIRED", "The license has expired. Renew the license, connect to the internet and try again."},
        {"REFRESH_NEEDED", "The license must be checked online again. Connect to the internet and try again."},
        {"CLOCK_SET_BACK", "The clock of this machine is wrong. Set the correct date and time and try again."},
    };
    return messages;
}

// The options of a client. Options without a default are required.
struct Options {
    std::string base_url;                           // the base URL, such as "https://licenses.example.com"
    std::string api_key;                            // the API key; the app contains it, so it is not a secret
    std::map<std::string, std::string> public_keys; // the keys of GET /api/v1/public-keys by key id
    std::string license_key;                        // the license key that the customer entered
    std::string product_id;                         // the product id of the app; files of other products are rejected
    std::filesystem::path storage;                  // the file for the client's state
    std::string machine_id;                         // the machine id; licenses with a machine limit require one
    std::string hostname;                           // the name of the machine, which activate sends
    milliseconds timeout{5000};                     // the time budget of a call with all retries
    bool allow_http = false;                        // whether http is allowed for other hosts than this machine
    bool require_signature = false;                 // whether a response that is not signed for its request counts as an outage
    bool entitlements = false;                      // whether the results of valid checks contain the entitlements of the license
    std::function<bool()> is_cancelled;             // whether the current call shall end at once; called about once a second
    std::function<std::int64_t()> now_ms = [] {     // the device's clock
        return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    };
};

// Returns a generated key in upper case with hyphens. Returns any other text unchanged.
inline std::string normalize_license_key(const std::string& text) {
    // Blanks, the no-break space, and the hyphens and dashes that word processors insert instead of "-".
    static const std::regex separators("(?:[ \t\r\n\v\f-]|\xC2\xA0|\xE2\x80[\x90-\x95]|\xE2\x88\x92)+");
    static const std::regex generated("[2-9A-HJ-NP-Z]{4}(-[2-9A-HJ-NP-Z]{4}){3}");
    const auto first = text.find_first_not_of(" \t\r\n\v\f");
    if (first == std::string::npos) return text;
    std::string key = text.substr(first, text.find_last_not_of(" \t\r\n\v\f") - first + 1);
    key = std::regex_replace(key, separators, "-");
    for (char& letter : key)
        if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    return std::regex_match(key, generated) ? key : text;
}

// A client for one license key. Several threads may use it. Only the constructor throws.
class LicenseClient {
public:
    // Throws std::invalid_argument for invalid options.
    explicit LicenseClient(Options options)
        : options_(std::move(options)), transport_(options_.base_url, options_.api_key, options_.timeout, options_.is_cancelled) {
        static const std::regex address("(https?)://([^/?#@:]+|\\[[0-9a-fA-F:.]+\\])(:\\d+)?(/[^?#]*)?");
        static const std::regex local("localhost|.+\\.localhost|127(\\.\\d+){3}|\\[::1\\]");
        static const std::regex printable("[\x21-\x7e]+");
        std::smatch parts;
        require(std::regex_match(options_.base_url, parts, address),
                "base_url must be an https URL such as https://licenses.example.com.");
        const bool is_private = parts[1] == "https" || std::regex_match(parts[2].str(), local);
        require(is_private || options_.allow_http, "base_url must use https, because responses over http can be forged.");
        require(std::regex_match(options_.api_key, printable),
                "api_key must consist of printable ASCII characters without blanks.");
        require(!options_.license_key.empty(), "license_key must not be empty.");
        require(!options_.public_keys.empty(), "public_keys must not be empty.");
        for (const auto& [id, text] : options_.public_keys)
            require((keys_[id] = read_public_key(text)) != nullptr,
                    "public_keys: " + id + " must be the base64 of an Ed25519 SubjectPublicKeyInfo.");
        options_.license_key = normalize_license_key(options_.license_key);
        for (char& letter : options_.product_id) // in lower case, as in license files
            if (letter >= 'A' && letter <= 'F') letter = static_cast<char>(letter - 'A' + 'a');
        options_.storage = std::filesystem::absolute(options_.storage);
    }

    // Checks the license online, or with the stored file during an outage.
    Result validate() { return check("/api/v2/license/validate", body("license"), read_verdict_v2); }

    // Checks the license like `validate` and sends the name of this machine.
    Result activate() {
        json content = body("licenseKey");
        if (!options_.hostname.empty()) content["hostname"] = options_.hostname;
        return check("/api/v1/activate", content, read_verdict);
    }

    // Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service.
    Result deactivate() {
        const auto deadline = Clock::now() + options_.timeout;
        const Response response = transport_.call(deactivate_path, body("licenseKey"), deadline, read_deactivation, signing());
        if (response.result.code == "DEACTIVATED")
            change([&](State& state) {
                saw_signature(state, response.signed_ms);
                reject(state, "DEACTIVATED");
            });
        return response.result;
    }

    // Lists the machines that hold slots of the license, so that a person can choose which one to release. Requires the service. Returns
    // LISTED, NOT_ENABLED if the license does not let apps list its machines, NOT_FOUND, CONFIGURATION or UNREACHABLE.
    Result machines() {
        return transport_.call(machines_path, body("licenseKey"), Clock::now() + options_.timeout, read_machines, {}).result;
    }

    // Releases the slot of another machine of the license. `ref` is that of a listed machine. Returns the codes of `deactivate`, or
    // NOT_ENABLED like `machines`.
    Result release(const std::string& ref) {
        const json content = {{"licenseKey", options_.license_key}, {"ref", ref}};
        const auto deadline = Clock::now() + options_.timeout;
        const Response response = transport_.call(deactivate_path, content, deadline, read_deactivation, signing());
        change([&](State& state) { saw_signature(state, response.signed_ms); });
        return response.result;
    }

    // Fetches and stores a license file now. Returns REFRESHED, UNREACHABLE, CONFIGURATION, or the reason why the service issues no file.
    // BAD_FILE: the received file is for another license, product or machine, or no shipped key has signed it. NOT_STORED: the storage failed.
    // The stored file is kept then.
    Result refresh_file() { return fetch_file(Clock::now() + options_.timeout); }

    // Stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now. Returns IMPORTED,
    // or NOT_IMPORTED with the reason of an offline refusal or NOT_STORED.
    Result import_file(const std::string& text) {
        const auto first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
        const std::string file = text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
        State state;
        {
            const std::lock_guard lock(mutex_);
            state = read_state(options_.storage);
        }
        const auto judged = judge(file, keys_, user(), options_.now_ms(), state.latest_seen_ms);
        if (!judged.file) return failed("offline", "NOT_IMPORTED", for_apps(judged.outcome));
        if (!store(file)) return failed("offline", "NOT_IMPORTED", "NOT_STORED");
        return stored("offline", "IMPORTED", *judged.file);
    }

    // Returns the code with which a person requests the file of this machine, for a machine without network access. The vendor turns the code
    // into a file for `import_file`. Returns an empty text without a machine_id.
    std::string request_code() const {
        json request = {{"licenseKey", options_.license_key}, {"machineId", options_.machine_id}};
        if (!options_.hostname.empty()) request["hostname"] = options_.hostname;
        return options_.machine_id.empty() ? "" : request_code_of(request);
    }

private:
    static void require(bool condition, const std::string& message) {
        if (!condition) throw std::invalid_argument(message);
    }

    FileUser user() const { return {options_.license_key, options_.product_id, options_.machine_id}; }

    json body(const char* key_field) const {
        json content = {{key_field, options_.license_key}};
        if (!options_.machine_id.empty()) content["fingerprint"] = options_.machine_id;
        return content;
    }

    using ReadVerdict = std::optional<Result>(long status, const std::string& text, bool has_entitlements);

    Result check(const std::string& path, json content, ReadVerdict* read) {
        const auto deadline = Clock::now() + options_.timeout;
        if (options_.entitlements) content["include"] = {"entitlements"};
        const Reader read_all = [&](long status, const std::string& text) { return read(status, text, options_.entitlements); };
        const Response response = transport_.call(path, content, deadline, read_all, signing());
        const Result& result = response.result;
        if (result.code == "UNREACHABLE") return decide_offline(result.detail);
        if (result.code == "CONFIGURATION") return result;
        change([&](State& state) {
            // The service's clock corrects a device whose clock was ahead.
            state.latest_seen_ms = response.date_ms.value_or(state.latest_seen_ms);
            saw_signature(state, response.signed_ms);
            reject(state, result.valid() ? "" : result.code);
        });
        if (result.valid()) refresh_if_due(result.expires_at, deadline);
        return result;
    }

    Result decide_offline(const std::string& detail) {
        const auto now_ms = options_.now_ms();
        Judgement judged{"NO_FILE", {}};
        std::string rejected_as;
        change([&](State& state) {
            const Stored* stored = state.find(options_.license_key);
            rejected_as = rejected_as_.empty() && stored != nullptr ? stored->rejected_as : rejected_as_;
            if (stored != nullptr && rejected_as.empty())
                judged = judge(stored->file, keys_, user(), now_ms, state.latest_seen_ms);
            state.latest_seen_ms = std::max(state.latest_seen_ms, now_ms);
        });
        if (judged.file) {
            const LicenseFile& file = *judged.file;
            const auto grace = file.is_expired(now_ms) ? file.grace_ends_at : std::nullopt;
            const auto unlocked = options_.entitlements ? std::optional(file.entitlements) : std::nullopt;
            return {"offline", "VALID", file.expires_at, "", "", "", detail, file.refresh_after, grace, unlocked};
        }
        const std::string reason = for_apps(judged.outcome);
        const std::string message = rejected_as.empty() ? offline_messages().at(reason) : message_after_rejection;
        return {"offline", "OFFLINE_REFUSED", {}, reason, rejected_as, message, detail, ""};
    }

    // Fetches a new file if one is due, within the rest of the time budget.
    void refresh_if_due(const std::optional<std::string>& expires_at, Clock::time_point deadline) {
        {
            const std::lock_guard lock(mutex_);
            if (Clock::now() < next_refresh_ || !is_due(expires_at)) return;
            next_refresh_ = Clock::now() + refresh_pause;
        }
        fetch_file(deadline);
    }

    Result fetch_file(Clock::time_point deadline) {
        std::optional<std::string> text;
        const Reader read = [&](long status, const std::string& received) {
            if (status != 200) return read_rejection(parse_object(received));
            text = received;
            return std::optional(Result{});
        };
        const Result result = transport_.call(file_path, body("licenseKey"), deadline, read, {}).result;
        if (!text) return result;
        const Judgement judged = verify(*text, keys_, user());
        if (!judged.file) return failed("online", "BAD_FILE", for_apps(judged.outcome));
        if (!store(*text)) return failed("online", "NOT_STORED", "");
        return stored("online", "REFRESHED", *judged.file);
    }

    // Stores a file and allows its use. Returns false if the write failed.
    bool store(const std::string& file) {
        return change([&](State& state) {
            rejected_as_.clear();
            state.add(options_.license_key, file);
        });
    }

    static Result failed(const char* source, const char* code, const std::string& reason) {
        return {source, code, {}, reason, "", "", "", ""};
    }

    static Result stored(const char* source, const char* code, const LicenseFile& file) {
        return {source, code, file.expires_at, "", "", "", "", file.refresh_after};
    }

    // Returns the reason of an outcome, because apps handle malformed and wrongly signed files in the same way.
    static std::string for_apps(const std::string& outcome) { return outcome == "MALFORMED" ? "BAD_SIGNATURE" : outcome; }

    // Returns whether a new file is due: there is no good file, it is a day or half of its lifetime old, or its expiry differs.
    bool is_due(const std::optional<std::string>& expires_at) const {
        State state = read_state(options_.storage);
        const Stored* stored = state.find(options_.license_key);
        if (stored == nullptr) return true;
        const auto now_ms = options_.now_ms();
        const auto file = judge(stored->file, keys_, user(), now_ms, state.latest_seen_ms).file;
        if (!file || file->expires_at != expires_at) return true;
        return now_ms >= file->issued_ms + std::min(day_ms, (file->refresh_after_ms - file->issued_ms) / 2);
    }

    // Returns the keys with which the next response is verified, or no keys if no signature is required.
    Signing signing() {
        if (!options_.require_signature) return {};
        const std::lock_guard lock(mutex_);
        return {&keys_, std::max(latest_signed_ms_, read_state(options_.storage).latest_signed_ms)};
    }

    // Records the time of a signed response, which replaces the latest observed time.
    void saw_signature(State& state, const std::optional<std::int64_t>& signed_ms) {
        if (!signed_ms) return;
        latest_signed_ms_ = std::max(latest_signed_ms_, *signed_ms);
        state.latest_seen_ms = *signed_ms;
        state.latest_signed_ms = std::max(state.latest_signed_ms, latest_signed_ms_);
    }

    // Records the code that ends the use of the file. An empty code allows it again.
    void reject(State& state, const std::string& code) {
        rejected_as_ = code;
        if (Stored* stored = state.find(options_.license_key)) stored->rejected_as = code;
    }

    // Reads the state, applies the edit and writes the result. Returns false if the write failed.
    bool change(const std::function<void(State&)>& edit) {
        const std::lock_guard lock(mutex_);
        State state = read_state(options_.storage);
        edit(state);
        return write_state(options_.storage, state, std::to_string(std::random_device{}()));
    }

    Options options_;
    Transport transport_;
    Keys keys_;
    std::mutex mutex_;        // guards the storage and the fields below
    std::string rejected_as_; // the rejection in this process, which may not have been written
    Clock::time_point next_refresh_;
    std::int64_t latest_signed_ms_ = 0; // the time of the latest signed response in this process
};

} // namespace keyward
