#include "fisher/evidence.hpp"

#include "base/error.hpp"
#include "store/database.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_recent = 4096;

}  // namespace

EvidenceStore::EvidenceStore(const StoreAddress& address) {
    if (!address.empty()) database_ = std::make_unique<Database>(address, "the evidence store");
}
EvidenceStore::~EvidenceStore() = default;

void EvidenceStore::remember(const Hash128& key, const nlohmann::json& evidence) {
    std::string name = key.hex();
    if (auto found = place_.find(name); found != place_.end()) recent_.erase(found->second);
    recent_.emplace_front(name, evidence);
    place_[name] = recent_.begin();
    if (recent_.size() > max_recent && database_) {
        place_.erase(recent_.back().first);
        recent_.pop_back();
    }
}

// The verdict in a row; none for a row of a damaged store, whose question is asked again.
std::optional<nlohmann::json> EvidenceStore::parse_row(const std::string& body) {
    nlohmann::json row = nlohmann::json::parse(body, nullptr, false);
    if (!row.is_object() || !row.contains("allowed") || !row["allowed"].is_boolean() || !row.contains("why") || !row["why"].is_string()) return std::nullopt;
    return row;
}

std::optional<nlohmann::json> EvidenceStore::find(const Hash128& key) {
    if (auto found = place_.find(key.hex()); found != place_.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return recent_.front().second;
    }
    std::optional<nlohmann::json> result;
    if (database_) {
        StoreQuery q(*database_, "SELECT body FROM evidence WHERE key=? ORDER BY id DESC LIMIT 1");
        if (q.bind(key.hex()).row()) result = parse_row(q.text(0));
    }
    if (result) remember(key, *result);
    return result;
}

void EvidenceStore::append(const std::vector<std::pair<Hash128, nlohmann::json>>& rows) {
    if (rows.empty()) return;
    for (const auto& [key, evidence] : rows) {
        remember(key, evidence);
        if (!database_) ++kept_;
    }
    if (!database_) return;
    database_->atomically([&] {
        for (const auto& [key, evidence] : rows)
            StoreQuery(*database_, "INSERT INTO evidence(key, body, at) VALUES(?, ?, unixepoch())").bind(key.hex()).bind(evidence.dump()).done();
    });
}

std::int64_t EvidenceStore::count() {
    if (!database_) return kept_;
    StoreQuery q(*database_, "SELECT count(*) FROM evidence");
    return q.row() ? q.integer(0) : 0;
}

}  // namespace loopegg
