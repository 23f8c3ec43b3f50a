// Where a store is: an SQLite file, or a database of a PostgreSQL server. What is shown of an address never holds its password.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace loopegg {

class StoreAddress {
public:
    StoreAddress() = default;  // nowhere: a user of the store that can do so keeps rows in memory
    // A path, or 'postgresql://[USER@]HOST[:PORT]/DATABASE' as libpq reads it. Throws UserError for an address that is neither.
    StoreAddress(const std::string& text);                                            // NOLINT(google-explicit-constructor): a path is an address
    StoreAddress(const char* text) : StoreAddress(std::string(text)) {}               // NOLINT(google-explicit-constructor)
    StoreAddress(const std::filesystem::path& file) : StoreAddress(file.string()) {}  // NOLINT(google-explicit-constructor)

    bool empty() const { return file_.empty() && settings_.empty(); }
    bool on_server() const { return !settings_.empty(); }
    bool has_password() const { return settings_.contains("password"); }
    const std::filesystem::path& file() const { return file_; }                       // of an SQLite store
    const std::map<std::string, std::string>& settings() const { return settings_; }  // of a server's, by libpq's keywords
    std::string words() const;                                                        // for people and logs: no password
    bool exists() const;                                                              // always true of a server, whose first use makes the store

private:
    std::filesystem::path file_;
    std::map<std::string, std::string> settings_;
};

// LOOPEGG_STORE, or loopegg/latency.sqlite in the user's cache folder.
StoreAddress default_store();
// LOOPEGG_EVIDENCE, or LOOPEGG_STORE where that is a server, or loopegg/evidence.sqlite in the user's cache folder.
StoreAddress default_evidence();
// Reads an address that was typed as an argument. An address with a password is refused, because every user of the machine sees it in the list of processes.
StoreAddress typed_address(const std::string& text);
// Makes one store hold everything that this process and its children keep. The address goes through the environment, which no list of processes shows.
void use_store(const std::string& text);

}  // namespace loopegg
