// The loops that a matrix unit does by one instruction, and how their operands are stored in memory.
#pragma once
#include <array>
#include <optional>
#include <string>

#include "nest/run/loop_tree.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// (bind tensor.KIND ROWS (unroll DEPTH (unroll COLUMNS (unroll PACKED done)))): the first operand moves along rows, the second along columns, and both along
// the two parts of a sum. So an operand, in the order of these loops, is a row-major matrix of words, each of which packs neighbours of the sum.
struct UnitLoops {
    const TreeNode *rows = nullptr, *depth = nullptr, *columns = nullptr, *packed = nullptr, *body = nullptr;
    std::array<std::size_t, 2> operands{};  // of the statement's reads: of the rows, and of the columns
};

// What a tensor loop of numbers that share words does, if it has this form. Gives none for other loops: these round their operands one by one.
std::optional<UnitLoops> unit_loops(const Statement& statement, const TreeNode& loop);

// What all loops of a nest round operands to, if they have this form and find their operands packed: in stages, or as weights in visiting order. Operands are
// packed only then; "" otherwise.
std::string packed_kind(const Statement& statement, const LoopTree& tree);

// The same for warps of a GPU, whose tensor loops are each one step of a sum (lower_tensor.cpp): what all of them round
// operands to, if such numbers share words.
std::string packed_kind_of_warps(const LoopTree& tree);

}  // namespace loopegg
