#include "fisher/evidence.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sqlite.hpp"

namespace loopegg {
namespace {

constexpr std::size_t most_recent = 4096;

constexpr const char* schema =
    "CREATE TABLE IF NOT EXISTS evidence(id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL DEFAULT (strftime('%s','now')));"
    "CREATE INDEX IF NOT EXISTS evidence_key ON evidence(key);"
    // Append-only, whoever writes.
    "CREATE TRIGGER IF NOT EXISTS evidence_stays BEFORE UPDATE ON evidence BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;"
    "CREATE TRIGGER IF NOT EXISTS evidence_remains BEFORE DELETE ON evidence BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;";

}  // namespace

struct EvidenceStore::Database {
    sqlite3* handle = nullptr;
    std::string path;

    explicit Database(const std::filesystem::path& file) : path(file.string()) {
        std::error_code ignored;
        if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
        if (sqlite3_open(path.c_str(), &handle) != SQLITE_OK) {
            std::string why = handle ? sqlite3_errmsg(handle) : "out of memory";
            sqlite3_close(handle);
            throw UserError(fmt::format("the evidence store {} cannot be opened: {}", path, why));
        }
        sqlite3_busy_timeout(handle, 60000);
        run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
        run(schema);
    }
    ~Database() { sqlite3_close(handle); }

    [[noreturn]] void fail() const { throw UserError(fmt::format("the evidence store {}: {}", path, sqlite3_errmsg(handle))); }
    void run(const char* sql) const {
        if (exec_waiting(handle, sql) != SQLITE_OK) fail();
    }
    // Calls `each` with the first column of every row.
    template <class Each> void query(const char* sql, const std::vector<std::string>& values, Each each) const {
        sqlite3_stmt* statement = nullptr;
        if (sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr) != SQLITE_OK) fail();
        std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, sqlite3_finalize);
        for (std::size_t i = 0; i < values.size(); ++i) sqlite3_bind_text(statement, static_cast<int>(i) + 1, values[i].data(), static_cast<int>(values[i].size()), SQLITE_TRANSIENT);
        int code;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) each(std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0))));
        if (code != SQLITE_DONE) fail();
    }
};

EvidenceStore::EvidenceStore(const std::filesystem::path& file) {
    if (!file.empty()) database_ = std::make_unique<Database>(file);
}
EvidenceStore::~EvidenceStore() = default;

void EvidenceStore::remember(const Hash128& key, const nlohmann::json& evidence) {
    std::string name = key.hex();
    if (auto found = place_.find(name); found != place_.end()) recent_.erase(found->second);
    recent_.emplace_front(name, evidence);
    place_[name] = recent_.begin();
    if (recent_.size() > most_recent && database_) {
        place_.erase(recent_.back().first);
        recent_.pop_back();
    }
}

std::optional<nlohmann::json> EvidenceStore::find(const Hash128& key) {
    if (auto found = place_.find(key.hex()); found != place_.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return recent_.front().second;
    }
    std::optional<nlohmann::json> result;
    if (database_) database_->query("SELECT body FROM evidence WHERE key=? ORDER BY id DESC LIMIT 1", {key.hex()}, [&](const std::string& body) {
        result = nlohmann::json::parse(body, nullptr, false);
        if (result->is_discarded()) throw UserError(fmt::format("the evidence store {} holds a row that is no JSON", database_->path));
    });
    if (result) remember(key, *result);
    return result;
}

void EvidenceStore::append(const std::vector<std::pair<Hash128, nlohmann::json>>& rows) {
    if (rows.empty()) return;
    if (database_) database_->run("BEGIN IMMEDIATE");
    try {
        for (const auto& [key, evidence] : rows) {
            remember(key, evidence);
            if (database_) database_->query("INSERT INTO evidence(key, body) VALUES(?, ?)", {key.hex(), evidence.dump()}, [](const std::string&) {});
            else kept_.push_back(evidence);
        }
        if (database_) database_->run("COMMIT");
    } catch (...) {
        if (database_) sqlite3_exec(database_->handle, "ROLLBACK", nullptr, nullptr, nullptr);
        throw;
    }
}

std::int64_t EvidenceStore::count() {
    if (!database_) return static_cast<std::int64_t>(kept_.size());
    std::int64_t count = 0;
    database_->query("SELECT count(*) FROM evidence", {}, [&](const std::string& text) { count = std::stoll(text); });
    return count;
}

std::vector<nlohmann::json> EvidenceStore::all() {
    if (!database_) return kept_;
    std::vector<nlohmann::json> rows;
    database_->query("SELECT body FROM evidence ORDER BY id", {}, [&](const std::string& body) { rows.push_back(nlohmann::json::parse(body)); });
    return rows;
}

std::filesystem::path default_evidence_file() {
    if (const char* file = std::getenv("LOOPEGG_EVIDENCE")) return file;
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(cache) / "loopegg" / "evidence.sqlite";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : ".") / ".cache" / "loopegg" / "evidence.sqlite";
}

}  // namespace loopegg
