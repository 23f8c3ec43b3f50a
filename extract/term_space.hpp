// All terms of an e-class as one numbered space: how many terms there are, exactly; the term of a given number; a term drawn uniformly.
//
// A class that can contain itself has infinitely many terms. Such a space is counted up to a size, or only its direct terms are counted, which go around
// no cycle.
#pragma once
#include <memory>
#include <optional>
#include <random>

#include <gmpxx.h>

#include "base/term.hpp"
#include "extract/serialized.hpp"

namespace loopegg {

struct SpaceLimits {
    // Only terms of at most this many operators.
    std::optional<std::size_t> size{};
    // Keeps only nodes whose children have smaller smallest terms than the node's class has. Terms of these nodes are the direct terms, and there are always
    // finitely many. Classes on no cycle keep all their nodes.
    bool direct = false;
};

class TermSpace {
public:
    // The e-graph must outlive the space. Throws UserError when the e-graph is not congruent (one node is in two classes), because its terms
    // could not be distinguished by their choices.
    TermSpace(const SerializedEGraph& egraph, ClassIndex root, const SpaceLimits& limits = {});
    ~TermSpace();
    TermSpace(TermSpace&&) noexcept;

    bool infinite() const;                       // where true, the functions below may not be called
    const mpz_class& count() const;              // of distinct terms; 0 when the limit leaves none
    Term at(const mpz_class& number) const;      // 0 <= number < count(); different numbers give different terms
    Term sample(std::mt19937_64& random) const;  // each term equally often; there must be a term

private:
    class Counts;
    std::unique_ptr<const Counts> counts_;
};

// A whole number below `bound`, each equally often. The same on every machine.
mpz_class uniform_below(const mpz_class& bound, std::mt19937_64& random);

}  // namespace loopegg
