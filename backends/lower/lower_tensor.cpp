// Lowers what is under a tensor loop to one instruction of a warp: 16 rows times 8 columns, 8 words of each sum.
//
// The schedule says which outputs a thread has, as anywhere: thread 4*g + m of the warp has rows g and g + 8, and columns 2*m and 2*m + 1. So sums begin, end
// and leave their registers as they do in other nests. The instruction wants operands in another order: of the rows, steps m and m + 4; of the columns,
// column g. Where numbers are packed, these are words. A thread reads these from tiles that all threads share, by the index of the thread that has that column.
#include <tuple>

#include "backends/lower/lower_stages.hpp"
#include "base/error.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t warp = 32, members = 4, steps = 8;

[[noreturn]] void refuse(const std::string& why) {
    throw UserError(
        Diagnostic{"no instruction of tensor cores does this: " + why,
                   {},
                   "expected (bind tensor.KIND AXIS (unroll AXIS (unroll AXIS done))) of 8 words of a sum, 2 rows and 2 columns, inside a loop of 32 "
                   "bound to threadIdx.x whose last 4 are columns, with both operands in shared memory"});
}

}  // namespace

tv::Obj NestStages::tensor_step(const TreeNode& n) {
    if (n.extent != steps * in_word_) refuse("a sum in steps of " + std::to_string(n.extent));
    if (s_.combine != Combine::sum || s_.reads.size() != 2 || !s_.coefficients.empty() || !s_.value.is("*", 2))
        refuse("it is no sum of products of two operands");
    std::vector<const TreeNode*> own;
    const TreeNode* body = n.children[0].get();
    for (; body->kind == TreeNode::Kind::loop; body = body->children[0].get()) own.push_back(body);
    if (own.size() != 2 || own[0]->extent != 2 || own[1]->extent != 2 || body->kind != TreeNode::Kind::body)
        refuse("a thread has other outputs than 2 times 2");
    if (holds(body->predicates).node.defined()) refuse("some instances are left out");
    const std::size_t a = body->reads[0].uses(own[0]->var) ? 0 : 1, b = 1 - a;
    const int row = own[0]->var, column = own[1]->var;
    for (const auto& [operand, yes, no] : {std::tuple{a, row, column}, std::tuple{b, column, row}})
        if (!body->reads[operand].uses(yes) || body->reads[operand].uses(no) || !body->reads[operand].uses(n.var))
            refuse("its operands are not rows and columns");
    for (std::size_t r : {a, b})
        if (body->reads[r].stage < 0 || storages_[static_cast<std::size_t>(body->reads[r].stage)]->buffer.scope != "shared")
            refuse("an operand is not in shared memory");

    const TreeNode* lanes = nullptr;
    for (const TreeNode* loop : loop_of_)
        if (loop && loop->loop == LoopKind::bind && loop->place == "threadIdx.x" && any_node(loop->children[0], [&](const TreeNode& x) { return &x == &n; }))
            lanes = loop;
    if (!lanes || lanes->extent != warp) refuse("threadIdx.x is no warp");
    // Rows may depend on the thread's group alone, and columns on the thread's place in its group.
    for (const bool corner : {false, true}) {
        std::vector<std::int64_t> values(extents_.size() + 1, 0), other;
        for (std::size_t v = 0; corner && v < extents_.size(); ++v) values[v] = extents_[v] - 1;
        for (std::int64_t lane = 0; lane < warp; ++lane)
            for (const auto& [operand, same] : {std::pair{a, lane / members * members}, std::pair{b, lane % members}}) {
                other = values;
                values[static_cast<std::size_t>(lanes->var)] = lane, other[static_cast<std::size_t>(lanes->var)] = same;
                for (const Index& i : body->reads[operand].index)
                    if (i.at(values) != i.at(other)) refuse("its operands are not rows and columns of a warp");
            }
    }

    if (!packed() && numbers_in_word(n.place) > 1) refuse("its operands are not packed, because other parts of the nest read them one by one");
    Scope keep(env_);
    const Expr thread = env_[static_cast<std::size_t>(lanes->var)], group = floor_div(thread, members), member = floor_mod(thread, members);
    const auto set = [&](int var, const Expr& value) { env_[static_cast<std::size_t>(var)] = value; };
    std::vector<Expr> operands;
    for (int i : {0, 1})
        for (int k : {0, 1}) {
            set(n.var, 0), set(row, i), set(column, k);
            const Spot to = output(*body);
            if (to_global(to)) refuse("its sums are in no (stage O ...)");
            operands.push_back(to.buffer.address(to.at));
        }
    // Which steps of a sum an instruction's operand has is for us to choose, as both operands agree. So the words of a thread are neighbours.
    const auto steps_of_half = [&](int half) { return packed() ? member * Expr(2 * in_word_) + Expr(half * in_word_) : member + Expr(members * half); };
    const auto operand = [&](std::size_t r) { return packed() ? word(*body, r).load() : read(*body, r); };
    set(column, 0);
    for (int half : {0, 1})
        for (int i : {0, 1}) {
            set(n.var, steps_of_half(half)), set(row, i);
            operands.push_back(operand(a));
        }
    // Column g of the warp belongs to thread g / 2, which has two columns.
    set(row, 0), set(lanes->var, floor_div(group, 2)), set(column, floor_mod(group, 2));
    for (int half : {0, 1}) {
        set(n.var, steps_of_half(half));
        operands.push_back(operand(b));
    }
    return tv::outer_call(("loopegg_mma_" + n.place).c_str(), operands);
}

}  // namespace loopegg
