#include "optimize/rule_counts.hpp"

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "rules/judged.hpp"
#include "store/database.hpp"

namespace loopegg {

void ClassCounts::add(const ClassCounts& other) {
    runs += other.runs;
    for (const auto& [rule, c] : other.rules) {
        RuleCount& mine = rules[rule];
        mine.fired += c.fired, mine.asked += c.asked, mine.paid += c.paid;
    }
    for (const auto& [sequence, n] : other.sequences) sequences[sequence] += n;
}

std::string count_key(const Rule& rule) { return rule.name + " " + rule_hash(rule); }

const RuleCount* ClassCounts::find(const Rule& rule) const {
    auto it = rules.find(count_key(rule));
    if (it == rules.end()) it = rules.find(rule.name);
    return it == rules.end() ? nullptr : &it->second;
}

CountTable counts_from_json(const nlohmann::json& j) {
    CountTable table;
    for (const auto& [kind, entry] : j.items()) {
        ClassCounts& counts = table[kind];
        counts.runs = entry.at("runs").get<std::int64_t>();
        if (entry.contains("sequences")) counts.sequences = entry["sequences"].get<std::map<std::string, std::int64_t>>();
        for (const auto& [rule, c] : entry.at("rules").items())
            counts.rules[c.contains("hash") ? rule + " " + c["hash"].get<std::string>() : rule] = {
                c.at("fired").get<std::int64_t>(), c.at("asked").get<std::int64_t>(), c.at("paid").get<std::int64_t>()};
    }
    return table;
}

nlohmann::json to_json(const ClassCounts& counts) {
    nlohmann::json rules = nlohmann::json::object();
    for (const auto& [key, c] : counts.rules) {
        const std::size_t space = key.find(' ');
        nlohmann::json& rule = rules[key.substr(0, space)] = {{"fired", c.fired}, {"asked", c.asked}, {"paid", c.paid}};
        if (space != key.npos) rule["hash"] = key.substr(space + 1);
    }
    return {{"runs", counts.runs}, {"rules", std::move(rules)}, {"sequences", counts.sequences}};
}

nlohmann::json to_json(const CountTable& table) {
    nlohmann::json j = nlohmann::json::object();
    for (const auto& [kind, counts] : table) j[kind] = to_json(counts);
    return j;
}

namespace {

template <class F>
auto from_classes_file(F&& read) {
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
    return from_classes_file(
        [&](const nlohmann::json& j) { return j.at("capacity").contains(kind) ? std::optional(j["capacity"][kind].get<double>()) : std::nullopt; });
}

int shipped_trials(const std::string& kind) {
    return from_classes_file([&](const nlohmann::json& j) { return j.at("trials").value(kind, 0); });
}

CountTable stored_counts(const StoreAddress& store) {
    CountTable table;
    Database db(store, "the latency store");
    for (StoreQuery q(db, "SELECT class, COUNT(DISTINCT network) FROM rule_counts GROUP BY class"); q.row();) table[q.text(0)].runs = q.integer(1);
    for (StoreQuery q(db, "SELECT class, rule, SUM(fired), SUM(asked), SUM(paid) FROM rule_counts GROUP BY class, rule"); q.row();)
        table[q.text(0)].rules[q.text(1)] = {q.integer(2), q.integer(3), q.integer(4)};
    for (StoreQuery q(db, "SELECT class, sequence, COUNT(*) FROM sequence_counts GROUP BY class, sequence"); q.row();)
        table[q.text(0)].sequences[q.text(1)] = q.integer(2);
    return table;
}

void store_counts(const StoreAddress& store, const std::string& kind, const std::string& network, const ClassCounts& run) {
    Database db(store, "the latency store");
    db.atomically([&] {
        for (const auto& [rule, c] : run.rules)
            StoreQuery(db,
                       "INSERT INTO rule_counts(class, network, rule, fired, asked, paid) VALUES(?, ?, ?, ?, ?, ?) "
                       "ON CONFLICT(class, network, rule) DO UPDATE SET fired=excluded.fired, asked=excluded.asked, paid=excluded.paid")
                .bind(kind)
                .bind(network)
                .bind(rule)
                .bind(c.fired)
                .bind(c.asked)
                .bind(c.paid)
                .done();
        StoreQuery(db, "DELETE FROM sequence_counts WHERE class = ? AND network = ?").bind(kind).bind(network).done();
        for (const auto& [sequence, runs] : run.sequences)
            StoreQuery(db, "INSERT INTO sequence_counts(class, network, sequence) VALUES(?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(kind)
                .bind(network)
                .bind(sequence)
                .done();
    });
}

CountTable known_counts(const StoreAddress& store) {
    CountTable table = shipped_counts();
    for (const auto& [kind, counts] : stored_counts(store)) table[kind].add(counts);
    return table;
}

}  // namespace loopegg
