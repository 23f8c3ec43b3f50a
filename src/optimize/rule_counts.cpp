#include "optimize/rule_counts.hpp"

#include <vector>

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
CREATE TABLE IF NOT EXISTS sequence_counts(
  class TEXT NOT NULL, network TEXT NOT NULL, sequence TEXT NOT NULL, PRIMARY KEY(class, network, sequence)) WITHOUT ROWID;
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
    template <class Row> void each(const char* sql, Row&& row) { each(sql, {}, {}, row); }
    // `texts` and then `numbers` are the statement's parameters.
    template <class Row> void each(const char* sql, const std::vector<std::string>& texts, const std::vector<std::int64_t>& numbers, Row&& row) {
        sqlite3_stmt* s = nullptr;
        if (sqlite3_prepare_v2(db_, sql, -1, &s, nullptr) != SQLITE_OK) fail();
        int place = 0;
        for (const std::string& t : texts) sqlite3_bind_text(s, ++place, t.c_str(), -1, SQLITE_TRANSIENT);
        for (std::int64_t n : numbers) sqlite3_bind_int64(s, ++place, n);
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
    for (const auto& [sequence, n] : other.sequences) sequences[sequence] += n;
}

CountTable counts_from_json(const nlohmann::json& j) {
    CountTable table;
    for (const auto& [kind, entry] : j.items()) {
        ClassCounts& counts = table[kind];
        counts.runs = entry.at("runs").get<std::int64_t>();
        if (entry.contains("sequences")) counts.sequences = entry["sequences"].get<std::map<std::string, std::int64_t>>();
        for (const auto& [rule, c] : entry.at("rules").items()) counts.rules[rule] = {c.at("fired").get<std::int64_t>(), c.at("asked").get<std::int64_t>(), c.at("paid").get<std::int64_t>()};
    }
    return table;
}

nlohmann::json to_json(const ClassCounts& counts) {
    nlohmann::json rules = nlohmann::json::object();
    for (const auto& [rule, c] : counts.rules) rules[rule] = {{"fired", c.fired}, {"asked", c.asked}, {"paid", c.paid}};
    return {{"runs", counts.runs}, {"rules", std::move(rules)}, {"sequences", counts.sequences}};
}

nlohmann::json to_json(const CountTable& table) {
    nlohmann::json j = nlohmann::json::object();
    for (const auto& [kind, counts] : table) j[kind] = to_json(counts);
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

std::optional<double> shipped_capacity(const std::string& kind) {
    return from_classes_file([&](const nlohmann::json& j) { return j.at("capacity").contains(kind) ? std::optional(j["capacity"][kind].get<double>()) : std::nullopt; });
}

int shipped_trials(const std::string& kind) {
    return from_classes_file([&](const nlohmann::json& j) { return j.at("trials").value(kind, 0); });
}

CountTable stored_counts(const std::filesystem::path& store) {
    CountTable table;
    Database db(store);
    auto text = [](sqlite3_stmt* s, int column) { return std::string(reinterpret_cast<const char*>(sqlite3_column_text(s, column))); };
    db.each("SELECT class, COUNT(DISTINCT network) FROM rule_counts GROUP BY class", [&](sqlite3_stmt* s) { table[text(s, 0)].runs = sqlite3_column_int64(s, 1); });
    db.each("SELECT class, rule, SUM(fired), SUM(asked), SUM(paid) FROM rule_counts GROUP BY class, rule",
            [&](sqlite3_stmt* s) { table[text(s, 0)].rules[text(s, 1)] = {sqlite3_column_int64(s, 2), sqlite3_column_int64(s, 3), sqlite3_column_int64(s, 4)}; });
    db.each("SELECT class, sequence, COUNT(*) FROM sequence_counts GROUP BY class, sequence", [&](sqlite3_stmt* s) { table[text(s, 0)].sequences[text(s, 1)] = sqlite3_column_int64(s, 2); });
    return table;
}

void store_counts(const std::filesystem::path& store, const std::string& kind, const std::string& network, const ClassCounts& run) {
    Database db(store);
    const auto nothing = [](sqlite3_stmt*) {};
    db.run("BEGIN IMMEDIATE");
    for (const auto& [rule, c] : run.rules) db.each("INSERT OR REPLACE INTO rule_counts VALUES(?1, ?2, ?3, ?4, ?5, ?6)", {kind, network, rule}, {c.fired, c.asked, c.paid}, nothing);
    db.each("DELETE FROM sequence_counts WHERE class = ?1 AND network = ?2", {kind, network}, {}, nothing);
    for (const auto& [sequence, runs] : run.sequences) db.each("INSERT INTO sequence_counts VALUES(?1, ?2, ?3)", {kind, network, sequence}, {}, nothing);
    db.run("COMMIT");
}

CountTable known_counts(const std::filesystem::path& store) {
    CountTable table = shipped_counts();
    for (const auto& [kind, counts] : stored_counts(store)) table[kind].add(counts);
    return table;
}

}  // namespace loopegg
