// Makes request codes and verifies signed responses (docs/api.md, F9 and G1 to G5). Uses neither a clock nor a network.
#pragma once

#include "license_file.hpp"

#include <openssl/rand.h>
#include <regex>

namespace keyward {

constexpr std::size_t max_signature_length = 4 * 1024;
constexpr std::size_t step_bytes = 33;

// A response of the service and its request.
struct SignedAnswer {
    std::optional<std::string> signature; // the header `keyward-signature`
    std::string path;                     // the path in the API, such as /api/v2/license/validate
    long status = 0;
    std::string api_key;
    std::string request;  // the body of the request
    std::string response; // the body of the response
};

// GOOD with the signed time in milliseconds since 1970, or the first problem without a time.
struct Verification {
    std::string outcome;
    std::optional<std::int64_t> signed_ms;
};

inline std::string encode_base64url(const std::string& bytes) {
    const std::string alphabet = letters + "-_";
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char byte : bytes) {
        bits = (bits << 8) | static_cast<unsigned char>(byte);
        for (count += 8; count >= 6;) text.push_back(alphabet[(bits >> (count -= 6)) & 63]);
    }
    if (count > 0) text.push_back(alphabet[(bits << (6 - count)) & 63]);
    return text;
}

inline std::string sha256(const std::string& data) {
    unsigned char digest[32];
    EVP_Digest(data.data(), data.size(), digest, nullptr, EVP_sha256(), nullptr);
    return std::string(reinterpret_cast<const char*>(digest), sizeof digest);
}

// Returns the code of a request for the file of a machine (F9).
inline std::string request_code_of(const json& request) {
    const std::string body = "KWR1." + encode_base64url(request.dump(-1, ' ', false, json::error_handler_t::replace));
    return body + "." + encode_base64url(sha256(body)).substr(0, 8);
}

// Returns 16 random bytes in base64url. Returns an empty text when the system has no random numbers; the service then rejects the request.
inline std::string new_nonce() {
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return "";
    return encode_base64url(std::string(reinterpret_cast<const char*>(bytes), sizeof bytes));
}

// Returns the root to which the steps lead from a leaf, or none for malformed steps.
inline std::optional<std::string> climb(std::string node, const std::string& steps) {
    if (steps.size() % step_bytes != 0) return std::nullopt;
    for (std::size_t at = 0; at < steps.size(); at += step_bytes) {
        const std::string neighbour = steps.substr(at + 1, step_bytes - 1);
        if (steps[at] != 0 && steps[at] != 1) return std::nullopt;
        node = sha256("\x01" + (steps[at] == 0 ? node + neighbour : neighbour + node));
    }
    return node;
}

inline PublicKey key_of(const std::string& bytes) {
    const auto start = reinterpret_cast<const unsigned char*>(bytes.data());
    return PublicKey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, start, bytes.size()), EVP_PKEY_free);
}

// Verifies a response with the public key `key_id`. latest_signed_ms is the time of the latest signed response, or 0.
inline Verification verify_answer(const SignedAnswer& answer, const std::string& key_id, const PublicKey& key,
                                  std::int64_t latest_signed_ms) {
    static const std::string time = "(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)";
    static const std::regex delegation("keyward-delegation-v1 ([\\w-]+) " + time + " " + time + " ([\\w-]{43})");
    static const std::regex statement("keyward-answers-v1 " + time + " ([\\w-]{43})");
    if (!answer.signature) return {"UNSIGNED", {}};
    if (answer.signature->size() > max_signature_length) return {"MALFORMED", {}};
    std::vector<std::string> parts;
    for (std::size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
        end = answer.signature->find('.', start);
        const auto part = decode_base64(std::string_view(*answer.signature).substr(start, end - start), letters + "-_");
        if (!part) return {"MALFORMED", {}};
        parts.push_back(*part);
    }
    if (parts.size() != 5) return {"MALFORMED", {}};
    std::smatch delegates, states;
    if (!std::regex_match(parts[0], delegates, delegation) || delegates[1] != key_id || !is_signed(key, parts[0], parts[1]))
        return {"BAD_DELEGATION", {}};
    const auto validator = decode_base64(delegates[4].str(), letters + "-_");
    if (!std::regex_match(parts[2], states, statement) || !validator || !is_signed(key_of(*validator), parts[2], parts[3]))
        return {"BAD_SIGNATURE", {}};
    // Times of this form have the order of their texts.
    if (states[1] < delegates[2] || !(states[1] < delegates[3])) return {"DELEGATION_EXPIRED", {}};
    const auto hash = [](const std::string& data) { return encode_base64url(sha256(data)); };
    const auto leaf = sha256("keyward-answer-v1 " + answer.path + " " + std::to_string(answer.status) + " " + hash(answer.api_key) +
                             " " + hash(answer.request) + " " + hash(answer.response));
    const auto root = climb(leaf, parts[4]);
    if (!root || encode_base64url(*root) != states[2]) return {"OTHER_ANSWER", {}};
    const auto signed_ms = to_ms(states[1]);
    if (!signed_ms || *signed_ms < latest_signed_ms - clock_tolerance_ms) return {"BACK_DATED", {}};
    return {"GOOD", signed_ms};
}

} // namespace keyward
