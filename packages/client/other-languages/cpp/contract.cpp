// Runs the C++ client as a program for the contract suite (packages/client/contract-suite/README.md).

#include "keyward.hpp"

#include <iostream>

using keyward::json;

static auto cancel_at = keyward::Clock::time_point::max();

static std::unique_ptr<keyward::LicenseClient> open(const json& command) {
    keyward::Options options;
    const std::int64_t ahead_ms = command["clockAheadMs"];
    options.base_url = command["baseUrl"];
    options.api_key = command["apiKey"];
    for (const json& key : command["publicKeys"]) options.public_keys[key["keyId"]] = key["publicKey"];
    options.license_key = command["licenseKey"];
    options.storage = command["storage"].get<std::string>();
    options.product_id = keyward::text_of(command, "productId");
    options.machine_id = keyward::text_of(command, "machineId");
    options.hostname = keyward::text_of(command, "hostname");
    options.timeout = keyward::milliseconds(command["timeoutMs"].get<std::int64_t>());
    options.require_signature = command["requireSignature"];
    options.entitlements = command["entitlements"];
    options.is_cancelled = [] { return keyward::Clock::now() >= cancel_at; };
    options.now_ms = [clock = options.now_ms, ahead_ms] { return clock() + ahead_ms; };
    return std::make_unique<keyward::LicenseClient>(options);
}

static std::string judge(const json& command) {
    keyward::Keys keys;
    for (const json& key : command["publicKeys"]) keys[key["keyId"]] = keyward::read_public_key(key["publicKey"]);
    const keyward::FileUser user{command["licenseKey"], keyward::text_of(command, "productId"), keyward::text_of(command, "machineId")};
    return keyward::judge(command["file"], keys, user, command["nowMs"], command["latestSeenMs"]).outcome;
}

static std::string verify(const json& command) {
    const json& key = command["publicKeys"][0];
    const auto signature = command["signature"].is_null() ? std::nullopt : std::optional<std::string>(command["signature"]);
    const keyward::SignedAnswer answer{signature, command["path"], command["status"], command["apiKey"], command["request"],
                                       command["response"]};
    return keyward::verify_answer(answer, key["keyId"], keyward::read_public_key(key["publicKey"]), command["latestSignedMs"]).outcome;
}

static json machine_key(const std::string& path) {
    try {
        const auto key = keyward::machine_key(path);
        return {{"machineId", key.machine_id}, {"isNew", key.is_new}, {"isEphemeral", key.is_ephemeral}};
    } catch (const std::runtime_error& error) {
        return {{"error", error.what()}};
    }
}

static json entitlements_of(const keyward::Result& result) {
    if (!result.entitlements) return nullptr;
    json values = json::object();
    for (const auto& [name, value] : *result.entitlements)
        std::visit([&, &key = name](const auto& each) { values[key] = each; }, value);
    return values;
}

static json list_of(const keyward::Result& result) {
    json list = json::array();
    for (const auto& each : result.list)
        list.push_back({{"ref", each.ref},
                        {"hostname", each.hostname.empty() ? json(nullptr) : json(each.hostname)},
                        {"lastSeenAt", each.last_seen_at},
                        {"current", each.current}});
    return list;
}

static json reply(const keyward::Result& result) {
    const auto& machines = result.machines;
    return {{"list", list_of(result)},
            {"releasesLeft", result.releases_left ? json(*result.releases_left) : json(nullptr)},
            {"imported", result.code == "IMPORTED"},
            {"entitlements", entitlements_of(result)},
            {"machines", machines ? json{{"used", machines->used}, {"max", machines->max}} : json(nullptr)},
            {"source", result.source},         {"valid", result.valid()},
            {"code", result.code},             {"deactivated", result.code == "DEACTIVATED"},
            {"reason", result.reason},         {"expiresAt", result.expires_at ? json(*result.expires_at) : json(nullptr)},
            {"rejectedAs", result.rejected_as}, {"message", result.message},
            {"refreshAfter", result.refresh_after},
            {"graceEndsAt", result.grace_ends_at ? json(*result.grace_ends_at) : json(nullptr)}};
}

int main() {
    curl_global_init(CURL_GLOBAL_DEFAULT);
    std::unique_ptr<keyward::LicenseClient> client;
    for (std::string line; std::getline(std::cin, line);) {
        const json command = json::parse(line);
        const std::string name = command["command"];
        json result = json::object();
        if (name == "judge") result["outcome"] = judge(command);
        else if (name == "verify") result["outcome"] = verify(command);
        else if (name == "validate") result = reply(client->validate());
        else if (name == "machineKey") result = machine_key(command["path"]);
        else if (name == "validateAndCancel") {
            cancel_at = keyward::Clock::now() + keyward::milliseconds(command["afterMs"].get<std::int64_t>());
            result = reply(client->validate());
            cancel_at = keyward::Clock::time_point::max();
        }
        else if (name == "activate") result = reply(client->activate());
        else if (name == "deactivate") result = reply(client->deactivate());
        else if (name == "machines") result = reply(client->machines());
        else if (name == "release") result = reply(client->release(command["ref"]));
        else if (name == "requestCode") result["code"] = client->request_code();
        else if (name == "refreshFile") result = reply(client->refresh_file());
        else if (name == "importFile") result = reply(client->import_file(command["file"]));
        else try {
            client = open(command);
        } catch (const std::invalid_argument& error) {
            result["error"] = error.what();
        }
        std::cout << result.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
    }
}
