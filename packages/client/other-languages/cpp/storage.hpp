// The client's state in a file: the license file of each license key, and the latest observed time.
#pragma once

#include "license_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

namespace keyward {

constexpr std::size_t max_licenses = 10;

struct Stored {
    std::string license_key;
    std::string file;
    std::string rejected_as; // the code that ended the use of the file, or empty
};

struct State {
    std::int64_t latest_seen_ms = 0;
    std::int64_t latest_signed_ms = 0; // the time of the latest signed response
    std::vector<Stored> licenses; // newest file first

    Stored* find(const std::string& license_key) {
        const auto is_own = [&](const Stored& each) { return each.license_key == license_key; };
        const auto found = std::find_if(licenses.begin(), licenses.end(), is_own);
        return found == licenses.end() ? nullptr : &*found;
    }

    void add(const std::string& license_key, const std::string& file) {
        const auto is_own = [&](const Stored& each) { return each.license_key == license_key; };
        licenses.erase(std::remove_if(licenses.begin(), licenses.end(), is_own), licenses.end());
        licenses.insert(licenses.begin(), Stored{license_key, file, ""});
        if (licenses.size() > max_licenses) licenses.resize(max_licenses);
    }
};

// Returns the stored state. Returns an empty state when the storage fails or contains another text.
inline State read_state(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const json content = parse_object(text);
    State state;
    const auto time = [&](const char* name) {
        const auto found = content.find(name);
        return found != content.end() && found->is_number() ? found->get<std::int64_t>() : 0;
    };
    state.latest_seen_ms = time("latestSeenMs");
    state.latest_signed_ms = time("latestSignedMs");
    const auto licenses = content.find("licenses");
    if (licenses == content.end() || !licenses->is_array()) return state;
    for (const json& each : *licenses)
        if (each.is_object() && each.contains("file") && each["file"].is_string() && !text_of(each, "licenseKey").empty())
            state.licenses.push_back({text_of(each, "licenseKey"), text_of(each, "file"), text_of(each, "rejectedAs")});
    return state;
}

// Writes a new file that only its owner can read, and flushes it to the disk. On Windows, the permissions of the folder apply
// instead, and the file is not flushed to the disk. Returns whether the write succeeded.
inline bool write_draft(const std::filesystem::path& path, const std::string& text) {
#ifdef _WIN32
    std::ofstream file(path, std::ios::binary); // the permissions of the folder apply
    file << text << std::flush;
    return file.good();
#else
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return false;
    const bool is_written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const bool is_flushed = ::fsync(file) == 0;
    return (::close(file) == 0) && is_written && is_flushed;
#endif
}

// Replaces the file atomically: a crash or a failure leaves either the old or the new text. Returns whether the write succeeded.
inline bool write_state(const std::filesystem::path& path, const State& state, const std::string& unique) {
    json licenses = json::array();
    for (const Stored& each : state.licenses) {
        const json rejected_as = each.rejected_as.empty() ? json(nullptr) : json(each.rejected_as);
        licenses.push_back({{"licenseKey", each.license_key}, {"file", each.file}, {"rejectedAs", rejected_as}});
    }
    const json content = {{"version", 2},
                          {"latestSeenMs", state.latest_seen_ms},
                          {"latestSignedMs", state.latest_signed_ms},
                          {"licenses", licenses}};
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    const auto draft = path.string() + "." + unique + ".tmp";
    const bool is_written = write_draft(draft, content.dump(-1, ' ', false, json::error_handler_t::replace));
    if (is_written) std::filesystem::rename(draft, path, error);
    const bool is_replaced = is_written && !error;
    std::filesystem::remove(draft, error);
    return is_replaced;
}

} // namespace keyward
