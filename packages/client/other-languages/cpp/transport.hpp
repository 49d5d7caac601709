// Sends requests and classifies their outcomes. A call ends within its time budget.
#pragma once

#include "signed_answer.hpp"

#include <chrono>
#include <curl/curl.h>
#include <functional>
#include <random>
#include <regex>
#include <set>
#include <thread>
#include <vector>

namespace keyward {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* file_path = "/api/v1/licenses/file";
constexpr const char* machines_path = "/api/v1/machines";
constexpr const char* deactivate_path = "/api/v1/deactivate";
constexpr int max_attempts = 3;
constexpr std::size_t max_body_bytes = 64 * 1024;
constexpr const char* unreachable_message = "The license service cannot be reached. Connect to the internet and try again.";

// The used slots of a license and their limit, which is 0 without a limit.
struct Machines {
    std::int64_t used;
    std::int64_t max;
};

// A machine that holds a slot of the license.
struct Machine {
    std::string ref;          // the name of the machine for `release`
    std::string hostname;     // the host name that the machine sent with `activate`; empty without one
    std::string last_seen_at; // the approximate time of its last check, as ISO 8601 in UTC
    bool current;             // whether this is the machine of the client
};

// The outcome of a call. Inapplicable texts are empty.
struct Result {
    std::string source; // "online" if the service decided, "offline" if it was not reachable
    std::string code;   // VALID, the code of a rejection, CONFIGURATION, OFFLINE_REFUSED, or an outcome of one of the other calls
    std::optional<std::string> expires_at; // ISO 8601 in UTC; none if the license never expires or the check is rejected
    std::string reason;                    // the reason of CONFIGURATION, OFFLINE_REFUSED, BAD_FILE and NOT_IMPORTED
    std::string rejected_as;               // the code of the online rejection that ended the use of the file
    std::string message;                   // a sentence for the user of the app, if the license is not valid; the text may change
    std::string detail;                    // a description of an outage for the developer
    std::string refresh_after;             // the time from which the file is no longer good, as ISO 8601 in UTC
    std::optional<std::string> grace_ends_at{}; // the end of the grace period, if the license has expired and is in it

    std::optional<Entitlements> entitlements{}; // if the license is valid and the option is set
    std::optional<Machines> machines{};         // the used slots, with TOO_MANY_MACHINES of `activate` and LISTED
    std::optional<std::int64_t> releases_left{}; // with LISTED: the number of slots that apps may release now; none without a limit
    std::vector<Machine> list{};                // with LISTED: at most 100 machines that hold slots

    bool valid() const { return code == "VALID"; }
};

// A result, the time of the response, and the requested pause before a retry.
struct Response {
    Result result;
    std::optional<std::int64_t> date_ms;
    milliseconds retry_after{0};
    std::optional<std::int64_t> signed_ms{}; // the signed time; none if no signature is required
};

// The keys with which a response is verified, and the time of the latest signed response. Without keys, no signature is required.
struct Signing {
    const Keys* keys = nullptr;
    std::int64_t latest_signed_ms = 0;
};

// Parses the body of a response with a status that the endpoint defines. Returns none for a body that the service never sends.
using Reader = std::function<std::optional<Result>(long status, const std::string& body)>;

// Returns the message of a response: `message` on v2, `detail` elsewhere. Returns `otherwise` if the response has no text.
inline std::string message_of(const json& body, const std::string& otherwise) {
    for (const char* name : {"message", "detail"})
        if (const auto text = text_of(body, name); !text.empty()) return text;
    return otherwise;
}

// Parses the code, the message and the used slots of a rejection.
inline std::optional<Result> read_rejection(const json& body) {
    static const std::regex form("[A-Z][A-Z0-9_]{1,63}");
    static const std::set<std::string> rejections = {"NOT_FOUND", "BLACKLISTED", "REVOKED", "SUSPENDED", "EXPIRED",
                                                     "FINGERPRINT_REQUIRED", "TOO_MANY_MACHINES",
                                                     // Checks are not rejected with these codes.
                                                     "MACHINE_NOT_ACTIVE", "NOT_STARTED", "NOT_ENABLED"};
    const std::string code = text_of(body, "code");
    if (!std::regex_match(code, form)) return std::nullopt;
    Result result{"online", rejections.count(code) ? code : "REJECTED", {}, "", "", message_of(body, "The check was rejected."), "", ""};
    const json machines = body.value("machines", json::object());
    const auto is_count = [&](const char* name) { return machines.is_object() && machines.contains(name) && machines[name].is_number_integer(); };
    if (is_count("used") && is_count("max")) result.machines = Machines{machines["used"], machines["max"]};
    return result;
}

// Parses the fields that the verdicts of v1 and v2 have in common.
inline std::optional<Result> read_verdict(long status, const std::string& text, bool has_entitlements) {
    const json body = parse_object(text);
    const std::string code = text_of(body, "code");
    const auto valid = body.find("valid");
    if (valid == body.end() || !valid->is_boolean() || valid->get<bool>() != (code == "VALID")) return std::nullopt;
    if (!valid->get<bool>()) return read_rejection(body);
    const auto expires_at = body.find("expiresAt");
    if (status != 200 || expires_at == body.end()) return std::nullopt;
    const auto time = time_of(body, "expiresAt");
    const auto entitlements = has_entitlements ? read_entitlements(body) : std::nullopt;
    if ((!time && !expires_at->is_null()) || (has_entitlements && !entitlements)) return std::nullopt;
    return Result{"online", code, time, "", "", "", "", "", time_of(body, "graceEndsAt"), entitlements};
}

inline std::optional<Result> read_verdict_v2(long status, const std::string& text, bool has_entitlements) {
    const auto result = read_verdict(status, text, has_entitlements);
    const json body = parse_object(text);
    const bool agrees = !body.contains("status") || body["status"] == status;
    return result && agrees && result->valid() == (status == 200) ? result : std::nullopt;
}

inline std::optional<Result> read_deactivation(long status, const std::string& text) {
    const json body = parse_object(text);
    const auto deactivated = body.find("deactivated");
    if (status != 200) return text_of(body, "code") == "NOT_ENABLED" ? read_rejection(body) : std::nullopt;
    if (deactivated == body.end() || !deactivated->is_boolean()) return std::nullopt;
    return Result{"online", deactivated->get<bool>() ? "DEACTIVATED" : "NOT_ACTIVE", {}, "", "", "", "", ""};
}

// Parses the machines of a license, or the reason why the service lists none.
inline std::optional<Result> read_machines(long status, const std::string& text) {
    const json body = parse_object(text);
    if (status != 200) return read_rejection(body);
    const auto count = [&](const char* name) {
        const json value = body.value(name, json());
        return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
    };
    const auto is_absent = [](const json& object, const char* name) { return object.value(name, json()).is_null(); };
    const auto used = count("used"), max = count("max"), left = count("releasesLeft");
    const json machines = body.value("machines", json());
    const bool are_counts = used && (max || is_absent(body, "max")) && (left || is_absent(body, "releasesLeft"));
    if (!are_counts || !machines.is_array()) return std::nullopt;
    Result result{"online", "LISTED", {}, "", "", "", "", ""};
    result.machines = Machines{*used, max.value_or(0)};
    result.releases_left = left;
    for (const json& each : machines) {
        if (!each.is_object() || !each.value("current", json()).is_boolean()) return std::nullopt;
        const Machine machine{text_of(each, "ref"), text_of(each, "hostname"), text_of(each, "lastSeenAt"), each["current"].get<bool>()};
        const bool is_named = !machine.hostname.empty() || is_absent(each, "hostname") || each["hostname"] == "";
        if (machine.ref.empty() || machine.last_seen_at.empty() || !is_named) return std::nullopt;
        result.list.push_back(machine);
    }
    return result;
}

inline std::string configuration_reason(long status) {
    switch (status) {
        case 401: return "UNAUTHORIZED";
        case 403: return "FORBIDDEN";
        case 404: case 405: return "WRONG_ADDRESS";
        case 400: case 413: case 415: case 422: return "INVALID_REQUEST";
        case 429: return "RATE_LIMITED";
        default: return "UNEXPECTED_STATUS";
    }
}

class Transport {
public:
    Transport(std::string base_url, std::string api_key, milliseconds timeout, std::function<bool()> is_cancelled)
        : base_url_(std::move(base_url)), api_key_(std::move(api_key)), timeout_(timeout), is_cancelled_(std::move(is_cancelled)) {
        while (!base_url_.empty() && base_url_.back() == '/') base_url_.pop_back();
    }

    // Returns the result of `read`, UNREACHABLE or CONFIGURATION. Retries outages until the deadline. Each attempt asks for a signature
    // under the next public key, because the service does not sign under a withdrawn one.
    Response call(const std::string& path, const json& body, Clock::time_point deadline, const Reader& read,
                  const Signing& signing) const {
        for (int attempt = 1;; attempt++) {
            const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
            const Response response = request(path, body, attempt < max_attempts ? left / 2 : left, read, signing, attempt);
            // The random part prevents apps from retrying in unison after an outage.
            const auto pause = response.retry_after + milliseconds(std::random_device{}() % (200u * attempt));
            const bool is_final = attempt == max_attempts || is_cancelled() || deadline - Clock::now() - pause < timeout_ / 8;
            if (response.result.code != "UNREACHABLE" || is_final) return response;
            std::this_thread::sleep_for(pause);
        }
    }

private:
    Response request(const std::string& path, json body, milliseconds budget, const Reader& read, const Signing& signing,
                     int attempt) const {
        std::string key_id;
        if (signing.keys != nullptr) {
            key_id = std::next(signing.keys->begin(), (attempt - 1) % signing.keys->size())->first;
            body["nonce"] = new_nonce();
            body["kid"] = key_id;
        }
        const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
        std::string text, content = body.dump(-1, ' ', false, json::error_handler_t::replace);
        curl_slist* list = nullptr;
        const std::string authorization = "Authorization: Bearer " + api_key_;
        for (const char* line : {authorization.c_str(), "Content-Type: application/json", "Expect:"})
            list = curl_slist_append(list, line);
        const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> sent(list, curl_slist_free_all);
        curl_easy_setopt(curl.get(), CURLOPT_URL, (base_url_ + path).c_str());
        curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, sent.get());
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(content.size()));
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, content.c_str());
        curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(budget.count())));
        // The service never redirects, and following a redirect would send the API key to another host.
        curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
        // Abandons the resolution of a name at the timeout. Without this option, libcurl waits for the resolver of the system.
        curl_easy_setopt(curl.get(), CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, receive_body);
        curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &text);
        curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, is_cancelled_ ? 0L : 1L);
        curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, this);
        const CURLcode outcome = curl_easy_perform(curl.get());
        long status = 0;
        curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
        if (outcome != CURLE_OK || status == 0) return outage(curl_easy_strerror(outcome));
        std::optional<std::int64_t> signed_ms;
        if (signing.keys != nullptr && status != 408 && status < 500) {
            const SignedAnswer answer{header_of(curl.get(), "keyward-signature"), path, status, api_key_, content, text};
            const auto verified = verify_answer(answer, key_id, signing.keys->at(key_id), signing.latest_signed_ms);
            if (!verified.signed_ms)
                return outage("The response with status " + std::to_string(status) + " is not signed for this request: " +
                              verified.outcome + ".");
            signed_ms = verified.signed_ms;
        }
        const bool has_refusals = path == file_path || path == machines_path;
        const bool is_deactivation = path == deactivate_path;
        const bool is_defined = status == 200 || (!has_refusals && !is_deactivation && status == 400) ||
                                (has_refusals && status == 409) || ((is_deactivation || path == machines_path) && status == 403);
        if (is_defined)
            if (const auto result = read(status, text)) return {*result, date_of(curl.get()), milliseconds(0), signed_ms};
        if (status < 400 || status == 408 || status >= 500 || is_defined) {
            Response response = outage("The service is unavailable or is not Keyward: status " + std::to_string(status) + ".");
            curl_off_t seconds = 0;
            curl_easy_getinfo(curl.get(), CURLINFO_RETRY_AFTER, &seconds);
            response.retry_after = std::chrono::seconds(std::min<curl_off_t>(seconds, 1'000'000));
            return response;
        }
        const auto message = message_of(parse_object(text), "The service responded with status " + std::to_string(status) + ".");
        return {{"online", "CONFIGURATION", {}, configuration_reason(status), "", message, "", ""}, {}, milliseconds(0)};
    }

    bool is_cancelled() const { return is_cancelled_ && is_cancelled_(); }

    static int on_progress(void* transport, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<const Transport*>(transport)->is_cancelled() ? 1 : 0;
    }

    static std::size_t receive_body(char* part, std::size_t, std::size_t size, void* target) {
        auto& text = *static_cast<std::string*>(target);
        text.append(part, size);
        return text.size() > max_body_bytes ? 0 : size;
    }

    static std::optional<std::string> header_of(CURL* curl, const char* name) {
        curl_header* header = nullptr;
        const bool is_found = curl_easy_header(curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
        return is_found ? std::optional<std::string>(header->value) : std::nullopt;
    }

    static std::optional<std::int64_t> date_of(CURL* curl) {
        const auto header = header_of(curl, "Date");
        const auto seconds = header ? curl_getdate(header->c_str(), nullptr) : -1;
        return seconds < 0 ? std::nullopt : std::optional<std::int64_t>(static_cast<std::int64_t>(seconds) * 1000);
    }

    static Response outage(const std::string& detail) {
        return {{"offline", "UNREACHABLE", {}, "", "", unreachable_message, detail, ""}, {}, milliseconds(0)};
    }

    std::string base_url_;
    std::string api_key_;
    milliseconds timeout_;
    std::function<bool()> is_cancelled_;
};

} // namespace keyward
