#include "rules/read_phase.hpp"

#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/suggest.hpp"
#include "rules/read_rule.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::string_view, 6> keywords{":rules", ":iterations", ":nodes", ":seconds", ":scheduler", ":when"};

class PhaseReader {
public:
    PhaseReader(const SExpr& form, Complaints& complaints) : form_(form), complaints_(complaints) {}

    std::optional<Phase> read() {
        const std::size_t before = complaints_.count();
        phase_.name = read_name(form_, "phase", complaints_);
        phase_.where = form_.where;
        for (std::size_t i = 2; i < form_.items.size();) {
            const SExpr& key = form_.items[i];
            std::size_t end = i + 1;
            while (end < form_.items.size() && !is_keyword(form_.items[end])) ++end;
            read_setting(key, std::span(form_.items).subspan(i + 1, end - i - 1));
            i = end;
        }
        if (complaints_.count() == before && phase_.sets.empty())
            complaints_.say(form_.where, fmt::format("phase '{}' names no rulesets", phase_.name), "add ':rules' and the names of its sets");
        if (complaints_.count() != before) return {};
        return std::move(phase_);
    }

private:
    static bool is_keyword(const SExpr& e) { return !e.is_list && !e.quoted && !e.atom.empty() && e.atom[0] == ':'; }

    void read_setting(const SExpr& key, std::span<const SExpr> values) {
        if (!is_keyword(key)) return complaints_.say(key.where, fmt::format("a phase has settings such as ':iterations 6', and '{}' is none", to_string(key)));
        if (!seen_.insert(key.atom).second) return complaints_.say(key.where, fmt::format("'{}' is given twice", key.atom));
        if (key.atom == ":rules") return read_sets(key, values);
        if (key.atom == ":when") return read_conditions(key, values);
        if (key.atom == ":capacity") return complain_of_capacity(key, values);
        if (std::find(keywords.begin(), keywords.end(), key.atom) == keywords.end())
            return complaints_.say(key.where, fmt::format("a phase knows no '{}'", key.atom),
                                   did_you_mean(key.atom, std::span<const std::string_view>(keywords)));
        if (values.size() != 1)
            return complaints_.say(values.size() > 1 ? values[1].where : key.where,
                                   fmt::format("'{}' takes 1 value, but {} are given", key.atom, values.size()));
        if (key.atom == ":iterations") phase_.iterations = read_count(key, values[0]);
        if (key.atom == ":nodes") phase_.nodes = read_count(key, values[0]);
        if (key.atom == ":seconds") phase_.seconds = read_number(key, values[0]);
        if (key.atom == ":scheduler") read_scheduler(values[0]);
    }

    void read_sets(const SExpr& key, std::span<const SExpr> values) {
        if (values.empty()) complaints_.say(key.where, "':rules' is followed by no ruleset");
        for (const SExpr& v : values) {
            if (v.is_list || v.quoted)
                complaints_.say(v.where, "a ruleset is named by a word");
            else if (std::find(phase_.sets.begin(), phase_.sets.end(), v.atom) != phase_.sets.end())
                complaints_.say(v.where, fmt::format("ruleset '{}' is in this phase already", v.atom));
            else
                phase_.sets.push_back(v.atom);
        }
    }

    void read_conditions(const SExpr& key, std::span<const SExpr> values) {
        if (values.empty()) complaints_.say(key.where, "':when' is followed by no condition such as '(expected-loss <= 1)'");
        std::vector<Position> where;
        for (const SExpr& v : values)
            if (auto condition = read_measure(v, complaints_)) phase_.when.push_back(std::move(*condition)), where.push_back(v.where);
        check_measures(phase_.when, where, complaints_);
    }

    // The share of capacity that earlier rule files asked for. Half of it stood for one point.
    void complain_of_capacity(const SExpr& key, std::span<const SExpr> values) {
        const auto share = values.size() == 1 && !values[0].is_list ? number_in<double>(values[0].atom) : std::nullopt;
        const double points = share && *share > 0 && *share <= 1 ? std::round(-100 * std::log2(*share)) / 100 : 1;
        complaints_.say(key.where, "':capacity' is written as a condition on a measure", fmt::format("write ':when (expected-loss <= {})'", points + 0.0));
    }

    std::optional<std::int64_t> read_count(const SExpr& key, const SExpr& value) {
        const auto number = value.is_list || value.quoted ? std::nullopt : integer_of(Symbol(value.atom));
        if (number && *number > 0) return number;
        complaints_.say(value.where, fmt::format("'{}' takes a whole number above 0, but this is '{}'", key.atom, to_string(value)));
        return {};
    }

    std::optional<double> read_number(const SExpr& key, const SExpr& value) {
        const auto number = value.is_list || value.quoted ? std::nullopt : number_in<double>(value.atom);
        if (number && std::isfinite(*number) && *number > 0) return number;
        complaints_.say(value.where, fmt::format("'{}' takes a number above 0, but this is '{}'", key.atom, to_string(value)));
        return {};
    }

    void read_scheduler(const SExpr& value) {
        static constexpr std::array<std::string_view, 2> known{"simple", "backoff"};
        if (!value.is_list && std::find(known.begin(), known.end(), value.atom) != known.end())
            phase_.scheduler = value.atom;
        else
            complaints_.say(value.where, fmt::format("the schedulers are 'simple' and 'backoff', and '{}' is neither", to_string(value)),
                            did_you_mean(value.atom, std::span<const std::string_view>(known)));
    }

    const SExpr& form_;
    Complaints& complaints_;
    Phase phase_;
    std::set<std::string> seen_;
};

}  // namespace

std::optional<Phase> read_phase(const SExpr& form, Complaints& complaints) { return PhaseReader(form, complaints).read(); }

}  // namespace loopegg
