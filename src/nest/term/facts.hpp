// The fact of every e-class of a nest e-graph: the extent of an axis, the digits that a schedule enumerates and the part of the domain that
// it keeps, the domain of a nest, the channels that a network reads and writes. Two classes with different facts are never merged.
//
// A schedule's fact is about the list from here to its end, whatever is before it: `open` is the set of digits that it enumerates
// (neighbouring digits are joined, so it does not matter how an axis was split). `parts` is the union of restrictions under which the list
// enumerates them. Facts are interned: equal facts have equal numbers, and what a loop makes of the fact below it is worked out once.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "egraph/analysis.hpp"
#include "egraph/egraph.hpp"
#include "nest/net/net_sizes.hpp"
#include "nest/schedule/gpu_machine.hpp"
#include "nest/schedule/naive_loops.hpp"
#include "nest/schedule/vector_machine.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/schedule_fact.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

struct AxisFact {
    AxisDigit digit;                 // the normal form of the axis
    std::vector<Term> restrictions;  // where the axis is defined: (span ...), (diag ...)
    std::vector<Term> iterators;     // leaves
    std::int64_t extent = 1;
    bool ordered = false;     // the iterations accumulate into one result, or must keep their order
    bool sequential = false;  // the iterations must keep their order
    int depth = 0;            // how many splits, pairs, spans and diagonals the axis is made of
};

struct StatementFact {
    Term plain;                                  // without layouts: what the statement computes
    std::shared_ptr<const Statement> statement;  // null: the term is no statement
};

struct NestFact {
    enum class Kind : std::uint8_t { unknown, number, axis, schedule, statement, nest, net, broken };
    Kind kind = Kind::unknown;
    std::uint32_t id = 0;  // into the table of facts of this kind
    friend bool operator==(const NestFact&, const NestFact&) = default;
};

class NestAnalysis final : public LatticeAnalysis<NestFact> {
public:
    struct Options {
        bool strict_fp = false;          // sums keep the order of the naive nest
        bool proven = true;              // the rules were tried when they were loaded: a conflict is our fault
        GpuMachine gpu{};                // the machine that tiles for blocks of threads are made for
        VectorMachine cpu{};             // the machine that tiles of registers are made for
        std::int64_t channels_step = 1;  // widths that rules offer are multiples of this
    };
    NestAnalysis() : NestAnalysis(Options{}) {}
    explicit NestAnalysis(Options options);
    ~NestAnalysis() override;

    std::string_view name() const override { return "nest domains"; }
    NestFact fact_of(const EGraph& graph, const NodeView& node) const override;
    bool join_facts(NestFact& into, const NestFact& other) const override;
    std::optional<std::string> conflict_of(const NestFact& a, const NestFact& b) const override;
    bool conflict_is_our_fault() const override { return options_.proven; }

    // The fact of a class, or null when it is of another kind. Classes must be canonical.
    const AxisFact* axis(ClassId c) const;
    const ScheduleFact* schedule(ClassId c) const;
    const StatementFact* statement(ClassId c) const;
    const NetSizes* net(ClassId c) const;
    // Of a nest: the statement and what its schedule visits, as a graph domain.
    std::optional<Domain> domain(ClassId c) const;
    bool strict_fp() const { return options_.strict_fp; }
    const GpuMachine& gpu() const { return options_.gpu; }
    const VectorMachine& cpu() const { return options_.cpu; }
    std::int64_t channels_step() const { return options_.channels_step; }

    // The naive loops over the instances that a schedule visits; null where these loops are no list (because the domain was cut) or where the classes
    // are of other kinds.
    const NaiveLoops* naive_loops(ClassId statement, ClassId schedule) const;
    // Whether a SCHED visits exactly the instances that the class, or the other SCHED, visits.
    bool visits_the_same(const Term& sched, ClassId schedule) const;
    bool visits_the_same(const Term& sched, const Term& other) const;

    // The facts of a term by itself.
    const ScheduleFact& schedule_of(const Term& sched) const;

private:
    struct Tables;
    NestFact of_term(const Term& term) const;
    NestFact net_fact(const EGraph& graph, const NodeView& node) const;
    NestFact make(Symbol op, std::span<const NestFact> children, Symbol leaf) const;

    Options options_;
    std::unique_ptr<Tables> tables_;
};

// Whether two neighbouring loops may change places.
bool permutable(const AxisFact& a, const AxisFact& b, bool strict_fp);

}  // namespace loopegg
