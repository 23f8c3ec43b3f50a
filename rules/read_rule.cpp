#include "rules/read_rule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "rules/patterns.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::pair<std::string_view, Arrow>, 3> arrows{{{"=>", Arrow::forward}, {"<=>", Arrow::both}, {"~>", Arrow::neural}}};

std::optional<Arrow> arrow_of(const SExpr& e) {
    for (const auto& [text, arrow] : arrows)
        if (e.is_atom(text)) return arrow;
    return {};
}

// Arrows of other languages, and slips of the finger.
std::string meant_arrow(const SExpr& e) {
    if (e.is_list || e.quoted) return {};
    for (std::string_view wrong : {"->", "-->", "==>", "=", ":=", "=>>", "=="})
        if (e.atom == wrong) return "=>";
    for (std::string_view wrong : {"<->", "<==>", "<-->", "<=", "=<>"})
        if (e.atom == wrong) return "<=>";
    for (std::string_view wrong : {"~", "~~>", "~>>", "~=>"})
        if (e.atom == wrong) return "~>";
    return {};
}

bool is_keyword(const SExpr& e) { return !e.is_list && !e.quoted && !e.atom.empty() && e.atom[0] == ':'; }

class RuleReader {
public:
    RuleReader(const SExpr& form, const Language& language, Complaints& complaints)
        : form_(form), language_(language), complaints_(complaints), patterns_(language, complaints), expressions_(language, complaints) {}

    std::optional<Rule> read(const std::string& set) {
        const std::size_t before = complaints_.count();
        rule_.name = read_name(form_, "rule", complaints_);
        rule_.set = set, rule_.where = form_.where, rule_.text = to_string(form_);
        complaints_.enter_rule(rule_.name);
        if (find_parts()) {
            read_sides();
            read_conditions();
            if (complaints_.count() == before) check_bindings();
            if (complaints_.count() == before) check_meaning();
        }
        complaints_.leave_rule();
        if (complaints_.count() != before) return {};
        return std::move(rule_);
    }

private:
    // Finds the arrow, and the first keyword after it.
    bool find_parts() {
        const auto& items = form_.items;
        for (std::size_t i = 1; i < items.size(); ++i) {
            const auto arrow = arrow_of(items[i]);
            if (!arrow) continue;
            if (arrow_) {
                complaints_.say(items[i].where, fmt::format("a rule has one arrow, and this is its second"));
                return false;
            }
            arrow_ = i, rule_.arrow = *arrow;
        }
        if (!arrow_) {
            for (std::size_t i = 2; i < items.size(); ++i)
                if (std::string meant = meant_arrow(items[i]); !meant.empty()) {
                    complaints_.say(items[i].where, fmt::format("'{}' is no arrow", items[i].atom), fmt::format("did you mean '{}'?", meant));
                    return false;
                }
            complaints_.say(form_.where, "this rule has no arrow: '=>' (one way), '<=>' (both ways) or '~>' (neural)");
            return false;
        }
        conditions_ = *arrow_ + 1;
        while (conditions_ < items.size() && !is_keyword(items[conditions_])) ++conditions_;
        for (std::size_t i = 2; i < *arrow_; ++i)
            if (is_keyword(items[i])) {
                complaints_.say(items[i].where, fmt::format("'{}' is before the arrow", items[i].atom), "conditions come after the right side");
                return false;
            }
        if (*arrow_ <= 2) complaints_.say(items[*arrow_].where, "there is nothing before the arrow to look for");
        if (conditions_ == *arrow_ + 1) complaints_.say(items[*arrow_].where, "there is nothing after the arrow to put in its place");
        return *arrow_ > 2 && conditions_ > *arrow_ + 1;
    }

    // Reads one plain term on each side, or several (= ?root term) on the left and one or more on the right.
    void read_sides() {
        const std::size_t left = *arrow_ - 2, right = conditions_ - *arrow_ - 1;
        if (left == 1 && right == 1) {
            auto l = patterns_.read(form_.items[2], PatternReader::Side::left);
            auto r = patterns_.read(form_.items[*arrow_ + 1], PatternReader::Side::right, l.kind);
            rule_.left.push_back({Symbol(), l.term}), rule_.right.push_back({Symbol(), r.term});
            return;
        }
        if (left == 1) {
            complaints_.say(form_.items[*arrow_ + 2].where, "there is one term before the arrow but several after it",
                            "conditions begin with ':when' or ':for'");
            return;
        }
        std::map<Symbol, std::string> kinds;
        for (std::size_t i = 2; i < *arrow_; ++i) read_rooted(form_.items[i], PatternReader::Side::left, kinds);
        for (std::size_t i = *arrow_ + 1; i < conditions_; ++i) read_rooted(form_.items[i], PatternReader::Side::right, kinds);
    }

    void read_rooted(const SExpr& e, PatternReader::Side side, std::map<Symbol, std::string>& kinds) {
        const bool left = side == PatternReader::Side::left;
        if (!e.is_form("=") || e.items.size() != 3 || !looks_like_variable(e.items[1])) {
            complaints_.say(e.where, "in a rule of several patterns each is written '(= ?name term)', so that the right side can say which it changes");
            return;
        }
        if (!check_variable_name(e.items[1], complaints_)) return;
        const Symbol root(e.items[1].atom);
        auto& rooted = left ? rule_.left : rule_.right;
        if (std::any_of(rooted.begin(), rooted.end(), [&](const Rooted& r) { return r.root == root; })) {
            complaints_.say(e.items[1].where, fmt::format("'{}' is given twice on this side", root.text()));
            return;
        }
        if (!left && !kinds.contains(root)) {
            complaints_.say(e.items[1].where, fmt::format("'{}' names no pattern of the left side", root.text()), near(root, names(kinds)));
            return;
        }
        auto read = patterns_.read(e.items[2], side, left ? std::string() : kinds[root]);
        if (left) kinds[root] = read.kind, roots_.insert(root);
        rooted.push_back({root, read.term});
    }

    void read_conditions() {
        bool when_seen = false;
        for (std::size_t i = conditions_; i < form_.items.size();) {
            const SExpr& key = form_.items[i];
            std::size_t end = i + 1;
            while (end < form_.items.size() && !is_keyword(form_.items[end])) ++end;
            if (key.atom == ":for")
                read_choice(key, i + 1, end);
            else if (key.atom == ":when") {
                if (when_seen) complaints_.say(key.where, ":when is given twice", "one :when takes all guards");
                if (end == i + 1) complaints_.say(key.where, ":when is followed by no guard");
                when_seen = true;
                for (std::size_t g = i + 1; g < end; ++g)
                    if (auto guard = expressions_.guard(form_.items[g])) rule_.guards.push_back(std::move(*guard));
            } else {
                static constexpr std::array<std::string_view, 2> known{":for", ":when"};
                complaints_.say(key.where, fmt::format("a rule knows no '{}'", key.atom), did_you_mean(key.atom, std::span<const std::string_view>(known)));
            }
            i = end;
        }
    }

    void read_choice(const SExpr& key, std::size_t first, std::size_t end) {
        const std::size_t given = end - first;
        if (given == 0)
            complaints_.say(key.where, ":for takes a variable and a list, as in ':for ?k (2 4 8)'");
        else if (given == 1)
            complaints_.say(form_.items[first].where, ":for takes a list after its variable, as in ':for ?k (2 4 8)'");
        else if (given > 2)
            complaints_.say(form_.items[first + 2].where, ":for takes one variable and one list; this is more",
                            "another variable needs a ':for' of its own, a guard a ':when'");
        else if (auto choice = expressions_.choice(form_.items[first], form_.items[first + 1])) {
            if (!chosen_.insert(choice->variable).second)
                complaints_.say(choice->where, fmt::format("'{}' is chosen twice", choice->variable.text()));
            else
                rule_.choices.push_back(std::move(*choice));
        }
    }

    // Checks the variables of one direction: the pattern side binds some, then the choices bind theirs in order, then the other side and the guards use them.
    void check_direction(const std::map<Symbol, Position>& bound, const std::map<Symbol, Position>& used, bool forward) {
        std::set<Symbol> known = roots_;
        for (const auto& [name, where] : bound) known.insert(name);
        const char* way = forward ? "" : " when the rule is read from right to left";
        auto check = [&](Symbol name, const Position& where, const std::string& user) {
            if (known.contains(name)) return;
            std::vector<std::string> names;
            for (Symbol s : known) names.push_back(s.text());
            std::sort(names.begin(), names.end());
            complaints_.say(where, fmt::format("{} uses '{}', which nothing binds{}", user, name.text(), way), did_you_mean(name.text(), names));
        };
        for (const ChoiceCall& c : rule_.choices) {
            if (bound.contains(c.variable)) continue;
            for (Symbol s : variables_of(c.arguments)) check(s, c.where, fmt::format("the list of '{}'", c.variable.text()));
            known.insert(c.variable);
        }
        if (forward)
            for (const ChoiceCall& c : patterns_.computed()) {
                std::vector<Symbol> needs;
                collect_variables(*c.computed, needs);
                for (Symbol s : needs) check(s, c.where, fmt::format("'{}'", c.text));
            }
        for (const auto& [name, where] : used) check(name, where, forward ? "the right side" : "the left side");
        for (const GuardCall& g : rule_.guards)
            for (Symbol s : variables_of(g.arguments)) check(s, g.where, fmt::format("guard {}", g.text));
    }

    void check_bindings() {
        const auto& left = patterns_.left_variables();
        const auto& right = patterns_.right_variables();
        if (rule_.arrow == Arrow::both) {
            if (rule_.left.size() > 1) complaints_.say(form_.items[*arrow_].where, "a rule of several patterns goes one way: '=>'");
            for (const ChoiceCall& c : patterns_.computed())
                complaints_.say(c.where, "a computed part cannot be looked for, so this rule cannot go both ways", "write two rules with '=>'");
        }
        for (const ChoiceCall& c : rule_.choices) {
            if (rule_.arrow != Arrow::both && left.contains(c.variable))
                complaints_.say(c.where, fmt::format("'{}' is bound by the left side already, so there is nothing to choose", c.variable.text()));
            if (!right.contains(c.variable) && !left.contains(c.variable) && !used_elsewhere(c.variable))
                complaints_.say(c.where, fmt::format("'{}' is chosen but never used", c.variable.text()));
        }
        check_direction(left, right, true);
        if (rule_.arrow == Arrow::both) check_direction(right, left, false);
    }

    bool used_elsewhere(Symbol name) {
        auto uses = [&](const std::vector<Symbol>& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
        for (const GuardCall& g : rule_.guards)
            if (uses(variables_of(g.arguments))) return true;
        for (const ChoiceCall& c : rule_.choices)
            if (uses(variables_of(c.arguments))) return true;
        std::vector<Symbol> computed;
        for (const ChoiceCall& c : patterns_.computed()) collect_variables(*c.computed, computed);
        return uses(computed);
    }

    void check_meaning() {
        for (ChoiceCall& c : patterns_.computed()) rule_.choices.push_back(std::move(c));
        for (const Rooted& r : rule_.right)
            for (const Rooted& l : rule_.left)
                if (l.root == r.root && l.term == r.term) complaints_.say(form_.items[*arrow_].where, "both sides are the same, so this rule does nothing");
        const auto capacity = std::find_if(rule_.guards.begin(), rule_.guards.end(), [](const GuardCall& g) { return g.guard->capacity; });
        if (rule_.arrow == Arrow::neural) {
            const bool has = std::any_of(language_.guards.begin(), language_.guards.end(), [](const GuardKind& g) { return g.capacity; });
            if (!has)
                complaints_.say(form_.items[*arrow_].where, fmt::format("language {} has no networks to measure, so it has no neural rules", language_.name),
                                "an exact rule is written with '=>'");
            else if (capacity == rule_.guards.end())
                complaints_.say(form_.items[*arrow_].where, "a neural rule changes the network and needs a condition on its capacity",
                                "add '(capacity)' after ':when', or a measure such as '(fisher >= 0.9)'");
        } else if (capacity != rule_.guards.end()) {
            complaints_.say(capacity->where, "an exact rule keeps the meaning, so it needs no condition on capacity", "a neural rule is written with '~>'");
        }
        std::set<std::string> seen;
        std::vector<MeasureCondition> measures;
        std::vector<Position> where;
        for (const GuardCall& g : rule_.guards)
            if (g.measure) measures.push_back(*g.measure), where.push_back(g.where);
        check_measures(measures, where, complaints_);
        for (const GuardCall& g : rule_.guards)
            if (!g.measure && !seen.insert(g.text).second) complaints_.say(g.where, fmt::format("guard {} is given twice", g.text));
    }

    static std::vector<std::string> names(const std::map<Symbol, std::string>& kinds) {
        std::vector<std::string> all;
        for (const auto& entry : kinds) all.push_back(entry.first.text());
        return all;
    }
    static std::string near(Symbol typed, const std::vector<std::string>& known) { return did_you_mean(typed.text(), known); }

    const SExpr& form_;
    const Language& language_;
    Complaints& complaints_;
    PatternReader patterns_;
    ExpressionReader expressions_;
    Rule rule_;
    std::optional<std::size_t> arrow_;
    std::size_t conditions_ = 0;
    std::set<Symbol> roots_, chosen_;
};

}  // namespace

std::string read_name(const SExpr& form, const char* what, Complaints& complaints) {
    if (form.items.size() < 2) {
        complaints.say(form.where, fmt::format("this {} has no name", what));
        return {};
    }
    const SExpr& name = form.items[1];
    if (name.is_list || name.quoted || arrow_of(name) || is_keyword(name) || looks_like_variable(name) || integer_of(Symbol(name.atom))) {
        complaints.say(name.where, fmt::format("a {} begins with its name, a word such as 'swap-loops'", what));
        return {};
    }
    return name.atom;
}

std::optional<Rule> read_rule(const SExpr& form, const Language& language, const std::string& set, Complaints& complaints) {
    return RuleReader(form, language, complaints).read(set);
}

namespace {

constexpr std::array<std::string_view, 6> phase_keywords{":rules", ":iterations", ":nodes", ":seconds", ":scheduler", ":when"};

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
        if (std::find(phase_keywords.begin(), phase_keywords.end(), key.atom) == phase_keywords.end())
            return complaints_.say(key.where, fmt::format("a phase knows no '{}'", key.atom),
                                   did_you_mean(key.atom, std::span<const std::string_view>(phase_keywords)));
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

    // The share of capacity that earlier rule files asked for. Half of it represented one point.
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
