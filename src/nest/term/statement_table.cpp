// The table of statements: what each STMT operator's numbers mean.
#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"
#include "graph/loop_operators.hpp"
#include "nest/term/bilinear.hpp"
#include "nest/term/blockwise.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/wrapped_statement.hpp"

namespace loopegg {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Builds a statement by naming axes in the accesses: at(buffer, {{"oh",2},{"kh",1}}, -1) ...
class Builder {
public:
    explicit Builder(const Term& term) {
        s_.term = term;
        s_.finish = Term("acc");
    }

    void axis(std::string name, std::int64_t extent, AxisRole role = AxisRole::parallel) { s_.axes.push_back({std::move(name), extent, role}); }
    std::size_t axes() const { return s_.axes.size(); }
    void reduce(std::string name, std::int64_t extent) { axis(std::move(name), extent, AxisRole::reduction); }

    struct Part {
        std::string_view axis;
        std::int64_t coefficient = 1;
    };
    Affine affine(std::initializer_list<Part> parts, std::int64_t offset = 0) const {
        Affine a{std::vector<std::int64_t>(s_.axes.size(), 0), offset};
        for (const Part& p : parts) a.coefficients[static_cast<std::size_t>(s_.axis(p.axis))] = p.coefficient;
        return a;
    }
    Access access(std::string name, Shape shape, BufferKind kind, std::vector<Affine> index, bool padded = false) {
        s_.buffers.push_back({std::move(name), std::move(shape), kind, {}});
        return {static_cast<int>(s_.buffers.size()) - 1, std::move(index), padded};
    }
    void write(Shape shape, std::vector<Affine> index) { s_.write = access("O", std::move(shape), BufferKind::output, std::move(index)); }
    void read(std::string name, Shape shape, BufferKind kind, std::vector<Affine> index, bool padded = false) {
        s_.reads.push_back(access(std::move(name), std::move(shape), kind, std::move(index), padded));
    }
    void finish_read(std::string name, Shape shape, BufferKind kind, std::vector<int> dimensions) {
        s_.buffers.push_back({std::move(name), std::move(shape), kind, {}});
        s_.finish_reads.push_back({static_cast<int>(s_.buffers.size()) - 1, std::move(dimensions)});
    }
    void coefficient(std::string name, std::string_view row, std::string_view column, const std::vector<std::vector<double>>& values) {
        s_.coefficients.push_back({std::move(name), s_.axis(row), s_.axis(column), values});
    }
    void drop_outside_writes() { s_.write.padded = true; }
    void combine(Combine c, std::string_view value, std::string_view finish = "acc") {
        s_.combine = c;
        s_.value = parse_term(value);
        s_.finish = parse_term(finish);
        if (c == Combine::max) s_.outside = minus_infinity;
    }
    Statement done() { return std::move(s_); }

private:
    Statement s_;
};

using Numbers = std::span<const std::int64_t>;

std::int64_t out_extent(std::int64_t in, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d, std::int64_t end) {
    std::int64_t room = in + p + end - d * (k - 1) - 1;
    if (room < 0) throw UserError("a window of " + std::to_string(k) + " does not fit into " + std::to_string(in) + " with padding " + std::to_string(p));
    return room / s + 1;
}

Statement conv2d(const Term& t, Numbers v) {
    auto N = v[0], G = v[1], CO = v[2], CI = v[3], IH = v[4], IW = v[5], KH = v[6], KW = v[7], SH = v[8], SW = v[9], PH = v[10], PW = v[11], DH = v[12],
         DW = v[13];
    auto OH = out_extent(IH, KH, SH, PH, DH, PH), OW = out_extent(IW, KW, SW, PW, DW, PW);
    Builder b(t);
    b.axis("n", N), b.axis("g", G), b.axis("co", CO), b.reduce("ci", CI), b.axis("oh", OH), b.axis("ow", OW), b.reduce("kh", KH), b.reduce("kw", KW);
    b.write({N, G * CO, OH, OW}, {b.affine({{"n"}}), b.affine({{"g", CO}, {"co"}}), b.affine({{"oh"}}), b.affine({{"ow"}})});
    b.read("W", {G * CO, CI, KH, KW}, BufferKind::weight, {b.affine({{"g", CO}, {"co"}}), b.affine({{"ci"}}), b.affine({{"kh"}}), b.affine({{"kw"}})});
    b.read("I", {N, G * CI, IH, IW}, BufferKind::input,
           {b.affine({{"n"}}), b.affine({{"g", CI}, {"ci"}}), b.affine({{"oh", SH}, {"kh", DH}}, -PH), b.affine({{"ow", SW}, {"kw", DW}}, -PW)},
           PH > 0 || PW > 0);
    b.combine(Combine::sum, "(* W I)");
    return b.done();
}

Statement linear(const Term& t, Numbers v) {
    Builder b(t);
    b.axis("n", v[0]), b.axis("co", v[1]), b.reduce("ci", v[2]);
    b.write({v[0], v[1]}, {b.affine({{"n"}}), b.affine({{"co"}})});
    b.read("W", {v[1], v[2]}, BufferKind::weight, {b.affine({{"co"}}), b.affine({{"ci"}})});
    b.read("I", {v[0], v[2]}, BufferKind::input, {b.affine({{"n"}}), b.affine({{"ci"}})});
    b.combine(Combine::sum, "(* W I)");
    return b.done();
}

Statement matmul(const Term& t, Numbers v) {
    auto B = v[0], M = v[1], N = v[2], K = v[3];
    Builder b(t);
    b.axis("b", B), b.axis("i", M), b.axis("j", N), b.reduce("k", K);
    b.write({B, M, N}, {b.affine({{"b"}}), b.affine({{"i"}}), b.affine({{"j"}})});
    b.read("I", {B, M, K}, BufferKind::input, {b.affine({{"b"}}), b.affine({{"i"}}), b.affine({{"k"}})});
    b.read("J", {B, K, N}, BufferKind::input, {b.affine({{"b"}}), b.affine({{"k"}}), b.affine({{"j"}})});
    b.combine(Combine::sum, "(* I J)");
    return b.done();
}

Statement pool(const Term& t, Numbers v) {
    auto N = v[0], C = v[1], IH = v[2], IW = v[3], KH = v[4], KW = v[5], SH = v[6], SW = v[7], PH = v[8], PW = v[9];
    const std::string& op = t.op().text();
    const bool uneven = v.size() > 10, inside = op == "avg_pool_inside" || op == "avg_pool_inside_uneven";
    auto EH = uneven ? v[10] : PH, EW = uneven ? v[11] : PW;
    auto OH = out_extent(IH, KH, SH, PH, 1, EH), OW = out_extent(IW, KW, SW, PW, 1, EW);
    Builder b(t);
    b.axis("n", N), b.axis("c", C), b.axis("oh", OH), b.axis("ow", OW), b.reduce("kh", KH), b.reduce("kw", KW);
    b.write({N, C, OH, OW}, {b.affine({{"n"}}), b.affine({{"c"}}), b.affine({{"oh"}}), b.affine({{"ow"}})});
    b.read("I", {N, C, IH, IW}, BufferKind::input,
           {b.affine({{"n"}}), b.affine({{"c"}}), b.affine({{"oh", SH}, {"kh"}}, -PH), b.affine({{"ow", SW}, {"kw"}}, -PW)},
           PH > 0 || PW > 0 || EH > 0 || EW > 0);
    if (op.starts_with("max_pool"))
        b.combine(Combine::max, "I");
    else if (!inside)
        b.combine(Combine::sum, "I", "(/ acc " + std::to_string(KH * KW) + ")");
    else
        b.finish_read("C", {OH, OW}, BufferKind::weight, {2, 3}), b.combine(Combine::sum, "I", "(/ acc C)");
    return b.done();
}

Statement row_reduction(const Term& t, Numbers v) {
    const std::string& op = t.op().text();
    auto R = v[0], C = v[1], S = v[2];
    Builder b(t);
    b.axis("r", R), b.axis("s", S), b.reduce("k", C);
    b.write({R, S}, {b.affine({{"r"}}), b.affine({{"s"}})});
    b.read("I", {R, C, S}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"k"}}), b.affine({{"s"}})});
    if (op == "row_exp_sum" || op == "row_square") b.read("J", {R, S}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"s"}})});
    std::string mean = "(/ acc " + std::to_string(C) + ")";
    if (op == "row_sum") b.combine(Combine::sum, "I");
    if (op == "row_mean") b.combine(Combine::sum, "I", mean);
    if (op == "row_max") b.combine(Combine::max, "I");
    if (op == "row_exp_sum") b.combine(Combine::sum, "(exp (- I J))");
    if (op == "row_square") b.combine(Combine::sum, "(* (- I J) (- I J))", mean);
    return b.done();
}

Statement row_softmax(const Term& t, Numbers v) {
    auto R = v[0], C = v[1], S = v[2];
    Builder b(t);
    b.axis("r", R), b.axis("x", C), b.axis("s", S);
    b.write({R, C, S}, {b.affine({{"r"}}), b.affine({{"x"}}), b.affine({{"s"}})});
    b.read("I", {R, C, S}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"x"}}), b.affine({{"s"}})});
    b.read("J", {R, S}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"s"}})});
    b.read("K", {R, S}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"s"}})});
    b.combine(Combine::assign, "(/ (exp (- I J)) K)");
    return b.done();
}

// A function of each element and of a number of its row.
Statement by_row(const Term& t, Numbers v) {
    const std::string& op = t.op().text();
    Builder b(t);
    b.axis("r", v[0]), b.axis("x", v[1]);
    b.write({v[0], v[1]}, {b.affine({{"r"}}), b.affine({{"x"}})});
    b.read("I", {v[0], v[1]}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"x"}})});
    if (op != "wide_exp") b.read("J", {v[0]}, BufferKind::input, {b.affine({{"r"}})});
    b.combine(Combine::assign, op == "wide_exp" ? "(exp I)" : op == "row_exp" ? "(exp (- I J))" : "(/ I J)");
    return b.done();
}

Statement row_norm(const Term& t, Numbers v) {
    Builder b(t);
    b.axis("r", v[0]), b.axis("x", v[1]);
    b.write({v[0], v[1]}, {b.affine({{"r"}}), b.affine({{"x"}})});
    b.read("I", {v[0], v[1]}, BufferKind::input, {b.affine({{"r"}}), b.affine({{"x"}})});
    b.read("J", {v[0]}, BufferKind::input, {b.affine({{"r"}})});
    b.read("K", {v[0]}, BufferKind::input, {b.affine({{"r"}})});
    b.read("A", {v[1]}, BufferKind::weight, {b.affine({{"x"}})});
    b.read("B", {v[1]}, BufferKind::weight, {b.affine({{"x"}})});
    b.combine(Combine::assign, "(+ (* (/ (- I J) (sqrt (+ K " + t[2].op().text() + "))) A) B)");
    return b.done();
}

Statement elementwise(const Term& t, Numbers v) {
    Builder b(t);
    const std::string& f = t[0].op().text();
    b.axis("x", v[1]);
    b.write({v[1]}, {b.affine({{"x"}})});
    b.read("I", {v[1]}, BufferKind::input, {b.affine({{"x"}})});
    if (t.op().text() == "zip") b.read("J", {v[1]}, BufferKind::input, {b.affine({{"x"}})});
    std::string value = "(" + f + (t.op().text() == "zip" ? " I J" : " I");
    for (const Term& parameter : t[0].children()) value += " " + to_string(parameter);  // (leaky_relu 0.1)
    b.combine(Combine::assign, value + ")");
    std::vector<double> probe(2 + t[0].size(), 0.0);
    apply_scalar(f, probe);  // throws for a function that does not exist
    return b.done();
}

Statement scale(const Term& t, Numbers v) {
    Builder b(t);
    b.axis("x", v[1]);
    b.write({v[1]}, {b.affine({{"x"}})});
    b.read("I", {v[1]}, BufferKind::input, {b.affine({{"x"}})});
    b.combine(Combine::assign, "(* I " + t[0].op().text() + ")");
    return b.done();
}

Statement stretch(const Term& t, Numbers v) {
    static constexpr std::array<std::string_view, 4> names{"x0", "x1", "x2", "x3"};
    Builder b(t);
    for (std::size_t d = 0; d < 4; ++d) b.axis(std::string(names[d]), v[d + 1]);
    auto walk = [&](std::int64_t mask, Shape& shape) {
        std::vector<Affine> index;
        for (std::size_t d = 0; d < 4; ++d) {
            bool has = mask >> d & 1;
            shape.push_back(has ? v[d + 1] : 1);
            index.push_back(has ? b.affine({{names[d]}}) : b.affine({}));
        }
        return index;
    };
    Shape out, left, right;
    auto o = walk(15, out), i = walk(v[5], left), j = walk(v[6], right);
    b.write(out, o);
    b.read("I", left, BufferKind::input, i);
    b.read("J", right, BufferKind::input, j);
    b.combine(Combine::assign, "(" + t[0].op().text() + " I J)");
    return b.done();
}

Statement move(const Term& t, Numbers v) {
    Builder b(t);
    for (const char* name : {"x0", "x1", "x2", "x3"}) b.axis(name, v[b.axes()]);
    const Shape shape(v.begin(), v.end());
    const std::vector<Affine> index{b.affine({{"x0"}}), b.affine({{"x1"}}), b.affine({{"x2"}}), b.affine({{"x3"}})};
    b.write(shape, index);
    b.read("I", shape, BufferKind::input, index);
    b.combine(Combine::assign, "I");
    return b.done();
}

Statement channel_scale(const Term& t, Numbers v) {
    Builder b(t);
    b.axis("n", v[0]), b.axis("c", v[1]), b.axis("x", v[2]);
    b.write({v[0], v[1], v[2]}, {b.affine({{"n"}}), b.affine({{"c"}}), b.affine({{"x"}})});
    b.read("I", {v[0], v[1], v[2]}, BufferKind::input, {b.affine({{"n"}}), b.affine({{"c"}}), b.affine({{"x"}})});
    b.read("A", {v[1]}, BufferKind::weight, {b.affine({{"c"}})});
    b.read("B", {v[1]}, BufferKind::weight, {b.affine({{"c"}})});
    b.combine(Combine::assign, "(+ (* I A) B)");
    return b.done();
}

// Child `i` of a statement, as a matrix. Its rows or its columns are outputs of the statement's tiles, `what` in words.
RationalMatrix matrix_of(const Term& t, std::size_t i, const char* what) {
    const auto matrix = rational_matrix(t[i].op().text());
    if (!matrix || t[i].size() != 0)
        throw UserError("the matrix for the " + std::string(what) + " of " + to_string(t) + " is none: expected rows of numbers, as in [1,0,-1|0,1/2,1]");
    return *matrix;
}

// Tiles of an image overlap by what the taps beyond the first read.
Statement bilinear_input(const Term& t, Numbers v) {
    const RationalMatrix down = matrix_of(t, 0, "columns"), along = matrix_of(t, 1, "rows");
    auto MH = v[2], MW = v[3], N = v[4], C = v[5], IH = v[6], IW = v[7], PH = v[8], PW = v[9];
    auto U = down.rows(), V = along.rows(), AH = down.columns(), AW = along.columns(), RH = AH - MH + 1, RW = AW - MW + 1;
    if (RH < 1 || RW < 1) throw UserError("a tile of " + to_string(t) + " has more outputs than inputs");
    auto TH = (out_extent(IH, RH, 1, PH, 1, PH) + MH - 1) / MH, TW = (out_extent(IW, RW, 1, PW, 1, PW) + MW - 1) / MW;
    Builder b(t);
    b.axis("n", N), b.axis("c", C), b.axis("th", TH), b.axis("tw", TW), b.axis("u", U), b.axis("v", V), b.reduce("kh", AH), b.reduce("kw", AW);
    b.write({N, U * V * C, TH, TW}, {b.affine({{"n"}}), b.affine({{"u", V * C}, {"v", C}, {"c"}}), b.affine({{"th"}}), b.affine({{"tw"}})});
    b.read("I", {N, C, IH, IW}, BufferKind::input,
           {b.affine({{"n"}}), b.affine({{"c"}}), b.affine({{"th", MH}, {"kh"}}, -PH), b.affine({{"tw", MW}, {"kw"}}, -PW)},
           PH > 0 || PW > 0 || TH * MH + RH - 1 > IH || TW * MW + RW - 1 > IW);
    b.coefficient("T", "u", "kh", down.values()), b.coefficient("S", "v", "kw", along.values());
    b.combine(Combine::sum, "(* (* T S) I)");
    return b.done();
}

Statement bilinear_output(const Term& t, Numbers v) {
    const RationalMatrix down = matrix_of(t, 0, "columns"), along = matrix_of(t, 1, "rows");
    auto N = v[2], C = v[3], OH = v[4], OW = v[5], MH = down.rows(), MW = along.rows(), U = down.columns(), V = along.columns();
    auto TH = (OH + MH - 1) / MH, TW = (OW + MW - 1) / MW;
    Builder b(t);
    b.axis("n", N), b.axis("c", C), b.axis("th", TH), b.axis("tw", TW), b.axis("i", MH), b.axis("j", MW), b.reduce("kh", U), b.reduce("kw", V);
    b.write({N, C, OH, OW}, {b.affine({{"n"}}), b.affine({{"c"}}), b.affine({{"th", MH}, {"i"}}), b.affine({{"tw", MW}, {"j"}})});
    if (TH * MH > OH || TW * MW > OW) b.drop_outside_writes();
    b.read("I", {N, U * V * C, TH, TW}, BufferKind::input,
           {b.affine({{"n"}}), b.affine({{"kh", V * C}, {"kw", C}, {"c"}}), b.affine({{"th"}}), b.affine({{"tw"}})});
    b.coefficient("T", "i", "kh", down.values()), b.coefficient("S", "j", "kw", along.values());
    b.combine(Combine::sum, "(* (* T S) I)");
    return b.done();
}

Statement recurrence(const Term& t, Numbers v) {
    Builder b(t);
    b.axis("t", v[0], AxisRole::sequential), b.axis("y", v[1], AxisRole::sequential);
    b.write({v[0] + 1, v[1] + 1}, {b.affine({{"t"}}, 1), b.affine({{"y"}})});
    b.read("I", {v[0], v[1]}, BufferKind::input, {b.affine({{"t"}}), b.affine({{"y"}})});
    Statement s = b.done();
    s.reads.push_back({0, {s.write.index[0], s.write.index[1]}, false});
    s.reads.back().index[0].offset = 0;
    s.reads.back().index[1].offset = 1;
    s.value = parse_term("(+ O I)");
    return s;
}

struct Row {
    std::string_view op;
    std::string_view values;  // names of the children in order: a lower-case one is a word, "X?" may be 0, the others are >= 1
    Statement (*make)(const Term&, Numbers);
};

constexpr std::array<Row, 28> table{{
    {"conv2d", "N G CO CI IH IW KH KW SH SW PH? PW? DH DW", conv2d},
    {"linear", "N CO CI", linear},
    {"matmul", "B M N K", matmul},
    {"max_pool", "N C IH IW KH KW SH SW PH? PW?", pool},
    {"avg_pool", "N C IH IW KH KW SH SW PH? PW?", pool},
    {"avg_pool_inside", "N C IH IW KH KW SH SW PH? PW?", pool},
    {"max_pool_uneven", "N C IH IW KH KW SH SW PH? PW? EH? EW?", pool},
    {"avg_pool_uneven", "N C IH IW KH KW SH SW PH? PW? EH? EW?", pool},
    {"avg_pool_inside_uneven", "N C IH IW KH KW SH SW PH? PW? EH? EW?", pool},
    {"row_sum", "R C S", row_reduction},
    {"row_mean", "R C S", row_reduction},
    {"row_max", "R C S", row_reduction},
    {"row_exp_sum", "R C S", row_reduction},
    {"row_square", "R C S", row_reduction},
    {"row_softmax", "R C S", row_softmax},
    {"row_norm", "R C eps", row_norm},
    {"row_exp", "R C", by_row},
    {"row_divide", "R C", by_row},
    {"wide_exp", "R C", by_row},
    {"map", "function SIZE", elementwise},
    {"zip", "function SIZE", elementwise},
    {"stretch", "function D0 D1 D2 D3 MI? MJ?", stretch},
    {"move", "D0 D1 D2 D3", move},
    {"scale", "value SIZE", scale},
    {"channel_scale", "N C S", channel_scale},
    {"bilinear_input", "down along MH MW N C IH IW PH? PW?", bilinear_input},
    {"bilinear_output", "down along N C OH OW", bilinear_output},
    {"recurrence", "T Y", recurrence},
}};

// A row of the operators with loops (graph/loop_operators.hpp).
Statement loops(const Term& t, Numbers v) {
    LoopNest nest;
    try {
        nest = loop_nest(*find_loop_operator(t.op().text()), v);
    } catch (const NodeProblem& problem) {
        throw UserError(problem.message);
    }
    Builder b(t);
    for (const Axis& axis : nest.axes) {
        require((role_of(axis.name) == AxisRole::reduction) == axis.reduction, "the name of an axis says whether it is a reduction");
        b.axis(axis.name, axis.extent, axis.reduction ? AxisRole::reduction : AxisRole::parallel);
    }
    std::vector<Affine> written;
    for (std::size_t axis : nest.output) written.push_back(b.affine({{nest.axes[axis].name}}));
    b.write(nest.output_shape(), std::move(written));
    for (std::size_t i = 0; i < nest.reads.size(); ++i) {
        std::vector<Affine> index;
        for (const LoopIndex& d : nest.reads[i].index) index.push_back({d.coefficients, d.offset});
        b.read(i == 0 ? "I" : "J", nest.reads[i].shape, BufferKind::input, std::move(index), nest.reads[i].padded);
    }
    const Combine combine = nest.combine == LoopCombine::max ? Combine::max : nest.combine == LoopCombine::sum ? Combine::sum : Combine::assign;
    b.combine(combine, to_string(nest.value), to_string(nest.finish));
    return b.done();
}

struct NamedRow {
    std::string op, values;
    Statement (*make)(const Term&, Numbers);
};

const std::vector<NamedRow>& rows() {
    static const std::vector<NamedRow> all = [] {
        std::vector<NamedRow> made;
        for (const Row& row : table) made.push_back({std::string(row.op), std::string(row.values), row.make});
        for (const LoopOperator& op : loop_operators()) made.push_back({std::string(op.name), join(size_names(op), " "), loops});
        return made;
    }();
    return all;
}

// The children as numbers (0 for words). Throws UserError for the first child that is impossible.
std::vector<std::int64_t> values_of(const NamedRow& row, const Term& stmt) {
    std::vector<std::string> names = split(row.values, ' ');
    std::string form = "(" + row.op + " " + row.values + ")";
    if (stmt.size() != names.size()) throw UserError(form + " takes " + std::to_string(names.size()) + " values, got " + to_string(stmt));
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < names.size(); ++i) {
        bool word = names[i][0] >= 'a' && names[i][0] <= 'z';
        auto value = word ? std::optional<std::int64_t>(0) : stmt[i].integer();
        std::int64_t least = word || names[i].back() == '?' ? 0 : 1;
        if (!value || *value < least || *value > (std::int64_t{1} << 40))
            throw UserError("value " + std::to_string(i + 1) + " of " + form + " cannot be " + to_string(stmt[i]));
        values.push_back(*value);
    }
    return values;
}

}  // namespace

std::vector<StatementForm> statement_forms() {
    std::vector<StatementForm> forms;
    for (const NamedRow& row : rows()) {
        forms.push_back({row.op, {}});
        for (const std::string& name : split(row.values, ' ')) forms.back().words.push_back(name[0] >= 'a' && name[0] <= 'z');
    }
    return forms;
}

Term plain_statement(Term stmt) {
    while (is_wrapper(stmt)) stmt = stmt[stmt.size() - 1];
    return stmt;
}

Term with_size(const Term& stmt, std::string_view axis, Term size) {
    std::string name(axis);  // children are named in capitals
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    for (const NamedRow& row : rows()) {
        if (row.op != stmt.op().text()) continue;
        const std::vector<std::string> names = split(row.values, ' ');
        const auto at = std::find(names.begin(), names.end(), name);
        if (at == names.end()) return stmt;
        std::vector<Term> sizes(stmt.children().begin(), stmt.children().end());
        sizes.at(static_cast<std::size_t>(at - names.begin())) = std::move(size);
        return Term(stmt.op(), std::move(sizes));
    }
    return stmt;
}

Statement statement_of(const Term& stmt) {
    const std::string& op = stmt.op().text();
    if (is_wrapper(stmt)) {
        Statement inner = statement_of(stmt[stmt.size() - 1]);
        const auto wrap = op == "epilogue" ? with_finish : op == "layout" ? with_blocking : with_order;
        Statement outer = wrap(std::move(inner), stmt);
        outer.term = stmt;
        return outer;
    }
    for (const NamedRow& row : rows())
        if (row.op == op) return row.make(stmt, values_of(row, stmt));
    if (op == "blockwise") return blockwise_statement(stmt);
    std::vector<std::string> known{"blockwise", "epilogue", "layout", "order"};
    for (const NamedRow& row : rows()) known.emplace_back(row.op);
    throw UserError(Diagnostic{"unknown statement '" + op + "'", {}, did_you_mean(op, known)});
}

Statement statement_in(const Term& nest) { return statement_of(nest_parts(nest).statement); }

}  // namespace loopegg
