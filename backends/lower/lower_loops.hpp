// Loops of a nest, walks over its tiles and its output elements, and the places of a GPU, as TIR around the TIR that a callback makes.
#pragma once
#include <functional>
#include <optional>

#include "backends/lower/lower_operands.hpp"

namespace loopegg {

// Storage of at most this size is on the stack.
constexpr std::int64_t max_stack_bytes = 16384;

// A loop with more lanes that was to be a vector becomes an ordinary loop.
constexpr std::int64_t max_lanes = 64;

// The loops of a statement with coefficients that transform one tile, all written out, with at most a vector inside them.
struct WholeTile {
    const TreeNode* body = nullptr;
    const TreeNode* lanes = nullptr;  // null: one number at a time
    bool finishes = false;            // output elements begin and end inside these loops
};

bool is_thread(const std::string& place);  // "threadIdx.x" and its kind

class NestLoops : protected NestOperands {
protected:
    NestLoops(const Statement& statement, const LoopTree& tree, bool gpu);

    Obj around(const TreeNode& n, const std::function<Obj()>& inner, bool may_vectorize);
    Obj over_tile(const Tile& tile, bool parallel, const std::function<Obj()>& leaf);
    // A loop over a step from `from` up to `to`: as many vectors as fit, each as long as possible.
    Obj over_vectors(const Tile::Step& step, std::int64_t from, std::int64_t to, const std::function<Obj()>& leaf);
    Obj over_rows(const Tile& tile, std::size_t in_one_piece, const std::function<Obj()>& leaf);  // the last `in_one_piece` steps as vectors
    // The threads of a block go over a tile together, and each takes `lanes` elements at once where the tile allows it. `leaf` gets the round (how many
    // times its thread took elements before) and the lane.
    using CopyLeaf = std::function<Obj(const Expr& round, const Expr& lane)>;
    Obj cooperative(const Tile& tile, std::int64_t lanes, const CopyLeaf& leaf, bool written_out = false);
    struct Shares {
        std::int64_t threads = 1, lanes = 1, rounds = 1;
    };
    Shares shares(const Tile& tile, std::int64_t lanes) const;  // how the threads of `cooperative` share a tile
    // The loops around here whose threads compute parts of sums, each in a slice of the block: how many slices there are, and which one a thread is in.
    std::vector<std::pair<std::int64_t, Expr>> sums_apart();
    bool spread_below(const Tree& n) const;  // whether cores share the work below n

    // Does something once to each output element that the tree below writes. `leaf` gets the logical index of the element, and the body that
    // writes it if the loops of the tree were walked to find the elements.
    using ElementLeaf = std::function<Obj(const std::vector<Index>& logical, const TreeNode* body)>;
    Obj each_element(const Tree& below, const std::vector<Tile>& tiles, const ElementLeaf& leaf);

    std::optional<WholeTile> whole_tile(const Tree& n) const;

    // The condition on a thread under which it does what is here; empty on a CPU.
    Expr mine();
    // The condition on a thread under which it takes part in the loops around here. Where the parts of a nest use unequally many threads, some threads have
    // nothing to do, and must not read either.
    const Expr& busy() const { return guard_; }
    bool guarded_here() const { return guard_.node.defined(); }
    bool inside_threads() const;                 // inside a loop whose threads share outputs, not sums
    void on_one_core() { in_parallel_ = true; }  // other code shares the work among the cores, so no loop here does
    Obj launched(Obj body, Launch& launch);
    std::int64_t turns() const;  // of the parallel loops, as loopeggrt_team_turns wants them

    // A loop that becomes vectors: one that the schedule says, or the columns of a unit's tile where these are walked one by one.
    bool is_vector(const TreeNode& n) const { return n.loop == LoopKind::vector || column_vars_.contains(n.var); }

    std::vector<const TreeNode*> loop_of_;                 // by variable
    std::vector<int> depth_;                               // by variable
    std::set<int> unit_vars_, packed_vars_, column_vars_;  // of loops that a unit does on packed operands, and of two of these loops

private:
    struct PlaceUse {
        std::int64_t extent = 1;
        tv::Variable var;
        int depth = 0;      // how many loops around here are bound to the place
        bool sums = false;  // the threads compute parts of sums
    };
    void scan(const Tree& n, int depth = 0);
    static Expr place_variable(PlaceUse& p, const std::string& name);
    bool projectable(const Tree& n, std::int64_t elements) const;
    std::int64_t points(const Tree& n) const;
    Obj project(const Tree& n, const std::function<Obj(const TreeNode&)>& leaf);
    bool bound_below(const Tree& n) const;

    std::map<std::string, PlaceUse> places_;
    Expr guard_{Obj{nullptr}};
    std::int64_t unrolled_ = 1;
    bool in_parallel_ = false;
    std::vector<std::int64_t> turns_;  // of each parallel loop, in their order
};

}  // namespace loopegg
