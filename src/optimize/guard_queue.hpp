// The queue takes the rules' proposals to the capacity oracle. It asks in batches, about similar sites together, about nothing twice, and never past
// the budget.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"
#include "optimize/families.hpp"
#include "optimize/sites.hpp"
#include "optimize/variant.hpp"
#include "rules/capacity.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct GuardQueueOptions {
    std::int64_t budget = 1000;                      // configurations (networks in which some sites are restricted) that the oracle may be asked about
    std::size_t together = most_together;            // sites of one family that one question may be about (families.hpp)
    std::int64_t share = 5;                          // one batch of a rule may use 1/share of the remaining budget, so that later rules find some left
    std::map<std::string, std::int64_t> expected{};  // questions that a rule is known to need, and may ask even if it uses more than its share
    std::size_t most_read = 40;                      // proposals of one rule that are looked at in one iteration for each distinct nest, taken evenly from all
    int channels_multiple = 1;                       // --channels-multiple-of: group sizes and kept widths must be multiples
    std::function<void(std::int64_t judged, std::int64_t budget)> told{};
};

class GuardQueue {
public:
    GuardQueue(const Graph& original, const Sites& sites, CapacityOracle& oracle, GuardQueueOptions options);

    // For Binding::capacity: gives one verdict for each proposal. A proposal is allowed where some site may use it, and the evidence names the sites.
    std::vector<Verdict> answer(const EGraph& graph, std::span<const CapacityProposal> proposals);

    bool exhausted() const { return configurations_ >= options_.budget; }
    const std::vector<Admission>& judged() const { return judged_; }    // variant: index into variants()
    const std::vector<Variant>& variants() const { return variants_; }  // no steps yet: see derive.hpp
    std::int64_t configurations() const { return configurations_; }
    const std::map<std::string, std::int64_t>& asked() const { return asked_; }  // configurations by the rule that proposed them
    std::int64_t rejected() const { return rejected_; }
    std::int64_t refused() const { return refused_; }  // refused without asking the oracle: no fewer MACs, not legal, past the budget

private:
    struct ProposedNest {  // one distinct (kind, domain) of a batch
        std::size_t kind;
        Domain domain;
        Term nest;
        std::int64_t macs, from_macs;
        std::string refusal;  // empty: to be judged
        std::string rule{};
    };
    using Key = std::pair<std::size_t, std::string>;
    // The network in which each of these sites has its proposed nest. These nests are alike, and the sites are of one family.
    struct Question {
        std::vector<std::pair<std::size_t, ProposedNest*>> sites;
        std::int64_t whole = 0, left = 0;  // MACs of the sites
    };

    struct Reading {  // what a nest class is, worked out once
        std::size_t kind;
        Domain domain;
        Term nest;
        std::int64_t macs;
    };
    const Reading& reading(const EGraph& graph, ClassId nest);
    ProposedNest read(const EGraph& graph, const CapacityProposal& proposal);
    std::string legality(const ProposedNest& c) const;
    // Proposed nests that stand for each other have the same effect, the same part of the work left (a reduced fraction) and the same way to restore outputs.
    using EffectClass = std::tuple<std::string, std::int64_t, std::int64_t, Restore>;
    std::string effect_of(const ProposedNest& c) const;
    EffectClass effect_class(const ProposedNest& c) const;
    Question question(std::vector<std::pair<std::size_t, ProposedNest*>> sites) const;
    std::vector<Question> in_turn(const std::vector<ProposedNest*>& cases) const;
    std::vector<Verdict> ask(std::span<const Question> questions);
    void note(const Question& q, const Verdict& joint, std::map<ProposedNest*, Verdict>& by_nest);
    void judge(const std::vector<ProposedNest*>& cases);
    std::size_t variant_of(const ProposedNest& c);
    std::vector<std::string> admit_unread(const ProposedNest& c);  // returns the sites whose reader may leave the missing outputs unread
    std::vector<std::size_t> derivable(const EGraph& graph, std::span<const CapacityProposal> proposals);

    const Graph& original_;
    const Sites& sites_;
    CapacityOracle& oracle_;
    GuardQueueOptions options_;
    std::map<Key, Verdict> answers_;
    std::vector<std::vector<std::size_t>> families_;             // families_of
    std::set<std::pair<std::size_t, EffectClass>> asked_alike_;  // (kind, effect class) of every nest that was asked about
    std::map<Key, std::string> legality_;                        // what legality() said
    std::unordered_map<Term, Reading> readings_;
    std::unordered_map<ClassId, const Reading*> read_now_;  // valid while the e-graph does not change
    std::vector<ClassId> admitted_;                         // classes that edges lead to
    std::vector<Admission> judged_;
    std::vector<Variant> variants_;
    std::map<Key, std::size_t> variant_index_;
    std::set<std::pair<std::size_t, std::vector<char>>> widths_;  // kinds with the channels that an admitted variant computes
    std::map<std::size_t, std::size_t> reader_;                   // by site: its only reader, where that is a site
    std::map<std::string, std::int64_t> asked_;
    std::int64_t configurations_ = 0, rejected_ = 0, refused_ = 0;
};

// A domain as one line that is equal for equal domains.
std::string domain_text(const Domain& domain);

}  // namespace loopegg
