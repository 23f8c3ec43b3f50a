#include "optimize/store_care.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/measure/latency_store.hpp"
#include "base/database.hpp"
#include "base/error.hpp"
#include "base/owner.hpp"
#include "base/system_words.hpp"
#include "base/text.hpp"
#include "fisher/evidence.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;

// A file as it is, opened to read: nothing is made, changed or upgraded.
class Reader {
public:
    explicit Reader(const fs::path& file) {
        code_ = sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr);
        sqlite3_busy_timeout(db_, 10000);
    }
    ~Reader() { sqlite3_close(db_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Every row that can be read; what ended the reading, "" for the end.
    template <class Row> std::string each(const std::string& sql, Row&& row) {
        sqlite3_stmt* s = nullptr;
        int code = sqlite3_prepare_v2(db_, sql.c_str(), -1, &s, nullptr);
        if (code == SQLITE_OK)
            while ((code = sqlite3_step(s)) == SQLITE_ROW) row(s);
        const std::string why = code == SQLITE_DONE ? "" : sqlite3_errmsg(db_);
        sqlite3_finalize(s);
        return why;
    }
    bool has_table(const std::string& name) {
        bool found = false;
        each("SELECT name FROM sqlite_master WHERE type='table'", [&](sqlite3_stmt* s) { found = found || text(s, 0) == name; });
        return found;
    }
    static std::string text(sqlite3_stmt* s, int column) {
        const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
        return t ? t : "";
    }

private:
    sqlite3* db_ = nullptr;
    int code_ = SQLITE_OK;
};

struct Kind {
    const char* name;
    const char* table;
    std::vector<const char*> tables;   // all of them
    int version;
    const char* schema;
};
const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{{"latencies", "latency", {"latency", "rule_counts", "sequence_counts"}, latency_version(), latency_schema()},
                                       {"evidence", "evidence", {"evidence"}, evidence_version(), evidence_schema()}};
    return all;
}

// Whether a row says something: counts what it is, and what is wrong with it.
bool sound_latency(sqlite3_stmt* s, StoreReport& r, std::int64_t& impossible) {
    const std::string state = Reader::text(s, 0);
    if (state == "failed") return ++r.failed, true;
    if (state == "claimed") {
        ++r.claimed;
        const bool lives = owner_lives(Reader::text(s, 4), sqlite3_column_double(s, 5));
        r.stale += !lives;
        return lives;
    }
    const bool fine = state == "measured" && is_a_time(sqlite3_column_double(s, 1), sqlite3_column_double(s, 2), sqlite3_column_int(s, 3));
    impossible += !fine;
    return fine;
}

bool sound_evidence(const std::string& body) {
    const auto j = nlohmann::json::parse(body, nullptr, false);
    return j.is_object() && j.contains("allowed") && j["allowed"].is_boolean() && j.contains("why") && j["why"].is_string();
}

constexpr const char* look_at_latencies = "SELECT state, median_ms, iqr_ms, n, owner, strftime('%s','now') - at FROM latency";

std::string columns_of(Reader& from, const std::string& table) {
    std::string all;
    from.each("PRAGMA table_info(" + table + ")", [&](sqlite3_stmt* s) { all += (all.empty() ? "" : ", ") + Reader::text(s, 1); });
    return all;
}

// Row by row, by the columns that both have; those that say nothing stay behind.
std::int64_t copy(Reader& from, Database& to, const std::string& table) {
    std::int64_t copied = 0;
    const std::string columns = columns_of(from, table);
    if (columns.empty()) return 0;
    const std::vector<std::string> names = split(columns, ',');
    std::string marks;
    for (std::size_t i = 0; i < names.size(); ++i) marks += i ? ",?" : "?";
    sqlite3_stmt* put = nullptr;
    const std::string sql = fmt::format("INSERT OR IGNORE INTO {}({}) VALUES({})", table, columns, marks);
    if (sqlite3_prepare_v2(to.handle(), sql.c_str(), -1, &put, nullptr) != SQLITE_OK) return 0;
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(put, sqlite3_finalize);
    from.each(fmt::format("SELECT {} FROM {}", columns, table), [&](sqlite3_stmt* row) {
        sqlite3_reset(put);
        for (int c = 0; c < sqlite3_column_count(row); ++c) sqlite3_bind_value(put, c + 1, sqlite3_column_value(row, c));
        if (sqlite3_step(put) != SQLITE_DONE) to.fail(sqlite3_errcode(to.handle()));
        ++copied;
    });
    return copied;
}

}  // namespace

StoreReport check_store(const fs::path& file) {
    StoreReport r;
    r.file = file;
    std::error_code none;
    if (!(r.there = fs::exists(file, none))) return r;
    Reader db(file);
    std::int64_t version = 0;
    if (const std::string why = db.each("PRAGMA user_version", [&](sqlite3_stmt* s) { version = sqlite3_column_int64(s, 0); }); !why.empty()) {
        r.faults.push_back("it cannot be read: " + why);
        return r;
    }
    for (const Kind& k : kinds())
        if (db.has_table(k.table)) {
            r.kind = k.name;
            if (version > k.version) r.faults.push_back(fmt::format("it is of a later loopegg (its version is {}, this program knows {})", version, k.version));
        }
    if (r.kind.empty()) r.faults.push_back("it is no store of loopegg");
    std::string damage;
    db.each("PRAGMA integrity_check(1)", [&](sqlite3_stmt* s) { damage = Reader::text(s, 0); });
    if (damage != "ok") r.faults.push_back("it is damaged: " + split(damage, '\n')[0]);
    std::int64_t impossible = 0;
    std::string broken;
    if (r.kind == "latencies") broken = db.each(look_at_latencies, [&](sqlite3_stmt* s) { ++r.rows, sound_latency(s, r, impossible); });
    if (r.kind == "evidence") broken = db.each("SELECT body FROM evidence", [&](sqlite3_stmt* s) { ++r.rows, impossible += !sound_evidence(Reader::text(s, 0)); });
    if (!broken.empty() && damage == "ok") r.faults.push_back("it cannot be read to its end: " + broken);
    if (impossible) r.faults.push_back(fmt::format("{} rows say nothing that can be: times that no clock gives, or verdicts that are none", impossible));
    return r;
}

StoreReport repair_store(const fs::path& file) {
    StoreReport r = check_store(file);
    if (!r.there) throw UserError("there is no store at '" + file.string() + "'");
    if (r.faults.empty() && r.stale == 0) return r;
    if (r.kind.empty() && file.filename().string().find("evidence") != std::string::npos) r.kind = "evidence";
    const Kind& kind = r.kind == "evidence" ? kinds()[1] : kinds()[0];
    const fs::path fresh = file.string() + ".repaired", old = file.string() + ".damaged";
    std::error_code ignored;
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(fresh.string() + end, ignored);
    {
        Reader from(file);
        Database to(fresh, "the repaired store", kind.version, kind.schema);
        to.run("BEGIN IMMEDIATE");
        for (const char* table : kind.tables) {
            if (!from.has_table(table)) continue;
            if (std::string(table) != kind.table)   // made by those who use them
                from.each(fmt::format("SELECT sql FROM sqlite_master WHERE name='{}'", table), [&](sqlite3_stmt* s) { to.try_run(Reader::text(s, 0).c_str()); });
            r.saved += copy(from, to, table);
        }
        if (kind.name == std::string("latencies")) {
            std::vector<std::string> bad;
            for (Query q(to, "SELECT key, state, median_ms, iqr_ms, n, owner, strftime('%s','now') - at FROM latency"); q.row();) {
                const std::string state = q.text(1);
                const bool fine = state == "failed" || (state == "claimed" && owner_lives(q.text(5), q.real(6))) || (state == "measured" && is_a_time(q.real(2), q.real(3), static_cast<int>(q.integer(4))));
                if (!fine) bad.push_back(q.text(0));
            }
            for (const std::string& key : bad) Query(to, "DELETE FROM latency WHERE key=?").bind(key).done(), --r.saved;
        }
        to.run("COMMIT");
        to.run("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    fs::rename(file, old);
    for (const char* end : {"-wal", "-shm"}) fs::remove(file.string() + end, ignored);
    fs::rename(fresh, file);
    for (const char* end : {"-wal", "-shm"}) fs::remove(fresh.string() + end, ignored);
    return r;
}

std::int64_t forget(const fs::path& file, const Forgotten& what) {
    Database db(file, "the latency store", latency_version(), latency_schema());
    const bool all = !what.failures && !what.claims && !what.times;
    std::int64_t gone = 0;
    Transaction changes(db);
    std::vector<std::string> keys;
    for (Query q(db, "SELECT key, state, target, nest FROM latency"); q.row();) {
        const std::string state = q.text(1);
        const bool kind = all || (what.failures && state == "failed") || (what.claims && state == "claimed") || (what.times && state == "measured");
        if (kind && (what.target.empty() || q.text(2) == what.target) && glob_matches(what.nest, q.text(3))) keys.push_back(q.text(0));
    }
    for (const std::string& key : keys) Query(db, "DELETE FROM latency WHERE key=?").bind(key).done(), ++gone;
    changes.commit();
    return gone;
}

}  // namespace loopegg
