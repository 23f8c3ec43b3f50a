// Facts about e-classes that the e-graph keeps up to date while it grows (e-class analyses).
//
// Most analyses derive from LatticeAnalysis<Fact>, and say how to make a fact from one e-node and how to join two facts. An
// analysis can also state an invariant: two classes whose facts conflict must never be merged. The e-graph then refuses the merge
// with an error that names the rule and both terms.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/term.hpp"
#include "egraph/ids.hpp"

namespace loopegg {

class EGraph;

class Analysis {
public:
    virtual ~Analysis() = default;
    virtual std::string_view name() const = 0;

    // A class has come to be, with this node alone in it.
    virtual void make(const EGraph& graph, ClassId made, const NodeView& node) = 0;
    // A node joins a class, or the fact of one of the node's children has changed. Returns true when the class's fact changed.
    virtual bool refine(const EGraph& graph, ClassId in, const NodeView& node) = 0;
    // `lost` is merged into `kept`, whose fact must hold for both from here on. The answer says which of the two facts changed.
    struct Joined {
        bool kept_changed = true, lost_changed = true;
    };
    virtual Joined join(const EGraph& graph, ClassId kept, ClassId lost) = 0;
    // Says why these two must not be one class, or nothing. The e-graph asks before it calls join.
    virtual std::optional<std::string> conflict(const EGraph&, ClassId, ClassId) const { return std::nullopt; }
    // Whether a conflict is a fault of ours (because the rules were proven sound) or of the rules that a user gave.
    virtual bool conflict_is_our_fault() const { return false; }
    // May add nodes and merge because of the class's fact, e.g. the number that a class was found to be equal to.
    virtual void modify(EGraph&, ClassId) {}

    virtual void push() = 0;  // keep the facts as they are now ...
    virtual void pop() = 0;   // ... and go back to the last kept
};

// The facts of an analysis in a vector by class, and the joints that every lattice shares.
template <class Fact>
class LatticeAnalysis : public Analysis {
public:
    const Fact& operator[](ClassId c) const { return facts_[c]; }  // c must be canonical

    // The fact of one node, from the facts of its children's classes.
    virtual Fact fact_of(const EGraph& graph, const NodeView& node) const = 0;
    // Makes `into` hold for both. Returns true when `into` changed.
    virtual bool join_facts(Fact& into, const Fact& other) const = 0;
    virtual std::optional<std::string> conflict_of(const Fact&, const Fact&) const { return std::nullopt; }

    void make(const EGraph& graph, ClassId made, const NodeView& node) final {
        if (facts_.size() <= made) facts_.resize(made + 1);
        facts_[made] = fact_of(graph, node);
    }
    bool refine(const EGraph& graph, ClassId in, const NodeView& node) final {
        const Fact fact = fact_of(graph, node);
        if (auto why = conflict_of(facts_[in], fact)) refuse(graph, in, node, *why);
        return join_facts(facts_[in], fact);
    }
    Joined join(const EGraph&, ClassId kept, ClassId lost) final {
        Fact before = facts_[lost];
        const bool kept_changed = join_facts(facts_[kept], facts_[lost]);
        const bool lost_changed = join_facts(before, facts_[kept]);
        facts_[lost] = Fact{};
        return {kept_changed, lost_changed};
    }
    std::optional<std::string> conflict(const EGraph&, ClassId a, ClassId b) const final { return conflict_of(facts_[a], facts_[b]); }
    void push() override { kept_.push_back(facts_); }
    void pop() override { facts_ = std::move(kept_.back()), kept_.pop_back(); }

private:
    void refuse(const EGraph& graph, ClassId in, const NodeView& node, const std::string& why) const;

    std::vector<Fact> facts_;
    std::vector<std::vector<Fact>> kept_;
};

// A merge that an analysis refuses throws this. The e-graph stays as it was before the merge.
class InvariantBroken : public UserError {
public:
    InvariantBroken(std::string analysis, std::string rule, Term a, Term b, std::string why, std::string proof = {});
    const std::string analysis, rule;
    const Term a, b;
    const std::string why, proof;  // the proof that a and b are equal by the rules, when proofs are on
};

// Words the conflict between a class and a node that is to join it, as UserError or InternalFault.
[[noreturn]] void refuse_node(const EGraph& graph, const Analysis& analysis, ClassId in, const NodeView& node, const std::string& why);

template <class Fact>
void LatticeAnalysis<Fact>::refuse(const EGraph& graph, ClassId in, const NodeView& node, const std::string& why) const {
    refuse_node(graph, *this, in, node, why);
}

// The number that a class is equal to, read from its leaves. Two different numbers in one class mean that the rules contradict
// each other. With this analysis the e-graph refuses the merge and names the rule.
class NumberAnalysis final : public LatticeAnalysis<std::optional<std::int64_t>> {
public:
    std::string_view name() const override { return "numbers"; }
    std::optional<std::int64_t> fact_of(const EGraph& graph, const NodeView& node) const override;
    bool join_facts(std::optional<std::int64_t>& into, const std::optional<std::int64_t>& other) const override;
    std::optional<std::string> conflict_of(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) const override;
};

// What is said of a rule that breaks an invariant although a judge has accepted it. It is the rule's fault first: exit code 1, and not 70.
inline std::string missed_by_judge(const Analysis& analysis) {
    return analysis.conflict_is_our_fault() ? "; the rule is wrong, although its judge accepted it: take it out of its file, and please report it" : "";
}

}  // namespace loopegg
