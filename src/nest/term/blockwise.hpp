// A value computed block by block: (blockwise B M N VALUE), of B matrices with M rows and N columns.
//
//   VALUE ::= (then (sums CHAIN SUM SUM) NEST)    the last nest divides one sum by the other
//   CHAIN ::= (columns K NEST)                    a product: K of its N columns at a time
//           | (then CHAIN NEST)                   a function of each element, or of each element and its row
//           | (then CHAIN (pair STMT NEST))       a function of each element and one of another operand, as STMT, over whole matrices, reads it
//   SUM   ::= NEST                                sums over the columns: (matmul 1 R D K) of the chain with another matrix, or (row_sum R K 1)
//
// Each nest here is that of one block: of R rows of one matrix, and of K columns. Cores share the blocks of rows. For each of these, the blocks of columns come
// one after the other, and the sums go on from block to block, so no buffer has a size of rows times columns. The last blocks have the rows and columns that
// are left.
//
// A wide number is a float32 times exp(m), where m is shared by a row. (wide_exp R C) makes such numbers, m being the largest exponent of the row so far. A sum
// of wide numbers is wide, and the quotient of two of them is an ordinary number. So e to the power of 1,000 can be added up and divided by.
#pragma once
#include <optional>
#include <vector>

#include "nest/term/statement.hpp"

namespace loopegg {

// Where the elements of one buffer of a nest lie: in what another part wrote, or in a buffer of the whole, from a place that depends on the block.
struct BlockView {
    int part = -1;                                 // that wrote it; -1: a buffer of the whole
    int buffer = 0;                                // of the whole
    std::vector<std::int64_t> strides;             // by dimension, in floats
    std::int64_t matrix = 0, row = 0, column = 0;  // floats from one matrix, block of rows, block of columns to the next
    std::int64_t elements = 0;                     // of a buffer of the whole
    std::int64_t share = 1, period = 0;            // so many neighbouring matrices read the same, and after so many others it begins again; 0: never
};

struct BlockPart {
    enum class Kind { product, map, sum, finish };
    Kind kind = Kind::map;
    Term nest;
    Statement statement;
    std::vector<BlockView> views;  // one for each buffer of the statement; the first is what it writes
    bool wide() const { return statement.term.op().text() == "wide_exp"; }
};

struct Blockwise {
    std::int64_t matrices = 1, rows = 1, columns = 1;  // of the whole
    std::int64_t row_block = 1, column_block = 1;
    std::vector<BlockPart> parts;  // in the order in which they run
    bool wide = false;             // the sums are wide numbers
};

bool is_blockwise(const Term& stmt);

// The parts of (blockwise B M N VALUE). Throws UserError for anything else.
Blockwise blockwise_of(const Term& stmt);

// The whole as a statement: its buffers are O, and the operands of VALUE in their order, named I, J, K.
Statement blockwise_statement(const Term& stmt);

// The blockwise form of a VALUE whose nests are those of whole matrices, `row_block` rows at a time; its nests are naive. None where there is no such form.
std::optional<Term> blockwise_form(const Term& value, std::int64_t row_block);

// What a last block does, which has fewer rows or fewer columns; its nests are naive.
Blockwise last_block(const Blockwise& b, std::int64_t rows, std::int64_t columns);

// The same with other schedules, one for each part.
Term with_part_nests(const Term& stmt, const std::vector<Term>& nests);

// What the whole computes, in double precision: row by row, with each row's largest exponent taken out of its wide numbers. `buffers` are the operands.
std::vector<float> blockwise_reference(const Blockwise& b, const std::vector<std::vector<float>>& buffers);

}  // namespace loopegg
