// A machine id that depends on no hardware: the hash of a key pair, which is created once and kept in a file.
#pragma once

#include "signed_answer.hpp"
#include "storage.hpp"

#include <openssl/pem.h>
#include <random>
#include <stdexcept>
#ifdef __linux__
#include <sys/vfs.h>
#endif

namespace keyward {

struct MachineKey {
    std::string machine_id; // for the option `machine_id`: `mk1_` and the SHA-256 of the public key in base64url
    bool is_new;            // whether the call has created the key
    // Whether the key is lost when the container is replaced or the machine restarts, because its folder is in a layer of a container or
    // in memory. Always false on systems other than Linux.
    bool is_ephemeral;
};

// Returns null if the file is missing. Throws std::runtime_error for a file without an Ed25519 key.
inline PublicKey read_machine_key(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file && !std::filesystem::exists(path)) return nullptr;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::unique_ptr<BIO, decltype(&BIO_free)> source(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
    // An empty password prevents OpenSSL from asking for one.
    PublicKey key(PEM_read_bio_PrivateKey(source.get(), nullptr, nullptr, const_cast<char*>("")), EVP_PKEY_free);
    if (key && EVP_PKEY_is_a(key.get(), "ED25519")) return key;
    throw std::runtime_error("The file " + path.string() +
                             " does not contain a machine key. Delete it to create a new one, which needs another slot.");
}

// Creates the file, complete and flushed to the disk. Returns false if another process has created it meanwhile.
inline bool create_machine_key(const std::filesystem::path& path) {
    const PublicKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), EVP_PKEY_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> target(BIO_new(BIO_s_mem()), BIO_free);
    PEM_write_bio_PKCS8PrivateKey(target.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    char* text = nullptr;
    const auto size = static_cast<std::size_t>(BIO_get_mem_data(target.get(), &text));
    const auto draft = path.string() + "." + std::to_string(std::random_device{}()) + ".tmp";
    std::error_code error, ignored;
    const bool is_written = write_draft(draft, std::string(text, size));
    // Unlike a rename, a link never replaces the key of another process.
    if (is_written) std::filesystem::create_hard_link(draft, path, error);
    std::filesystem::remove(draft, ignored);
    if (is_written && !error) return true;
    if (is_written && error == std::errc::file_exists) return false;
    throw std::runtime_error("The machine key " + path.string() + " could not be created.");
}

inline bool is_ephemeral([[maybe_unused]] const std::filesystem::path& folder) {
#ifdef __linux__
    struct statfs found;
    if (::statfs(folder.c_str(), &found) != 0) return false;
    const auto type = static_cast<std::uint32_t>(found.f_type);
    return type == 0x794c7630 || type == 0x61756673 || type == 0x01021994 || type == 0x858458f6; // overlay, aufs, tmpfs, ramfs
#else
    return false;
#endif
}

// Returns the key of this machine from a file, and creates it if the file is missing. Only the owner can read the file. Processes that start
// at the same time get the same key. Throws std::runtime_error when the file cannot be created, or does not contain an Ed25519 key.
inline MachineKey machine_key(const std::filesystem::path& file) {
    const auto path = std::filesystem::absolute(file);
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    PublicKey key = read_machine_key(path);
    const bool is_new = !key && create_machine_key(path);
    if (!key) key = read_machine_key(path);
    std::string bytes(32, '\0');
    std::size_t size = bytes.size();
    if (!key || EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size) != 1)
        throw std::runtime_error("The machine key " + path.string() + " was deleted while it was read.");
    return {"mk1_" + encode_base64url(sha256(bytes)), is_new, is_ephemeral(path.parent_path())};
}

} // namespace keyward
