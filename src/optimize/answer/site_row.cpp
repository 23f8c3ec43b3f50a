#include "optimize/answer/site_row.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "nest/domain/domain.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/answer/site_row.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

constexpr std::string_view restored = ".restore";  // the convolution that brings channels back is part of its site

const Site* find_site(const Sites& sites, const std::string& name) {
    const auto found = std::find_if(sites.all.begin(), sites.all.end(), [&](const Site& s) { return s.name == name; });
    return found == sites.all.end() ? nullptr : &*found;
}

const NestDerivation* nest_derivation(const Answer& answer, const std::string& site) {
    if (!answer.derivation()) return nullptr;
    const auto found = answer.derivation()->nests.find(site);
    return found == answer.derivation()->nests.end() ? nullptr : &found->second;
}

Domain domain_at(const Answer& answer, const std::string& site) {
    const NestDerivation* nest = nest_derivation(answer, site);
    return nest ? domain_of(nest->to) : Domain{};
}

// Rules over networks that took something from the site, then the steps of its nest.
std::vector<std::string> step_lines(const Answer& answer, const std::string& site) {
    std::vector<std::string> lines;
    if (!answer.derivation()) return lines;
    for (const NetStep& s : answer.derivation()->steps) {
        if (!s.neural || std::find(s.sites.begin(), s.sites.end(), site) == s.sites.end()) continue;
        std::string line = s.rule;
        for (const auto& [name, value] : s.with) line += fmt::format(" {}={}", name, to_string(value));
        lines.push_back(std::move(line));
    }
    const NestDerivation* nest = nest_derivation(answer, site);
    for (const DerivationStep& s : nest ? nest->steps : std::vector<DerivationStep>{}) {
        std::string line = s.rule;
        for (const auto& [name, value] : s.with)
            if (const std::string text = to_string(value); text.size() <= 24 && name.size() <= 4) line += fmt::format(" {}={}", name, text);
        lines.push_back(std::move(line));
    }
    return lines;
}

// What numbers the site multiplies, and how far it would move outputs if it alone were rounded.
json precision_json(const json& rounding, const std::string& site) {
    const auto found = rounding["of_site"].find(site);
    return found == rounding["of_site"].end() ? json{{"precision", "float32"}} : *found;
}

json no_time() { return {{"median_ms", 0.0}, {"iqr_ms", 0.0}, {"n", 0}, {"target", ""}, {"measured", true}, {"disturbed", false}}; }

}  // namespace

std::string effect_of(const Site& was, const Site* is, const Domain& domain) {
    if (!is) return "not computed: its branch was dropped";
    std::vector<std::string> words;
    if (is->statement != was.statement) words.push_back(narrower_words(is->statement, was.statement));
    if (!domain.whole() || words.empty()) words.push_back(effect_words(domain));
    return words.size() == 1 ? words[0] : words[0] + "; " + words[1];
}

std::string sequence_of(const Answer& answer, const Site& was) {
    const Site* is = find_site(answer.returned().sites, was.name);
    if (!is) return "dropped";
    const NestDerivation* nest = nest_derivation(answer, was.name);
    if (!nest) return is->statement == was.statement ? "dense" : "narrower";
    if (const std::string paper = paper_sequence(nest->steps); !paper.empty()) return paper;
    const Statement s = statement_of(nest_parts(nest->from).statement);
    const int co = s.axis("co");
    return effect_name(domain_of(nest->to), co < 0 ? 0 : s.axes[static_cast<std::size_t>(co)].extent);
}

json bound_json(const ErrorBound& b) {
    return {{"terms", b.terms}, {"roundings", b.roundings}, {"growth", b.growth}, {"operands", b.operands}, {"bound", b.bound}};
}

json errors_json(const std::map<std::string, SiteError>& errors) {
    json all = json::object();
    for (const auto& [site, error] : errors) {
        all[site] = bound_json(error.bound);
        all[site]["measured"] = error.measured ? json(*error.measured) : json();
    }
    return all;
}

json site_json(const Answer& answer, const Site& was) {
    const Network& returned = answer.returned();
    const Site* is = find_site(returned.sites, was.name);
    const Site* back = find_site(returned.sites, was.name + std::string(restored));
    const TunedNest& before = answer.original_tuning.best[was.kind];
    json j{{"name", was.name},
           {"op", was.op},
           {"shape", is ? is->shape : was.shape},
           {"original_statement", to_string(was.statement)},
           {"statement", to_string(is ? is->statement : was.statement)},
           {"variant", is ? domain_text(domain_at(answer, was.name)) : "dropped"},
           {"effect", effect_of(was, is, domain_at(answer, was.name))},
           {"sequence", sequence_of(answer, was)},
           {"steps", step_lines(answer, was.name)},
           {"original_latency", latency_json(before.best)},
           {"latency", is ? latency_json(answer.returned_tuning().best[is->kind].best) : no_time()},
           {"original_macs", was.macs},
           {"macs", is ? is->macs + (back ? back->macs : 0) : 0},
           {"original_parameters", was.parameters},
           {"parameters", is ? is->parameters + (back ? back->parameters : 0) : 0}};
    const NetworkRecord& record = answer.confirmed.keep_original ? answer.confirmed.original : answer.confirmed.optimized;
    if (!record.rounding.is_null()) j["precision"] = precision_json(record.rounding, was.name);
    if (before.nest) j["nest_before"] = to_string(bare(before.nest)), j["pseudo_before"] = pseudo(before.nest);
    if (!is) return j;
    const TunedNest& after = answer.returned_tuning().best[is->kind];
    const auto runs = record.nests.find(was.name);
    if (const Term nest = runs != record.nests.end() ? runs->second : after.nest) j["nest_after"] = to_string(bare(nest)), j["pseudo_after"] = pseudo(nest);
    if (back) {
        const TunedNest& t = answer.returned_tuning().best[back->kind];
        j["restoring"] = {{"name", back->name}, {"latency", latency_json(t.best)}, {"nest", to_string(bare(t.nest))}, {"pseudo", pseudo(t.nest)}};
    }
    return j;
}

}  // namespace loopegg
