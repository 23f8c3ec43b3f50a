// A schedule resolved into loops: the one form that the interpreter, the checks and the lowering to TVM walk.
//
// Every loop has a variable of its own, 0 <= v < extent. At a Body every iterator of the statement is an index expression over the
// variables of the loops around it: a split gives q*k + r, a `span` adds its lower bound, a `pair` gives v/|B| and v%|B|, a `diag`
// lets one variable drive a digit of both axes. Where a factor does not divide an extent a predicate `expression < bound` keeps the
// overhang out; an instance is run only if all predicates of its Body hold.
//
// Complete marks where output elements begin and end: the nodes below it hold all instances of the elements in its tiles, and no other
// instances. Before its body each element is set to the statement's identity, after its body the statement's `finish` is done once to each
// element. Complete is as far in as it can: just outside the first loop (or cat) of which some output element needs several iterations. Statements
// with combine = assign have none: the Body writes finish(value) itself. In a nest with `restore`, one Complete is at the root and
// covers the whole output: identity, body, missing elements brought back (output_sources of graph/domain_sets.hpp), finish.
//
// Stage on an input or weight: before its body the tile is copied into storage of its own (scope local or shared), elements outside
// the buffer as Statement::outside; the accesses below read the copy. Stage on the output: the body accumulates into the tile's own
// storage. If `owns` (a Complete that would have was here was absorbed) the storage starts as the identity, and finish is done when the
// storage is written back. Otherwise the storage is loaded from `source` and written back there unfinished. For an assigning statement `owns`
// is true: nothing is loaded, and the Body has done the finish.
//
// A loop with `partial` has storage too (a stage id): one tile for every iteration, with the loop's variable as the outermost index. This
// storage starts as the identity. After the loop its tiles are combined into `source` in the order of the variable. Tile and source may
// depend on the variable, because a fused loop may walk outputs as well.
//
// A stage of a buffer that the statement does not have, or that it both reads and writes, copies nothing: resolve() leaves it out, so that
// one list of loops serves nests of several statements.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/term.hpp"
#include "nest/term/index.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// tensor: one instruction of tensor cores does all iterations, and all of the loops inside, for the threads of a warp together.
enum class LoopKind { serial, parallel, vector, unroll, bind, tensor };

// holds where expression < bound
struct Predicate {
    Index expression;
    std::int64_t bound = 0;
    friend bool operator==(const Predicate&, const Predicate&) = default;
};

// A set of elements of one buffer, as a small loop nest of its own: one variable per step (in one numbering with the loops' variables), the logical
// index of the element over steps and the loops outside, and what must hold for the element to belong to the tile.
struct Tile {
    struct Step {
        int var = 0;
        std::int64_t extent = 1;
        friend bool operator==(const Step&, const Step&) = default;
    };
    std::vector<Step> steps;   // also the shape of a stage's own storage, row-major, outermost first
    std::vector<Index> index;  // one per logical dimension of the buffer
    std::vector<Predicate> predicates;
    std::int64_t elements() const;  // product of the steps
    friend bool operator==(const Tile&, const Tile&) = default;
};

struct TreeNode;
using Tree = std::shared_ptr<const TreeNode>;

// Where an operand is found: in the buffer itself, or in the storage of a stage (or partial loop) around the body.
struct OperandPlace {
    int stage = -1;            // -1: the buffer
    std::vector<Index> index;  // logical index into the buffer, or index into the stage's storage
    bool uses(int var) const;
};

struct TreeNode {
    enum class Kind { loop, cat, stage, complete, body };
    Kind kind = Kind::body;

    // loop
    LoopKind loop = LoopKind::serial;
    std::string place{};  // the PLACE of a bind; of a tensor loop, the kind of numbers that it multiplies ("tf32")
    std::int64_t extent = 1;
    int var = -1;
    Term axis{};  // what the loop walks, for names and messages
    bool partial = false;

    // stage, and a partial loop's storage of the output
    int stage = -1;       // the id of the stage
    int buffer = -1;      // into Statement::buffers
    std::string scope{};  // "local" | "shared" | "ahead": shared, and copied while the tile before it is used
    bool owns = false;
    Tile tile{};
    OperandPlace source{};  // where the tile's elements come from or go back to, over the tile's steps

    // complete
    std::vector<Tile> tiles{};  // of the output buffer; disjoint

    // body
    std::vector<Index> iterators{};  // one per axis of the statement
    std::vector<Predicate> predicates{};
    OperandPlace write{};
    std::vector<OperandPlace> reads{};  // one for each of Statement::reads

    std::vector<Tree> children{};  // one; two for cat; none for body
};

struct LoopTree {
    Tree root;
    int variables = 0;  // loops and tile steps together: values are held in an array of this size
    int stages = 0;
};

// Throws UserError saying what is wrong: a digit in no loop or in two, an axis that cannot be, a stage whose tile is no box,
// an output tile that cannot be distinguished from its neighbours'.
LoopTree resolve(const Statement& statement, const Term& sched);
LoopTree resolve(const Term& nest);

std::string to_string(const LoopTree& tree, const Statement& statement);  // indented, for people and tests

}  // namespace loopegg
