// The loops of a naive schedule, by what they mean for the statement: what tiles are cut from, and what an estimate goes by.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "nest/term/statement.hpp"

namespace loopegg {

struct NaiveLoop {
    Term axis;
    std::int64_t extent;
    bool reduction = true;       // walks no output element
    bool contiguous = false;     // walks the output's innermost dimension
    bool weights_only = true;    // no input depends on it: one input value serves all of its iterations
    std::vector<std::vector<std::int64_t>> strides{};   // by read and dimension: how far one iteration goes
    bool moves(std::size_t read) const;
};

struct NaiveLoops {
    std::vector<NaiveLoop> loops;   // outermost first
    std::vector<bool> inputs{};     // by read: of an input, not of weights
    bool padded = false;            // some read may leave its buffer
    bool accumulates = false;       // outputs are sums or maxima, not assigned once
    std::int64_t instances = 1;

    std::optional<std::size_t> innermost_reduction() const;
    std::optional<std::size_t> row_loop() const;       // the output loop before the contiguous one: rows of an image
    std::optional<std::size_t> find(const Term& axis) const;   // the loop that an axis is cut from by quo and rem
};

// Of a list of plain loops; none for any other schedule, and where iterations must keep their order.
std::optional<NaiveLoops> naive_loops(const Statement& statement, Term schedule);

}  // namespace loopegg
