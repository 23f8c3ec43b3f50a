// Turns the loops around an instance into its iterators: the inverse of the axes, as sums of atoms over loop variables; and the tiles
// that follow from them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nest/run/loop_tree.hpp"
#include "nest/term/axis.hpp"

namespace loopegg {

struct SolvedLoop {
    Term axis;
    int var;
};

// A value 0 .. extent-1 over loop variables: a variable, or a quotient or remainder of such values.
struct IndexAtom {
    Index value;
    std::int64_t extent = 1;
    int first_var = 0, last_var = 0;  // of the outermost and innermost loop that the value depends on
    friend bool operator==(const IndexAtom& a, const IndexAtom& b) { return a.value == b.value; }
};

// offset + sum of coefficient * atom
struct Linear {
    struct Part {
        std::int64_t coefficient;
        IndexAtom atom;
    };
    std::int64_t offset = 0;
    std::vector<Part> parts;

    Index index() const;
    std::int64_t largest() const;  // coefficients are positive
    void add(const Linear& other, std::int64_t times);
    bool uses(const IndexAtom& atom) const;
};

struct Condition {
    Linear expression;
    std::int64_t bound;
};

struct Solution {
    std::vector<Linear> iterators;  // one per axis of the statement
    std::vector<Condition> conditions;
};

// Throws UserError when some digit of an iterator is in no loop or in two.
Solution solve(const Statement& statement, std::span<const SolvedLoop> loops);

// Whether any two iterations of the loop of `var` write different output elements, so that an output element determines the value of `var`.
bool output_determines(const Statement& statement, const Solution& solution, int var);

// Whether the two solutions write no output element in common, under equal values of the loops before `first_inner`.
bool outputs_apart(const Statement& statement, const Solution& a, const Solution& b, int first_inner);

// The tile of one access below some loop: steps over the atoms of inner loops, or a box where they overlap.
struct TilePlan {
    struct Step {
        std::int64_t extent = 1;
        std::optional<IndexAtom> atom;  // none: a box along one dimension
        int dimension = -1;             // of a box
        int var = -1;                   // given when the tile is made
    };
    int first_inner = 0;
    std::vector<Step> steps;
    std::vector<Linear> fixed;                                              // per dimension: what the loops outside give
    std::vector<std::vector<std::pair<std::int64_t, std::size_t>>> moving;  // per dimension: coefficient and step
    std::vector<Condition> conditions;

    bool same_elements(const TilePlan& other) const;
    Tile tile() const;
    std::vector<Index> local_of_body(const Access& access, const Solution& solution) const;
    // Where the elements of a tile further in are in the storage of this tile; none if that cannot be determined.
    std::optional<std::vector<Index>> local_of_tile(const TilePlan& inner, const Tile& tile) const;
};

// The tile of the output: exactly the elements that instances below write. Throws UserError where these elements are no product of steps.
TilePlan plan_output_tile(const Statement& statement, const Solution& solution, int first_inner);
bool output_tile_exists(const Statement& statement, const Solution& solution, int first_inner);

// The tile of an input: the elements that are read, or the smallest box around them along dimensions where windows overlap.
TilePlan plan_input_tile(const Access& access, const Solution& solution, int first_inner);

}  // namespace loopegg
