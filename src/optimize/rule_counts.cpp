#include "optimize/rule_counts.hpp"

#include "backends/measure/latency_store.hpp"
#include "base/database.hpp"
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

namespace {

// In the file of the latencies, in tables of its own.
class CountsFile : public Database {
public:
    explicit CountsFile(const std::filesystem::path& file) : Database(file, "the latency store", latency_version(), latency_schema()) { run(schema); }
};

}  // namespace

CountTable stored_counts(const std::filesystem::path& store) {
    CountTable table;
    CountsFile db(store);
    for (Query q(db, "SELECT class, COUNT(DISTINCT network) FROM rule_counts GROUP BY class"); q.row();) table[q.text(0)].runs = q.integer(1);
    for (Query q(db, "SELECT class, rule, SUM(fired), SUM(asked), SUM(paid) FROM rule_counts GROUP BY class, rule"); q.row();)
        table[q.text(0)].rules[q.text(1)] = {q.integer(2), q.integer(3), q.integer(4)};
    for (Query q(db, "SELECT class, sequence, COUNT(*) FROM sequence_counts GROUP BY class, sequence"); q.row();) table[q.text(0)].sequences[q.text(1)] = q.integer(2);
    return table;
}

void store_counts(const std::filesystem::path& store, const std::string& kind, const std::string& network, const ClassCounts& run) {
    CountsFile db(store);
    Transaction all(db);
    for (const auto& [rule, c] : run.rules)
        Query(db, "INSERT OR REPLACE INTO rule_counts VALUES(?1, ?2, ?3, ?4, ?5, ?6)").bind(kind).bind(network).bind(rule).bind(c.fired).bind(c.asked).bind(c.paid).done();
    Query(db, "DELETE FROM sequence_counts WHERE class = ?1 AND network = ?2").bind(kind).bind(network).done();
    for (const auto& [sequence, runs] : run.sequences) Query(db, "INSERT INTO sequence_counts VALUES(?1, ?2, ?3)").bind(kind).bind(network).bind(sequence).done();
    all.commit();
}

CountTable known_counts(const std::filesystem::path& store) {
    CountTable table = shipped_counts();
    for (const auto& [kind, counts] : stored_counts(store)) table[kind].add(counts);
    return table;
}

}  // namespace loopegg
