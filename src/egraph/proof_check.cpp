#include "egraph/proof_check.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"

namespace loopegg {
namespace {

struct Wrong {
    std::string what;
};

[[noreturn]] void wrong(std::string what) { throw Wrong{std::move(what)}; }

bool variable(const Term& t) { return t.size() == 0 && t.op().text().size() > 1 && t.op().text()[0] == '?'; }

Term replace_variables(const Term& pattern, const CheckedSubstitution& with) {
    if (variable(pattern)) {
        const auto it = with.find(pattern.op().text());
        if (it == with.end()) wrong("gives no value for " + pattern.op().text());
        return it->second;
    }
    std::vector<Term> children;
    for (const Term& c : pattern.children()) children.push_back(replace_variables(c, with));
    return Term(pattern.op(), std::move(children));
}

bool mentions(const Term& pattern, Symbol name) {
    if (pattern.size() == 0) return pattern.op() == name;
    for (const Term& c : pattern.children())
        if (mentions(c, name)) return true;
    return false;
}

class Checker {
public:
    explicit Checker(const ProofRules& rules) : rules_(rules) {}

    void claim(const nlohmann::json& proof, const std::optional<Term>& from, const std::optional<Term>& to) {
        if (!proof.is_object()) wrong("is not an object");
        Term now = read(proof, "from");
        const Term goal = read(proof, "to");
        if (from && !(now == *from)) wrong("starts at " + to_string(now) + " where " + to_string(*from) + " was to be proven");
        if (to && !(goal == *to)) wrong("ends at " + to_string(goal) + " where " + to_string(*to) + " was to be proven");
        const auto list = proof.find("steps");
        if (list == proof.end() || !list->is_array()) wrong("has no list of steps");
        for (std::size_t i = 0; i < list->size(); ++i) {
            try {
                now = step(now, (*list)[i]);
            } catch (Wrong& w) {
                throw Wrong{fmt::format("step {} {}", i + 1, w.what)};
            }
            ++steps;
        }
        if (!(now == goal)) wrong("arrives at " + to_string(now) + ", not at " + to_string(goal));
    }

    std::size_t steps = 0;

private:
    static Term read(const nlohmann::json& object, const char* key) {
        const auto it = object.find(key);
        if (it == object.end() || !it->is_string()) wrong(std::string("has no term '") + key + "'");
        try {
            return parse_term(it->get<std::string>());
        } catch (const UserError&) {
            wrong(std::string("has a '") + key + "' that is no term");
        }
    }

    static bool flag(const nlohmann::json& object, const char* key) {
        const auto it = object.find(key);
        if (it == object.end()) return false;
        if (!it->is_boolean()) wrong(std::string("has a '") + key + "' that is neither true nor false");
        return it->get<bool>();
    }

    const Rewrite& rule_named(const std::string& name, bool backwards) const {
        for (const Rewrite& r : rules_.rules)
            if (r.name == name && r.backwards == backwards) return r;
        wrong("uses '" + name + "', which is no rule");
    }

    Term step(const Term& whole, const nlohmann::json& s) {
        if (!s.is_object() || !s.contains("rule") || !s["rule"].is_string()) wrong("names no rule");
        const std::string name = s["rule"];
        CheckedSubstitution with;
        if (!s.contains("with") || !s["with"].is_object()) wrong("has no substitution");
        for (const auto& [key, value] : s["with"].items()) with[key] = read(s["with"], key.c_str());
        const bool backwards = flag(s, "backwards");
        Term left, right;
        if (flag(s, "asserted")) {
            if (!rules_.allow_asserted) wrong("rests on no rule: " + name);
            if (!with.contains("?from") || !with.contains("?to")) wrong("asserts nothing");
            left = with["?from"], right = with["?to"];
        } else {
            const Rewrite& rule = rule_named(name, flag(s, "reversed_rule"));
            if (rule.relation != Relation::exact && !rules_.allow_neural) wrong("uses '" + name + "', which does not keep things equal");
            const std::size_t conclusion = number(s, "conclusion");
            if (conclusion >= rule.right.size()) wrong("takes a right side that '" + name + "' does not have");
            right = replace_variables(rule.right[conclusion].term, with);
            bool found = false;
            for (const Rooted& l : rule.left) {
                const Term one = replace_variables(l.term, with);
                if (l.root == rule.right[conclusion].root) left = one, found = true;
                premise(rule, l, one, with, s);
            }
            if (!found) wrong("takes a right side that '" + name + "' does not have");
            guards(rule, with, s);
        }
        return put(whole, path(s), 0, backwards ? right : left, backwards ? left : right);
    }

    static std::size_t number(const nlohmann::json& s, const char* key) {
        const auto it = s.find(key);
        if (it == s.end()) return 0;
        if (!it->is_number_unsigned()) wrong(std::string("has a '") + key + "' that is no number");
        return it->get<std::size_t>();
    }

    static std::vector<std::size_t> path(const nlohmann::json& s) {
        const auto it = s.find("at");
        if (it == s.end() || !it->is_array()) wrong("names no place");
        std::vector<std::size_t> out;
        for (const auto& i : *it) {
            if (!i.is_number_unsigned()) wrong("names no place");
            out.push_back(i.get<std::size_t>());
        }
        return out;
    }

    static Term put(const Term& t, const std::vector<std::size_t>& path, std::size_t depth, const Term& expected, const Term& part) {
        if (depth == path.size()) {
            if (!(t == expected)) wrong("expects " + to_string(expected) + " instead of " + to_string(t));
            return part;
        }
        if (path[depth] >= t.size()) wrong("names a place outside of the term");
        std::vector<Term> children(t.children().begin(), t.children().end());
        children[path[depth]] = put(children[path[depth]], path, depth + 1, expected, part);
        return Term(t.op(), std::move(children));
    }

    // A root variable that the rule mentions must be equal to what its pattern says.
    void premise(const Rewrite& rule, const Rooted& l, const Term& one, const CheckedSubstitution& with, const nlohmann::json& s) {
        if (l.root.empty() || (variable(l.term) && l.term.op() == l.root)) return;
        bool used = false;
        for (const Rooted& other : rule.left) used |= mentions(other.term, l.root);
        for (const Rooted& other : rule.right) used |= mentions(other.term, l.root);
        for (const Guard& g : rule.guards)
            for (Symbol v : g.needs) used |= v == l.root;
        for (const Choice& c : rule.choices)
            for (Symbol v : c.needs) used |= v == l.root;
        if (!used) return;
        const auto value = with.find(l.root.text());
        if (value == with.end()) wrong("gives no value for " + l.root.text());
        if (value->second == one) return;
        if (s.contains("premises") && s["premises"].is_array())
            for (const auto& p : s["premises"])
                if (p.is_object() && p.contains("root") && p["root"] == l.root.text() && p.contains("proof")) return claim(p["proof"], value->second, one);
        wrong("does not prove that " + l.root.text() + " is " + to_string(one));
    }

    void guards(const Rewrite& rule, const CheckedSubstitution& with, const nlohmann::json& s) {
        for (const Guard& g : rule.guards) {
            const nlohmann::json* record = nullptr;
            if (s.contains("guards") && s["guards"].is_array())
                for (const auto& r : s["guards"])
                    if (r.is_object() && r.contains("guard") && r["guard"] == g.text) record = &r;
            if (!record) wrong("does not say what " + g.text + " answered");
            if (!record->contains("allowed") || (*record)["allowed"] != true) wrong("uses the rule though " + g.text + " refused");
            if (rules_.guard && !rules_.guard(g, with, *record)) wrong("says that " + g.text + " holds, which it does not");
        }
        for (const Choice& c : rule.choices) {
            const auto value = with.find(c.variable.text());
            if (value == with.end()) wrong("gives no value for " + c.variable.text());
            if (rules_.choice && !rules_.choice(c, with, value->second)) wrong(to_string(value->second) + " is no value of " + c.text);
        }
    }

    const ProofRules& rules_;
};

}  // namespace

ProofVerdict check_proof(const nlohmann::json& proof, const ProofRules& rules) {
    Checker checker(rules);
    try {
        checker.claim(proof, std::nullopt, std::nullopt);
    } catch (const Wrong& w) {
        return {false, "the proof " + w.what, checker.steps};
    }
    return {true, {}, checker.steps};
}

}  // namespace loopegg
