// Statements: what one compute operator does at each point of its domain. Two operators of one shape are one statement, one term.
//
//   STMT                                             axes (in order)         what an instance does
//   (conv2d N G CO CI IH IW KH KW SH SW PH PW DH DW) n g co ci oh ow kh kw   O[n, g*CO+co, oh, ow] += W[g*CO+co, ci, kh, kw] *
//                                                                            I[n, g*CI+ci, oh*SH+kh*DH-PH, ow*SW+kw*DW-PW]
//                                                                            CO, CI are per group; OH = (IH+2PH-DH(KH-1)-1)/SH+1
//   (linear N CO CI)                                 n co ci                 O[n,co] += W[co,ci] * I[n,ci]
//   (matmul B M N K)                                 b i j k                 O[b,i,j] += I[b,i,k] * J[b,k,j]
//   (max_pool N C IH IW KH KW SH SW PH PW)           n c oh ow kh kw         O[n,c,oh,ow] max= I[n,c,oh*SH+kh-PH,ow*SW+kw-PW]
//   (avg_pool N C IH IW KH KW SH SW PH PW)           n c oh ow kh kw         the same with +=, then / (KH*KW)
//   (avg_pool_inside ...)                            n c oh ow kh kw         the same, then / C[oh,ow], the count of elements inside the image
//   (row_sum R C S), (row_mean R C S)                r s k                   O[r,s] += I[r,k,s], and the mean then / C
//   (row_max R C S)                                  r s k                   O[r,s] max= I[r,k,s]
//   (row_exp_sum R C S)                              r s k                   O[r,s] += exp(I[r,k,s] - J[r,s])
//   (row_square R C S)                               r s k                   O[r,s] += (I[r,k,s] - J[r,s])^2, then / C
//   (row_softmax R C S)                              r x s                   O[r,x,s] = exp(I[r,x,s] - J[r,s]) / K[r,s]
//   (row_norm R C EPS)                               r x                     O[r,x] = (I[r,x]-J[r]) / sqrt(K[r]+EPS) * A[x] + B[x]
//   (row_exp R C), (row_divide R C)                  r x                     O[r,x] = exp(I[r,x] - J[r]), and O[r,x] = I[r,x] / J[r]
//   (wide_exp R C)                                   r x                     O[r,x] = exp(I[r,x]) as a wide number (blockwise.hpp)
//   (blockwise B M N VALUE)                          r x                     O[r,x] of B * M rows: what VALUE computes, block by block (blockwise.hpp)
//   (map F SIZE)                                     x                       O[x] = F(I[x]), F ::= relu relu6 silu gelu sigmoid tanh copy
//   (move D0 D1 D2 D3)                               x0 x1 x2 x3             O[x0,x1,x2,x3] = I[x0,x1,x2,x3]: with (order I P ...) around it, a transposition
//   (scale V SIZE)                                   x                       O[x] = I[x] * V
//   (zip F SIZE)                                     x                       O[x] = F(I[x], J[x]), F ::= + - *
//   (stretch F D0 D1 D2 D3 MI MJ)                    x0 x1 x2 x3             the same over four dimensions, where I has dimension d only if
//                                                                            bit d of MI is set (else 1), J likewise: broadcasting
//   (channel_scale N C S)                            n c x                   O[n,c,x] = I[n,c,x] * A[c] + B[c] (batch-norm at inference)
//   (bilinear_input T S MH MW N C IH IW PH PW)       n c th tw u v kh kw     O[n, (u*V+v)*C+c, th, tw] += T[u,kh] * S[v,kw] *
//                                                                            I[n, c, th*MH+kh-PH, tw*MW+kw-PW]: tiles of MH rows and MW columns of
//                                                                            outputs, each transformed; T and S are matrices (rational_matrix.hpp)
//   (bilinear_output T S N C OH OW)                  n c th tw i j kh kw     O[n, c, th*MH+i, tw*MW+j] += T[i,kh] * S[j,kw] *
//                                                                            I[n, (kh*V+kw)*C+c, th, tw], within O; MH and MW are the rows of T and S
//   (recurrence T Y)                                 t y                     O[t+1,y] = O[t,y+1] + I[t,y]: it carries a dependence that an
//                                                                            interchange reverses; it is what the judge tries rules on
//
// A row of graph/loop_operators.hpp is a statement too. A read outside its buffer gives `outside` (0 for sums, -inf for max): padding is expressed so.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"
#include "graph/graph.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/index.hpp"

namespace loopegg {

// How the iterations of an axis depend on one another: not at all; only by accumulating one result; by an order that must be kept.
enum class AxisRole { parallel, reduction, sequential };

// The role follows from an iterator's name in every statement: ci k kd kh kw are reductions, t y are sequential, all others parallel.
AxisRole role_of(std::string_view iterator);

struct Iterator {
    std::string name;
    std::int64_t extent = 1;
    AxisRole role = AxisRole::parallel;
};

// offset + sum of coefficients * axes; one coefficient per axis of the statement.
struct Affine {
    std::vector<std::int64_t> coefficients;
    std::int64_t offset = 0;
    Index over(std::span<const Index> iterators) const;
    std::int64_t at(std::span<const std::int64_t> iterators) const;
};

enum class BufferKind { input, weight, output };

// d/factor stays in place, d%factor becomes the innermost dimension. Blockings are applied in order, each to the dimensions that the one before left.
struct Blocking {
    int dimension;  // of the logical shape
    std::int64_t factor;
    friend bool operator==(const Blocking&, const Blocking&) = default;
};

// Of the elements in their logical order, `rows` rows of `length` elements each are interleaved: first the first elements of all rows, and so on.
struct Interleaved {
    std::int64_t rows, length;
    std::int64_t ragged = 0;  // elements of the blocked dimension where whole blocks do not fill it
    friend auto operator<=>(const Interleaved&, const Interleaved&) = default;
};
// How the elements of a value are stored in memory, whatever its dimensions are called: one for each blocking that moves elements. Empty for the logical order.
using MemoryOrder = std::vector<Interleaved>;

struct Buffer {
    std::string name;  // O the output; I J K inputs; W weights; A B per-channel constants; E* operands of epilogues
    Shape shape;       // logical
    BufferKind kind = BufferKind::input;
    std::vector<Blocking> blocking{};

    Shape stored_shape() const;  // with the blocking
    std::vector<Index> stored_index(const std::vector<Index>& logical) const;
    MemoryOrder order() const;
};

struct Access {
    int buffer = 0;             // of Statement::buffers
    std::vector<Affine> index;  // one per logical dimension
    bool padded = false;        // a read may leave the buffer, and gives `outside` there; a write that leaves the buffer belongs to no instance
};

// A factor of `value` that the statement itself knows: an entry of a small matrix, by the values of two axes.
struct Coefficient {
    std::string name;
    int row = 0, column = 0;                  // axes
    std::vector<std::vector<double>> values;  // [row][column]
    double at(std::int64_t r, std::int64_t c) const { return values[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)]; }
};

// An operand of `finish`, read at the output element's own logical index, of which it takes some dimensions (bias: the channel).
struct FinishRead {
    int buffer = 0;
    std::vector<int> dimensions;  // of O, one per dimension of the operand
};

enum class Combine { assign, sum, max };

struct Statement {
    Term term;  // STMT
    std::vector<Iterator> axes;
    std::vector<Buffer> buffers;  // buffers[0] is O
    Access write;
    std::vector<Access> reads;  // one per buffer that `value` names
    Combine combine = Combine::assign;
    std::vector<Coefficient> coefficients{};
    Term value;   // a scalar term over names of buffers and coefficients, and numbers: (* W I). Operators: + - * / max exp sqrt and the
                  // functions of `map`
    Term finish;  // a scalar term over `acc` and the buffers of finish_reads, done once per output element
    std::vector<FinishRead> finish_reads;
    double outside = 0;

    int axis(std::string_view name) const;    // -1 if there is none
    int buffer(std::string_view name) const;  // -1 if there is none
    bool writes_axis(int axis) const;         // the output's index depends on the axis
    bool keeps_an_order() const;              // some instances wait for others
    std::int64_t instances() const;           // of the whole domain
    double identity() const { return combine == Combine::max ? -1.0 / 0.0 : 0.0; }
};

// The statement of a STMT. Throws UserError (unknown operator with a hint, wrong number of shapes, impossible shapes).
Statement statement_of(const Term& stmt);
Statement statement_in(const Term& nest);  // of the nest's STMT

// The operators of statements, and for each child whether it is a word (a function's name, a real number) or a whole number.
struct StatementForm {
    std::string op;
    std::vector<bool> words;
};
std::vector<StatementForm> statement_forms();

// The statements of one compute node, in the order they run; none for nodes that only move data (flatten, concat ...).
// Softmax, layer norm: several. A node's own bias and activation attributes become epilogues.
std::vector<Statement> statements_of(const Node& node);

// The naive nest: one serial loop per axis of extent > 1, in the statement's order. For a restricted node, loops over what its domain leaves.
Term naive_schedule(const Statement& statement);
Term nest_of(const Statement& statement);
Term nest_of(const Node& node);  // of the node's first statement (its site)

// An epilogue or a layout put around a statement.
Term with_epilogue(const Term& stmt, std::string_view epilogue);
Term with_epilogue(const Term& stmt, const Term& epilogue);
Term with_layout(const Term& stmt, std::string_view buffer, std::string_view axis, std::int64_t factor);
// `stmt` with the layouts of `from`, which may have other epilogues. The layout of an output is also that of what is added to it.
Term with_layouts_of(const Term& from, Term stmt);
// The statement inside all epilogues, layouts and orders.
Term plain_statement(Term stmt);
// The same statement with another size of one axis, by its name ("ci"). A statement that has no child for this size stays as it is.
Term with_size(const Term& stmt, std::string_view axis, Term size);

// Whether an element of the output depends only on the elements of the inputs at the same place. Then the buffers may be in any order that is the same
// for all of them.
bool works_in_any_order(const Statement& statement);

// What a scalar function of `value` and `finish` gives.
double apply_scalar(std::string_view function, std::span<const double> operands);

}  // namespace loopegg
