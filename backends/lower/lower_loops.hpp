// Loops of a nest, walks over its tiles and its output elements, and the places of a GPU, as TIR around what a callback makes.
#pragma once
#include <functional>
#include <optional>

#include "backends/lower/lower_operands.hpp"

namespace loopegg {

// Storage of at most this size lies on the stack.
constexpr std::int64_t most_stack_bytes = 16384;

// Beyond this, a loop that was to be a vector is an ordinary one.
constexpr std::int64_t most_lanes = 64;

// The loops of a statement with coefficients that transform one tile, all written out, with at most a vector inside them.
struct WholeTile {
    const TreeNode* body = nullptr;
    const TreeNode* lanes = nullptr;  // null: one number at a time
    bool finishes = false;            // output elements begin and end in here
};

bool is_thread(const std::string& place);  // "threadIdx.x" and its kind

class NestLoops : protected NestOperands {
protected:
    NestLoops(const Statement& statement, const LoopTree& tree, bool gpu);

    Obj around(const TreeNode& n, const std::function<Obj()>& inner, bool may_vectorize);
    Obj over_tile(const Tile& tile, bool parallel, const std::function<Obj()>& leaf);
    Obj over_rows(const Tile& tile, std::size_t in_one_piece, const std::function<Obj()>& leaf);  // the last steps as vectors
    // By the threads of a block together, so many elements at once where they come in so many: `leaf` is told the how-manieth of its thread that is, and
    // which of these.
    using CopyLeaf = std::function<Obj(const Expr& round, const Expr& lane)>;
    Obj cooperative(const Tile& tile, std::int64_t lanes, const CopyLeaf& leaf, bool written_out = false);
    struct Shares {
        std::int64_t threads = 1, lanes = 1, rounds = 1;
    };
    Shares shares(const Tile& tile, std::int64_t lanes) const;  // of a tile, among these threads
    // The threads that work out parts of sums around here, each in a slice of the block's own: how many there are, and which one this is.
    std::vector<std::pair<std::int64_t, Expr>> sums_apart();
    bool spread_below(const Tree& n) const;  // whether cores share the work there

    // Does something once to each output element that the tree below writes: `leaf` gets its logical index, and the body that
    // writes it where the loops of the tree were walked for that.
    using ElementLeaf = std::function<Obj(const std::vector<Index>& logical, const TreeNode* body)>;
    Obj each_element(const Tree& below, const std::vector<Tile>& tiles, const ElementLeaf& leaf);

    std::optional<WholeTile> whole_tile(const Tree& n) const;

    // What a thread must be to do what stands here; nothing on a CPU.
    Expr mine();
    // What a thread must be to take part in the loops around here: where parts of a nest have unequally many, some have
    // nothing to do, and must not read either.
    const Expr& busy() const { return guard_; }
    bool guarded_here() const { return guard_.node.defined(); }
    bool inside_threads() const;  // of those that share outputs, not sums
    Obj launched(Obj body, Launch& launch);

    std::vector<const TreeNode*> loop_of_;  // by variable
    std::vector<int> depth_;                // by variable

private:
    struct PlaceUse {
        std::int64_t extent = 1;
        tv::Variable var;
        int depth = 0;      // how many loops around here are bound to it
        bool sums = false;  // its threads work out parts of sums
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
};

}  // namespace loopegg
