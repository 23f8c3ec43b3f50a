#include "optimize/rule_counts.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "rules/judged.hpp"
#include "store/database.hpp"

namespace loopegg {

void ClassCounts::add(const NetworkCounts& network) {
    for (const auto& [rule, c] : network.rules) {
        RuleSum& mine = rules[rule];
        mine.fired += c.fired, mine.asked += c.asked, mine.paid += c.paid, ++mine.networks;
    }
    for (const std::string& sequence : network.sequences) ++sequences[sequence];
}

std::string count_key(const Rule& rule) { return rule.name + " " + rule_hash(rule); }

const RuleSum* ClassCounts::find(const Rule& rule) const {
    const auto it = rules.find(count_key(rule));
    return it == rules.end() ? nullptr : &it->second;
}

CountedNetworks counts_from_json(const nlohmann::json& j) {
    CountedNetworks counted;
    for (const auto& [kind, networks] : j.items())
        for (const auto& [network, entry] : networks.items()) {
            NetworkCounts& counts = counted[kind][network];
            counts.name = entry.at("name").get<std::string>();
            counts.sequences = entry.at("sequences").get<std::set<std::string>>();
            for (const auto& [rule, c] : entry.at("rules").items())
                counts.rules[rule + " " + c.at("hash").get<std::string>()] = {c.at("fired").get<std::int64_t>(), c.at("asked").get<std::int64_t>(),
                                                                              c.at("paid").get<std::int64_t>()};
        }
    return counted;
}

nlohmann::json to_json(const NetworkCounts& counts) {
    nlohmann::json rules = nlohmann::json::object();
    for (const auto& [key, c] : counts.rules) {
        const std::size_t space = key.find(' ');
        rules[key.substr(0, space)] = {{"fired", c.fired}, {"asked", c.asked}, {"paid", c.paid}, {"hash", key.substr(space + 1)}};
    }
    return {{"name", counts.name}, {"rules", std::move(rules)}, {"sequences", counts.sequences}};
}

nlohmann::json to_json(const CountedNetworks& counted) {
    nlohmann::json j = nlohmann::json::object();
    for (const auto& [kind, networks] : counted)
        for (const auto& [network, counts] : networks) j[kind][network] = to_json(counts);
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

CountedNetworks shipped_counts() {
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

std::set<std::string> shipped_keep(const std::string& kind) {
    return from_classes_file([&](const nlohmann::json& j) { return j.at("keep").value(kind, std::set<std::string>()); });
}

CountedNetworks stored_counts(const StoreAddress& store) {
    // An earlier loopegg wrote a network's name in place of its hash. Nobody can tell which network such a row is about, so it does not count.
    CountedNetworks counted;
    Database db(store, "the latency store");
    for (StoreQuery q(db, "SELECT class, network, rule, fired, asked, paid FROM rule_counts"); q.row();)
        if (is_hex_of_hash(q.text(1))) counted[q.text(0)][q.text(1)].rules[q.text(2)] = {q.integer(3), q.integer(4), q.integer(5)};
    for (StoreQuery q(db, "SELECT class, network, sequence FROM sequence_counts"); q.row();)
        if (is_hex_of_hash(q.text(1))) counted[q.text(0)][q.text(1)].sequences.insert(q.text(2));
    return counted;
}

void store_counts(const StoreAddress& store, const std::string& kind, const Hash128& network, const NetworkCounts& run) {
    Database db(store, "the latency store");
    db.atomically([&] {
        for (const char* table : {"rule_counts", "sequence_counts"})
            StoreQuery(db, fmt::format("DELETE FROM {} WHERE class = ? AND network = ?", table)).bind(kind).bind(network.hex()).done();
        for (const auto& [rule, c] : run.rules)
            StoreQuery(db, "INSERT INTO rule_counts(class, network, rule, fired, asked, paid) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(kind)
                .bind(network.hex())
                .bind(rule)
                .bind(c.fired)
                .bind(c.asked)
                .bind(c.paid)
                .done();
        for (const std::string& sequence : run.sequences)
            StoreQuery(db, "INSERT INTO sequence_counts(class, network, sequence) VALUES(?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(kind)
                .bind(network.hex())
                .bind(sequence)
                .done();
    });
}

CountTable counts_without(const Hash128& network, const CountedNetworks& counted) {
    CountTable table;
    for (const auto& [kind, networks] : counted)
        for (const auto& [hash, counts] : networks)
            if (hash != network.hex()) table[kind].add(counts);
    return table;
}

CountTable known_counts(const StoreAddress& store, const Hash128& network) {
    CountedNetworks counted = shipped_counts(), stored = stored_counts(store);
    for (auto& [kind, networks] : stored)
        for (auto& [hash, counts] : networks) counted[kind][hash] = std::move(counts);
    return counts_without(network, counted);
}

}  // namespace loopegg
