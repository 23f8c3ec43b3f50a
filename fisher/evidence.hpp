// What guards have answered, kept for good: an append-only table of a store behind a small cache in memory.
#pragma once
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "store/address.hpp"

namespace loopegg {

class Database;

class EvidenceStore {
public:
    // An empty address keeps everything in memory only.
    explicit EvidenceStore(const StoreAddress& address);
    ~EvidenceStore();
    EvidenceStore(const EvidenceStore&) = delete;
    EvidenceStore& operator=(const EvidenceStore&) = delete;

    // The latest evidence under a key.
    std::optional<nlohmann::json> find(const Hash128& key);
    // Several at once, in one transaction.
    void append(const std::vector<std::pair<Hash128, nlohmann::json>>& rows);
    void append(const Hash128& key, const nlohmann::json& evidence) { append({{key, evidence}}); }

    std::int64_t count();

private:
    void remember(const Hash128& key, const nlohmann::json& evidence);

    static std::optional<nlohmann::json> parse_row(const std::string& body);
    std::unique_ptr<Database> database_;
    std::list<std::pair<std::string, nlohmann::json>> recent_;  // most recent first
    std::unordered_map<std::string, decltype(recent_)::iterator> place_;
    std::int64_t kept_ = 0;  // rows, without a file
};

}  // namespace loopegg
