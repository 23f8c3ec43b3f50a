// A rule made ready to run: the query of its left side, the plans to search it, the program that builds its right side.
#pragma once
#include <memory>
#include <vector>

#include "egraph/pattern.hpp"
#include "egraph/rewrite.hpp"

namespace loopegg {

// Where a value is found when a match is applied. The values are the slots of the query, then one for each choice, then one for each built node.
using Place = std::uint32_t;

struct Build {
    Symbol op;
    std::vector<Place> children;
};

// The right side for one root: a node to build (the last of its builds) or a place that represents it.
struct Conclusion {
    std::uint32_t left_atom;     // the atom whose class gets the result
    Place place;                 // of the result
    std::uint32_t build = none;  // index into builds when the result is a node of its own
};

class CompiledRewrite {
public:
    // Throws UserError when a variable of the right side, a guard or a choice is bound nowhere.
    explicit CompiledRewrite(Rewrite rule);

    const Rewrite& rule() const { return rule_; }
    const Query& query() const { return query_; }
    const std::vector<PlanStep>& plan(std::uint32_t first) const { return plans_[first]; }
    Symbol name() const { return name_; }
    bool bare() const { return query_.atoms[0].op.empty(); }  // the left side is a single variable

    // Slot i is read from an atom of the match: its class (child == none) or a child.
    struct Source {
        std::uint32_t atom, child;
    };
    const std::vector<Source>& sources() const { return sources_; }
    std::size_t choice_place(std::size_t i) const { return query_.slots.size() + i; }
    std::size_t build_place(std::size_t i) const { return query_.slots.size() + rule_.choices.size() + i; }
    const std::vector<Build>& builds() const { return builds_; }  // children first
    const std::vector<Conclusion>& conclusions() const { return conclusions_; }

    const std::vector<std::vector<std::uint32_t>>& guard_slots() const { return guard_slots_; }  // of the query; none when bound later
    const std::vector<std::uint32_t>& late_guards() const { return late_guards_; }               // asked when applied
    const std::vector<std::vector<Place>>& choice_needs() const { return choice_needs_; }
    std::vector<Place> places_of(const std::vector<Symbol>& needs) const;  // none for ?result

    // The words of a reason for one application: [rule, match atoms, choices, built nodes].
    std::size_t reason_words() const { return 1 + query_.atoms.size() + rule_.choices.size() + builds_.size(); }

private:
    Place place_of(Symbol variable) const;
    Place add_builds(const Term& t);
    [[noreturn]] void unbound(Symbol variable, const std::string& in) const;

    Rewrite rule_;
    Symbol name_;
    Query query_;
    std::vector<std::vector<PlanStep>> plans_;
    std::vector<Source> sources_;
    std::vector<Build> builds_;
    std::vector<Conclusion> conclusions_;
    std::vector<std::vector<std::uint32_t>> guard_slots_;
    std::vector<std::uint32_t> late_guards_;
    std::vector<std::vector<Place>> choice_needs_;
};

}  // namespace loopegg
