// Which missing outputs of a restricted nest each computed output brings back: the inverse of output_sources of graph/domain_sets.hpp, so that
// code that has computed an element can write its copies at once.
#pragma once
#include <vector>

#include "graph/domain.hpp"
#include "graph/operators.hpp"

namespace loopegg {

// The elements at offset + k * step (one number for each axis, k < count) of every computed element for which all ranges hold.
// The element itself is the copy at offset 0.
struct RestoredCopy {
    std::vector<std::int64_t> offset, step;
    std::int64_t count = 1;
    std::vector<DigitRange> when{};
    bool always = false;  // for every computed element: `when` then only distinguishes computed elements from the others

    bool itself() const;
};

// Over the output axes that the domain names. Throws UserError for a domain whose copies have no such form.
struct RestoredCopies {
    std::vector<Axis> axes;
    std::vector<RestoredCopy> copies;  // each output is written by one of them, once
};
RestoredCopies restored_copies(const Domain& domain, const std::vector<Axis>& axes);

}  // namespace loopegg
