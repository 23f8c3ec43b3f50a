#include "rules/measure.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "rules/complaints.hpp"

namespace loopegg {
namespace {

constexpr std::string_view share = "share of the original's";

constexpr std::array<MeasureKind, 11> kinds{{
    {"expected-loss", "points of accuracy", "expected to be lost after training, by a fit to trained networks", 100, true, true},
    {"fisher", share, "Fisher Potential of the whole network", 100},
    {"fisher-layer", share, "geometric mean of the layers' Fisher Potential", 100},
    {"fisher-band", "share that is kept", "Fisher Potential preserved on both sides, together with ReLU codes, work and parameters", 1},
    {"naswot", share, "determinant of how differently ReLUs code the images", 100},
    {"synflow", share, "flow through absolute weights, no data", 100},
    {"snip", share, "sensitivity of the loss to each weight", 100},
    {"grad-norm", share, "norm of the weight gradients", 100},
    {"ensemble", share, "codes, evenness of Fisher Potential over layers, flow and size together", 100},
    {"params", share, "trained values", 1, true},
    {"macs", share, "multiply-accumulates", 1, true},
}};

std::vector<std::string_view> measure_names() {
    std::vector<std::string_view> all;
    for (const MeasureKind& k : kinds) all.push_back(k.name);
    return all;
}

// The comparison that was meant by another sign; none where it is unclear.
std::string_view meant_comparison(std::string_view sign) {
    if (sign == "=>" || sign == ">" || sign == "≥") return ">=";
    if (sign == "=<" || sign == "<" || sign == "≤") return "<=";
    return {};
}

bool read_comparison(const SExpr& sign, const MeasureKind& kind, MeasureCondition& into, Complaints& complaints) {
    if (!sign.is_atom(">=") && !sign.is_atom("<=")) {
        const std::string_view meant = sign.is_list ? std::string_view() : meant_comparison(sign.atom);
        complaints.say(sign.where, fmt::format("a measure is compared by '>=' or '<=', and this is '{}'", to_string(sign)),
                       meant.empty() ? "" : fmt::format("did you mean '{}'?", meant));
        return false;
    }
    into.at_least = sign.is_atom(">=");
    if (!into.at_least || !kind.is_loss) return true;
    complaints.say(sign.where, fmt::format("'{} >=' admits only networks that lose much: a loss is compared by '<='", kind.name));
    return false;
}

bool read_threshold(const SExpr& written, const MeasureKind& kind, MeasureCondition& into, Complaints& complaints) {
    const auto number = written.is_list || written.quoted ? std::nullopt : number_in<double>(written.atom);
    const bool fits = number && std::isfinite(*number) && *number <= kind.most && (kind.is_loss ? *number >= 0 : *number > 0);
    if (!fits) {
        complaints.say(written.where,
                       fmt::format("'{}' is compared with a number {} 0 {} {} ({}), and this is '{}'", kind.name, kind.is_loss ? "from" : "above",
                                   kind.is_loss ? "to" : "and up to", kind.most, kind.unit, to_string(written)));
        return false;
    }
    into.threshold = *number;
    return true;
}

}  // namespace

std::span<const MeasureKind> measure_kinds() { return kinds; }

const MeasureKind* find_measure_kind(std::string_view name) {
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const MeasureKind& k) { return k.name == name; });
    return found == kinds.end() ? nullptr : &*found;
}

const MeasureKind& MeasureCondition::kind() const {
    const MeasureKind* found = find_measure_kind(measure);
    require(found != nullptr, "a condition names a measure of the table");
    return *found;
}

std::string to_string(const MeasureCondition& c) { return fmt::format("({} {} {})", c.measure, c.at_least ? ">=" : "<=", c.threshold); }

std::string to_string(std::span<const MeasureCondition> conditions) {
    std::string text;
    for (const MeasureCondition& c : conditions) text += (text.empty() ? "" : " ") + to_string(c);
    return text;
}

std::string measures_named(std::span<const MeasureCondition> conditions) {
    std::vector<std::string> each;
    for (const MeasureCondition& c : conditions)
        if (std::find(each.begin(), each.end(), c.measure) == each.end()) each.push_back(c.measure);
    return fmt::format("{}", fmt::join(each, ", "));
}

bool asks_measure(std::string_view guard) {
    if (!guard.starts_with('(')) return false;
    const std::string_view name = guard.substr(1, guard.find_first_of(" )") - 1);
    return name == "capacity" || find_measure_kind(name);
}

bool names_measure(const SExpr& form) {
    return form.is_list && !form.items.empty() && !form.items[0].is_list && !form.items[0].quoted && find_measure_kind(form.items[0].atom);
}

std::optional<MeasureCondition> read_measure(const SExpr& form, Complaints& complaints) {
    if (!form.is_list || form.items.empty() || form.items[0].is_list || form.items[0].quoted) {
        complaints.say(form.where, fmt::format("a condition on a measure is written '(fisher >= 0.9)', and this is '{}'", to_string(form)));
        return {};
    }
    const SExpr& name = form.items[0];
    const MeasureKind* kind = find_measure_kind(name.atom);
    if (!kind) {
        const std::vector<std::string_view> known = measure_names();
        std::string hint = did_you_mean(name.atom, std::span<const std::string_view>(known));
        complaints.say(name.where, fmt::format("unknown measure '{}'", name.atom), hint.empty() ? fmt::format("there are {}", fmt::join(known, ", ")) : hint);
        return {};
    }
    if (form.items.size() != 3) {
        complaints.say(form.where, fmt::format("a condition on a measure is written '({} {} NUMBER)', and this is '{}'", kind->name,
                                               kind->is_loss ? "<=" : ">=", to_string(form)));
        return {};
    }
    MeasureCondition condition{name.atom, false, 0};
    if (!read_comparison(form.items[1], *kind, condition, complaints) || !read_threshold(form.items[2], *kind, condition, complaints)) return {};
    return condition;
}

void check_measures(std::span<const MeasureCondition> conditions, std::span<const Position> where, Complaints& complaints) {
    for (std::size_t i = 0; i < conditions.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const MeasureCondition &a = conditions[j], &b = conditions[i];
            if (a.measure != b.measure) continue;
            if (a.at_least == b.at_least)
                complaints.say(where[i], fmt::format("{} and {} bound the same measure in the same direction: one of them is enough", to_string(a), to_string(b)));
            else if ((a.at_least ? a : b).threshold > (a.at_least ? b : a).threshold)
                complaints.say(where[i], fmt::format("no network meets both {} and {}", to_string(a), to_string(b)));
        }
}

std::vector<MeasureCondition> measure_conditions(std::string_view text, std::string name) {
    Complaints complaints;
    std::vector<MeasureCondition> all;
    std::vector<Position> where;
    for (const SExpr& form : read_sexprs(make_source(std::move(name), std::string(text))))
        if (auto condition = read_measure(form, complaints)) all.push_back(std::move(*condition)), where.push_back(form.where);
    check_measures(all, where, complaints);
    std::vector<Diagnostic> mistakes;
    for (RuleMistake& m : complaints.take()) mistakes.push_back(std::move(m.what));
    if (!mistakes.empty()) throw UsageError(std::move(mistakes));
    return all;
}

}  // namespace loopegg
