// What the indices of a nest mean while it is lowered: the values of its loop variables, and where each operand is stored.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "backends/kernel/kernel.hpp"
#include "backends/lower/tir.hpp"

namespace loopegg {

// Storage that lowering makes: of a stage, or of partial sums.
struct Storage {
    tv::Buffer buffer;
    std::vector<int> order;  // physical dimension -> step; threads walk the steps that are left out
    const Tile* tile = nullptr;
    int stage = -1;
    int lane_var = -1;  // partial sums: the loop variable that is a dimension of its own
    bool lane_last = false;
    std::vector<tv::Expr> slices{};     // outermost dimensions that say which slice of the block the storage belongs to; the slice's threads share it
    int packed_step = -1;               // the step whose neighbours share words of the storage, if there is one
    std::int64_t block = 0;             // on a GPU: so many neighbours of the packed step are together, and the storage is flat
    const TreeNode* slot_of = nullptr;  // the stage of the output that fills this storage, each element once
};

// Where the scales of int8 numbers are: in which buffer, from which of its words on, and for how many output channels.
struct Int8Place {
    int weights = -1;
    std::int64_t begin = 0, channels = 0;
};

// A buffer of a statement that is a part of another, flat buffer: where it begins, and how far apart its elements lie along each dimension.
struct OperandView {
    tv::Buffer buffer;
    tv::Expr begin;
    std::vector<std::int64_t> strides;
};

std::int64_t element_count(const Tile& tile);

template <class F>
void each_body(const Tree& n, F f) {
    if (n->kind == TreeNode::Kind::body) f(*n);
    for (const Tree& c : n->children) each_body(c, f);
}
template <class P>
bool any_node(const Tree& n, P p) {
    if (p(*n)) return true;
    return std::any_of(n->children.begin(), n->children.end(), [&](const Tree& c) { return any_node(c, p); });
}

class NestOperands {
protected:
    using Expr = tv::Expr;
    using Obj = tv::Obj;
    using Env = std::vector<Expr>;
    struct Scope {  // restores the environment when it ends
        explicit Scope(Env& e) : env(e), kept(e) {}
        ~Scope() { env = kept; }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;
        Env& env;
        Env kept;
    };
    struct Spot {  // one element of a buffer
        tv::Buffer buffer;
        std::vector<Expr> at;
        Expr load() const { return buffer.load(at); }
        Obj store(const Expr& v) const { return buffer.store(v, at); }
    };

    NestOperands(const Statement& statement, const LoopTree& tree, bool gpu);
    KernelBuffer parameter(int b);                      // declares the statement's buffer b; call it in the order of the buffers
    void look_through(std::vector<OperandView> views);  // the same for all buffers at once, which are parts of others

    std::vector<Index> written(const TreeNode& body) const;  // the output's logical index
    bool writes_through(const Tree& below, int var) const;   // whether outputs depend on the variable
    const std::string& buffer_name(int b) const { return s_.buffers[static_cast<std::size_t>(b)].name; }

    // Expressions over the loop variables. Conditions that always hold come out empty.
    Expr expr(const Index& i) const;
    std::vector<Expr> exprs(const std::vector<Index>& all) const;
    Expr holds(const std::vector<Predicate>& all) const;
    Expr inside(const std::vector<Index>& index, const Shape& shape, std::size_t but = static_cast<std::size_t>(-1)) const;

    // Positions.
    std::vector<Expr> steps_of(const Tile& tile, const std::vector<Index>& logical);
    std::vector<Expr> physical(const Storage& st, const std::vector<Expr>& steps) const;
    std::vector<Expr> placed(const Storage& st, const std::vector<Index>& index) const;
    std::vector<Expr> stored(int b, const std::vector<Index>& logical) const;
    Spot in_storage(const Storage& st, const std::vector<Index>& logical) { return {st.buffer, physical(st, steps_of(*st.tile, logical))}; }
    Spot output(const std::vector<Index>& logical, std::size_t levels_up = 0);  // in the innermost storage of the output, or `levels_up` further out
    Spot output(const TreeNode& body);
    bool to_global(const Spot& spot) const { return spot.buffer.node.same_as(buffers_[0].node); }

    // Values.
    Expr read(const TreeNode& body, std::size_t r);
    // Requests for the weights that later iterations of a loop will read, to be put where an iteration begins: `below` is the loop's body.
    std::vector<Obj> prefetched(const Tree& below) const;
    // How far apart the words of an operand are whose index differs by 1 in a loop's variable; none where that is no fixed distance.
    bool packed() const { return in_word_ > 1; }
    bool int8() const { return packed_kind_ == "int8"; }
    std::optional<std::int64_t> word_stride(const TreeNode& body, std::size_t r, int var) const;
    Spot word(const TreeNode& body, std::size_t r) const;  // that holds a packed operand
    Expr word_address(const TreeNode& body, std::size_t r) const;
    Expr read_buffer(int b, const std::vector<Index>& logical, bool padded);
    Expr finished(const Expr& acc, const std::vector<Index>& logical);  // the statement's last step, for the element that holds acc
    bool has_finish() const { return s_.finish && !(s_.finish.size() == 0 && s_.finish.op().text() == "acc"); }
    Expr combined(const Expr& a, const Expr& b) const;
    Expr entry(const Coefficient& c, const TreeNode& body) const;
    // The sum over columns of a coefficient times what `term` gives; `term` is not called for coefficients of zero.
    static Expr weighted(const std::vector<double>& coefficients, const std::function<Expr(std::int64_t column)>& term);
    // What a network has measured for int8 numbers is behind the weights (kernel.hpp).
    Expr int8_scale(Int8Tail part, const Expr& channel = 0, std::int64_t lanes = 1) const;  // of neighbouring channels
    Expr outside() const;                                                                   // what reads beyond a padded buffer give
    Expr identity() const;

    const Statement& s_;
    const LoopTree& t_;
    const bool gpu_;
    const std::string packed_kind_;  // what words of operands pack; "": operands are not packed (unit_loops.hpp)
    const std::int64_t in_word_;     // so many of them
    std::vector<std::int64_t> extents_;
    Env env_;  // by variable; one more for copies of restored elements
    std::vector<tv::Buffer> buffers_;
    std::vector<std::shared_ptr<Storage>> storages_;           // by stage
    std::map<int, std::vector<const Storage*>> input_stages_;  // by buffer, innermost last
    std::vector<const Storage*> outputs_;                      // storages of the output, innermost last

    Int8Place int8_{};

    std::map<int, std::vector<WeightReader>> readers_;

private:
    std::vector<Expr> solved_steps(const Tile& tile, const std::vector<Expr>& logical);
    const WeightReader& reader_of(int b, const std::vector<Index>& logical) const;
    Expr visited(int b, const std::vector<Index>& logical) const;
    std::vector<Expr> flat_words(const Storage& st, const std::vector<Expr>& steps) const;
    std::vector<OperandView> views_;  // one for each buffer, or none
};

}  // namespace loopegg
