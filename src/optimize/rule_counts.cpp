#include "optimize/rule_counts.hpp"

#include <sqlite3.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"

namespace loopegg {
namespace {

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS rule_counts(
  class TEXT NOT NULL, network TEXT NOT NULL, rule TEXT NOT NULL,
  fired INTEGER NOT NULL, asked INTEGER NOT NULL, paid INTEGER NOT NULL, PRIMARY KEY(class, network, rule)) WITHOUT ROWID;
)";

class Database {
public:
    explicit Database(const std::filesystem::path& file) {
        std::error_code ignored;
        std::filesystem::create_directories(file.parent_path(), ignored);
        if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) fail();
        sqlite3_busy_timeout(db_, 20'000);
        run(schema);
    }
    ~Database() { sqlite3_close(db_); }
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    void run(const char* sql) {
        if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
    }
    template <class Bind, class Row> void each(const char* sql, Bind&& bind, Row&& row) {
        sqlite3_stmt* s = nullptr;
        if (sqlite3_prepare_v2(db_, sql, -1, &s, nullptr) != SQLITE_OK) fail();
        bind(s);
        int code = SQLITE_ROW;
        while ((code = sqlite3_step(s)) == SQLITE_ROW) row(s);
        sqlite3_finalize(s);
        if (code != SQLITE_DONE) fail();
    }

private:
    [[noreturn]] void fail() const { throw UserError(std::string("the counts of rules: ") + sqlite3_errmsg(db_)); }
    sqlite3* db_ = nullptr;
};

}  // namespace

void ClassCounts::add(const ClassCounts& other) {
    runs += other.runs;
    for (const auto& [rule, c] : other.rules) {
        RuleCount& mine = rules[rule];
        mine.fired += c.fired, mine.asked += c.asked, mine.paid += c.paid;
    }
}

CountTable counts_from_json(const nlohmann::json& j) {
    CountTable table;
    for (const auto& [kind, entry] : j.items()) {
        ClassCounts& counts = table[kind];
        counts.runs = entry.at("runs").get<std::int64_t>();
        for (const auto& [rule, c] : entry.at("rules").items()) counts.rules[rule] = {c.at("fired").get<std::int64_t>(), c.at("asked").get<std::int64_t>(), c.at("paid").get<std::int64_t>()};
    }
    return table;
}

nlohmann::json to_json(const CountTable& table) {
    nlohmann::json j = nlohmann::json::object();
    for (const auto& [kind, counts] : table) {
        j[kind] = {{"runs", counts.runs}, {"rules", nlohmann::json::object()}};
        for (const auto& [rule, c] : counts.rules) j[kind]["rules"][rule] = {{"fired", c.fired}, {"asked", c.asked}, {"paid", c.paid}};
    }
    return j;
}

namespace {

template <class F> auto from_classes_file(F&& read) {
    const std::filesystem::path file = shipped("rules/classes.json");
    try {
        return read(nlohmann::json::parse(read_file(file)));
    } catch (const nlohmann::json::exception& e) {
        throw UserError(file.string() + " is not as it should be: " + e.what());
    }
}

}  // namespace

CountTable shipped_counts() {
    return from_classes_file([](const nlohmann::json& j) { return counts_from_json(j.at("counts")); });
}

std::string shipped_passes(const std::string& kind) {
    return from_classes_file([&](const nlohmann::json& j) { return j.at("passes").value(kind, std::string()); });
}

CountTable stored_counts(const std::filesystem::path& store) {
    CountTable table;
    Database db(store);
    auto text = [](sqlite3_stmt* s, int column) { return std::string(reinterpret_cast<const char*>(sqlite3_column_text(s, column))); };
    db.each("SELECT class, COUNT(DISTINCT network) FROM rule_counts GROUP BY class", [](sqlite3_stmt*) {}, [&](sqlite3_stmt* s) { table[text(s, 0)].runs = sqlite3_column_int64(s, 1); });
    db.each("SELECT class, rule, SUM(fired), SUM(asked), SUM(paid) FROM rule_counts GROUP BY class, rule", [](sqlite3_stmt*) {},
            [&](sqlite3_stmt* s) { table[text(s, 0)].rules[text(s, 1)] = {sqlite3_column_int64(s, 2), sqlite3_column_int64(s, 3), sqlite3_column_int64(s, 4)}; });
    return table;
}

void store_counts(const std::filesystem::path& store, const std::string& kind, const std::string& network, const std::map<std::string, RuleCount>& rules) {
    Database db(store);
    db.run("BEGIN IMMEDIATE");
    for (const auto& [rule, c] : rules)
        db.each("INSERT OR REPLACE INTO rule_counts VALUES(?1, ?2, ?3, ?4, ?5, ?6)", [&, &rule = rule, &c = c](sqlite3_stmt* s) {
            sqlite3_bind_text(s, 1, kind.c_str(), -1, SQLITE_TRANSIENT);
            sqlite3_bind_text(s, 2, network.c_str(), -1, SQLITE_TRANSIENT);
            sqlite3_bind_text(s, 3, rule.c_str(), -1, SQLITE_TRANSIENT);
            sqlite3_bind_int64(s, 4, c.fired), sqlite3_bind_int64(s, 5, c.asked), sqlite3_bind_int64(s, 6, c.paid);
        }, [](sqlite3_stmt*) {});
    db.run("COMMIT");
}

CountTable known_counts(const std::filesystem::path& store) {
    CountTable table = shipped_counts();
    for (const auto& [kind, counts] : stored_counts(store)) table[kind].add(counts);
    return table;
}

}  // namespace loopegg
