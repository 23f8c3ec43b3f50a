#include "nest/term/blockwise.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/term/statement_kinds.hpp"
#include "nest/term/wrapped_statement.hpp"

namespace loopegg {
namespace {

constexpr std::array<const char*, 6> operand_names{"I", "J", "K", "L", "M", "N"};

[[noreturn]] void malformed(const Term& of, const char* expected) {
    throw UserError(fmt::format("'{}' is not computed in blocks: expected {}", to_string(of), expected));
}

// The same statement with other numbers, inside all that is around it.
Term with_numbers(const Term& stmt, const std::vector<std::int64_t>& numbers) {
    if (is_wrapper(stmt)) {
        std::vector<Term> children(stmt.children().begin(), stmt.children().end());
        children.back() = with_numbers(children.back(), numbers);
        return Term(stmt.op(), std::move(children));
    }
    std::vector<Term> children;
    for (std::int64_t n : numbers) children.emplace_back(n);
    return Term(stmt.op(), std::move(children));
}

std::vector<std::int64_t> numbers_of(const Term& stmt) {
    std::vector<std::int64_t> all;
    for (const Term& child : plain_statement(stmt).children()) all.push_back(child.integer().value_or(0));
    return all;
}

bool is_product(const Term& stmt) { return plain_statement(stmt).op().text() == "matmul"; }
bool is_row_sum(const Term& stmt) { return stmt.is("row_sum", 3) && stmt[2].integer() == 1; }

std::vector<std::int64_t> row_major(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
    return strides;
}

struct BlockSizes {
    std::int64_t matrices, rows, columns, row_block, column_block;
};

// Neighbouring dimensions of a function of pairs, and the floats from one of their elements to the next in the other operand; 0 where that lacks them.
struct PairedDimensions {
    std::int64_t extent, stride;
};
using DimensionsByLevel = std::array<std::vector<PairedDimensions>, 3>;  // of columns, of rows, of matrices, each from the innermost

// The dimensions of a function of pairs, cut where a row and where a matrix begins. None where there is no such cut.
std::optional<DimensionsByLevel> cut_dimensions(const Statement& s, const BlockSizes& of) {
    const Shape &out = s.buffers[0].shape, &other = s.buffers[2].shape;
    const std::vector<std::int64_t> strides = row_major(other);
    const std::array<std::int64_t, 3> room{of.columns, of.rows, of.matrices};
    DimensionsByLevel cut;
    std::size_t level = 0;
    std::int64_t used = 1;
    for (std::size_t d = out.size(); d-- > 0;) {
        std::int64_t left = out[d], stride = other[d] == 1 ? 0 : strides[d];
        while (left > 1) {
            while (level < 2 && used == room[level]) ++level, used = 1;
            const std::int64_t taken = std::min(left, room[level] / used);
            if (taken < 2 || left % taken != 0 || room[level] % (used * taken) != 0) return {};
            std::vector<PairedDimensions>& to = cut[level];
            if (!to.empty() && stride == to.back().stride * to.back().extent)
                to.back().extent *= taken;
            else
                to.push_back({taken, stride});
            left /= taken, stride *= taken, used *= taken;
        }
    }
    return cut;
}

// Where a block of a function of pairs reads its other operand. None where its rows, or its columns, are not all at the same distance.
std::optional<BlockView> other_operand(const Term& whole, const BlockSizes& of) {
    if (!works_by_pair(whole)) return {};
    const Statement s = statement_of(whole);
    if (s.instances() != of.matrices * of.rows * of.columns) return {};
    auto cut = cut_dimensions(s, of);
    if (!cut || (*cut)[0].size() > 1 || (*cut)[1].size() > 1) return {};
    const auto stride = [&](std::size_t level) { return (*cut)[level].empty() ? 0 : (*cut)[level][0].stride; };
    BlockView view{-1, 0, {stride(1), stride(0), 0, 0}, 0, stride(1) * of.row_block, stride(0) * of.column_block, element_count(s.buffers[2].shape)};
    std::vector<PairedDimensions>& matrices = (*cut)[2];
    if (!matrices.empty() && matrices[0].stride == 0) view.share = matrices[0].extent, matrices.erase(matrices.begin());
    if (!matrices.empty()) view.matrix = matrices[0].stride;
    if (matrices.size() > 1) view.period = matrices[0].extent;
    return matrices.size() < 2 || (matrices.size() == 2 && matrices[1].stride == 0) ? std::optional(view) : std::nullopt;
}

// The statement of one block of a function of pairs.
Term block_pair(const Term& whole, const BlockView& other, std::int64_t rows, std::int64_t columns) {
    const std::int64_t read = 12 + (other.strides[0] != 0 ? 1 : 0) + (other.strides[1] != 0 ? 2 : 0), one = 1, all = 15;
    return Term("stretch", {whole[0], Term(rows), Term(columns), Term(one), Term(one), Term(all), Term(read)});
}

// The statement of a part, of whole matrices or of a block, as that of a block of this size.
Term block_statement(BlockPart::Kind kind, const Term& stmt, std::int64_t rows, std::int64_t columns) {
    const std::vector<std::int64_t> n = numbers_of(stmt);
    if (kind == BlockPart::Kind::product) return with_numbers(stmt, {1, rows, columns, n[3]});
    if (kind == BlockPart::Kind::finish) return with_numbers(stmt, {rows, n[1]});
    if (kind == BlockPart::Kind::sum && is_product(stmt)) return with_numbers(stmt, {1, rows, n[2], columns});
    if (kind == BlockPart::Kind::sum) return with_numbers(stmt, {rows, columns, 1});
    if (stmt.is("wide_exp", 2)) return with_numbers(stmt, {rows, columns});
    if (!stmt.is("stretch", 7)) return Term(stmt.op(), {stmt[0], Term(rows * columns)});
    return Term("stretch", {stmt[0], Term(rows), Term(columns), stmt[3], stmt[4], stmt[5], stmt[6]});
}

// Reads the parts of a blockwise statement, and where they meet.
class Reader {
public:
    explicit Reader(const Term& stmt) : stmt_(stmt) {
        if (!is_blockwise(stmt)) malformed(stmt, "(blockwise B M N VALUE)");
        b_.matrices = whole(0), b_.rows = whole(1), b_.columns = whole(2);
    }

    Blockwise read() {
        const Term& value = stmt_[3];
        if (!value.is("then", 2) || !value[0].is("sums", 3)) malformed(value, "(then (sums CHAIN SUM SUM) NEST)");
        chain(value[0][0]);
        const int before = last();
        b_.wide = b_.parts.back().wide();
        for (std::size_t i = 1; i < 3; ++i) sum(value[0][i], before);
        finish(value[1]);
        return std::move(b_);
    }

private:
    std::int64_t whole(std::size_t child) const {
        const auto n = stmt_[child].integer();
        if (!n || *n < 1 || *n > (std::int64_t{1} << 40)) malformed(stmt_, "B, M and N to be numbers from 1 on");
        return *n;
    }
    int last() const { return static_cast<int>(b_.parts.size()) - 1; }

    BlockPart& part(BlockPart::Kind kind, const Term& nest) {
        const NestParts of = nest_parts(nest);
        if (!of.restore.empty()) malformed(nest, "a nest that computes all of its outputs");
        b_.parts.push_back({kind, nest, statement_of(of.statement), {}});
        const Statement& s = b_.parts.back().statement;
        if (!s.finish_reads.empty()) malformed(of.statement, "a statement that adds no other operand");
        for (const Buffer& buffer : s.buffers) b_.parts.back().views.push_back({last(), 0, row_major(buffer.shape)});
        return b_.parts.back();
    }
    void reads(BlockPart& of, const char* name, int from) {
        const int at = of.statement.buffer(name);
        require(at > 0, "a part reads what the part before it wrote");
        of.views[static_cast<std::size_t>(at)].part = from;
    }
    // A buffer of the whole, whose elements are those of `outer`: the same statement over whole matrices.
    void outside(BlockPart& of, const char* name, const Term& outer, const char* column_axis) {
        const Statement s = statement_of(outer);
        const int at = of.statement.buffer(name);
        require(at > 0, "an operand of a product");
        const std::vector<std::int64_t> strides = row_major(s.buffers[static_cast<std::size_t>(at)].shape);
        BlockView& view = of.views[static_cast<std::size_t>(at)];
        view = {-1, ++buffers_, strides, 0, 0, 0, element_count(s.buffers[static_cast<std::size_t>(at)].shape)};
        for (const Access& a : s.reads)
            for (std::size_t d = 0; a.buffer == at && d < a.index.size(); ++d) {
                const auto moved = [&](const char* axis) { return a.index[d].coefficients[static_cast<std::size_t>(s.axis(axis))] * strides[d]; };
                view.matrix += moved("b"), view.row += moved("i") * b_.row_block, view.column += moved(column_axis) * b_.column_block;
            }
    }

    void chain(const Term& value) {
        if (value.is("columns", 2)) {
            const Term& stmt = nest_parts(value[1]).statement;
            const std::vector<std::int64_t> n = numbers_of(stmt);
            if (!is_product(stmt) || n[0] != 1 || value[0].integer() != n[2]) malformed(value, "(columns K NEST) with a product of one matrix with K columns");
            b_.row_block = n[1], b_.column_block = n[2];
            if (b_.rows < n[1] || b_.columns < n[2]) malformed(value, "blocks that are no larger than the whole");
            BlockPart& p = part(BlockPart::Kind::product, value[1]);
            const Term outer = with_numbers(stmt, {b_.matrices, b_.rows, b_.columns, n[3]});
            outside(p, "I", outer, "j"), outside(p, "J", outer, "j");
            return;
        }
        if (!value.is("then", 2)) malformed(value, "(columns K NEST) or (then CHAIN NEST)");
        chain(value[0]);
        if (b_.parts.back().wide()) malformed(value, "wide numbers that are summed up next");
        const int before = last();
        if (value[1].is("pair", 2)) return pair(value[1], before);
        BlockPart& p = part(BlockPart::Kind::map, value[1]);
        const bool fits = works_by_element(p.statement.term) && p.statement.instances() == b_.row_block * b_.column_block;
        const bool rows = !p.wide() || (p.statement.axes[0].extent == b_.row_block && p.statement.axes[1].extent == b_.column_block);
        if (!fits || !rows) malformed(value[1], "a function of each element of the block");
        reads(p, "I", before);
    }

    void pair(const Term& pair, int before) {
        const auto view = other_operand(pair[0], {b_.matrices, b_.rows, b_.columns, b_.row_block, b_.column_block});
        BlockPart& p = part(BlockPart::Kind::map, pair[1]);
        if (!view || p.statement.term != block_pair(pair[0], *view, b_.row_block, b_.column_block))
            malformed(pair, "(pair STMT NEST) with the statement of whole matrices, and the nest of one block of them");
        reads(p, "I", before);
        p.views[2] = *view;
        p.views[2].buffer = ++buffers_;
    }

    void sum(const Term& nest, int before) {
        const Term& stmt = nest_parts(nest).statement;
        const std::vector<std::int64_t> n = numbers_of(stmt);
        if (is_row_sum(stmt) ? n[0] != b_.row_block || n[1] != b_.column_block
                             : !is_product(stmt) || n[0] != 1 || n[1] != b_.row_block || n[3] != b_.column_block)
            malformed(nest, "a sum over the columns of the block");
        BlockPart& p = part(BlockPart::Kind::sum, nest);
        if (to_string(p.statement.finish) != "acc") malformed(nest, "a sum that nothing is done to");
        reads(p, "I", before);
        if (is_product(stmt)) outside(p, "J", with_numbers(stmt, {b_.matrices, b_.rows, n[2], b_.columns}), "k");
    }

    void finish(const Term& nest) {
        const int first = last() - 1, second = last();
        BlockPart& p = part(BlockPart::Kind::finish, nest);
        const Statement &s = p.statement, &numerator = b_.parts[static_cast<std::size_t>(first)].statement,
                        &denominator = b_.parts[static_cast<std::size_t>(second)].statement;
        const std::int64_t width = element_count(numerator.buffers[0].shape) / b_.row_block;
        const bool divides = s.term.is("row_divide", 2) && s.axes[0].extent == b_.row_block && s.axes[1].extent == width;
        if (!divides || element_count(denominator.buffers[0].shape) != b_.row_block) malformed(nest, "(row_divide R D) of the two sums");
        reads(p, "I", first), reads(p, "J", second);
        p.views[0] = {-1, 0, {width, 1}, b_.rows * width, b_.row_block * width, 0, b_.matrices * b_.rows * width};
    }

    const Term& stmt_;
    Blockwise b_;
    int buffers_ = 0;
};

Term block_nest(BlockPart::Kind kind, const Term& nest, const BlockSizes& of) {
    return nest_of(statement_of(block_statement(kind, nest_parts(nest).statement, of.row_block, of.column_block)));
}

std::optional<Term> block_chain(const Term& value, const BlockSizes& of) {
    if (value.is("columns", 2)) return Term("columns", {value[0], block_nest(BlockPart::Kind::product, value[1], of)});
    const auto inner = block_chain(value[0], of);
    const Term stmt = nest_parts(value[1]).statement;
    if (!inner) return {};
    if (works_by_element(stmt)) return Term("then", {*inner, block_nest(BlockPart::Kind::map, value[1], of)});
    const auto other = other_operand(stmt, of);
    if (!other) return {};
    return Term("then", {*inner, Term("pair", {stmt, nest_of(statement_of(block_pair(stmt, *other, of.row_block, of.column_block)))})});
}

std::optional<Term> block_sum(const Term& nest, const BlockSizes& of) {
    const Term& stmt = nest_parts(nest).statement;
    if (!is_row_sum(stmt) && !is_product(stmt)) return {};
    return block_nest(BlockPart::Kind::sum, nest, of);
}

Term with_nests_in(const Term& value, const std::vector<Term>& nests, std::size_t& next) {
    if (value.is("nest", 2)) return nests.at(next++);
    std::vector<Term> children;
    for (const Term& child : value.children()) children.push_back(with_nests_in(child, nests, next));
    return Term(value.op(), std::move(children));
}

}  // namespace

bool is_blockwise(const Term& stmt) { return stmt.is("blockwise", 4); }

Blockwise blockwise_of(const Term& stmt) { return Reader(stmt).read(); }

Statement blockwise_statement(const Term& stmt) {
    const Blockwise b = blockwise_of(stmt);
    const std::int64_t rows = b.matrices * b.rows, width = b.parts.back().statement.axes[1].extent;
    Statement s;
    s.term = stmt, s.finish = Term("acc"), s.value = Term("exp", {Term("I")});
    s.axes = {{"r", rows}, {"x", width}};
    s.buffers = {{"O", {rows, width}, BufferKind::output, {}}};
    s.write = {0, {{{1, 0}, 0}, {{0, 1}, 0}}, false};
    for (const BlockPart& p : b.parts)
        for (std::size_t i = 1; i < p.views.size(); ++i) {
            const BlockView& view = p.views[i];
            if (view.part >= 0) continue;
            if (view.buffer > static_cast<int>(operand_names.size())) malformed(stmt, "six operands at most");
            s.reads.push_back({view.buffer, {{{0, 0}, 0}}, false});
            s.buffers.push_back({operand_names.at(static_cast<std::size_t>(view.buffer) - 1), {view.elements}, BufferKind::input, {}});
        }
    return s;
}

std::optional<Term> blockwise_form(const Term& value, std::int64_t row_block) {
    if (!value.is("then", 2) || !value[0].is("sums", 3)) return {};
    Term leaf = value[0][0];
    while (leaf.is("then", 2)) leaf = leaf[0];
    if (!leaf.is("columns", 2) || !is_product(nest_parts(leaf[1]).statement)) return {};
    const std::vector<std::int64_t> n = numbers_of(nest_parts(leaf[1]).statement);
    const BlockSizes of{n[0], n[1], n[2], row_block, leaf[0].integer().value_or(0)};
    if (of.column_block < 1 || of.columns < of.column_block || row_block < 1 || of.rows < row_block) return {};
    const auto chain = block_chain(value[0][0], of), first = block_sum(value[0][1], of), second = block_sum(value[0][2], of);
    const Term& last = nest_parts(value[1]).statement;
    if (!chain || !first || !second || !last.is("row_divide", 2)) return {};
    const Term sums("sums", {*chain, *first, *second}), finish = block_nest(BlockPart::Kind::finish, value[1], of);
    const Term made("blockwise", {Term(of.matrices), Term(of.rows), Term(of.columns), Term("then", {sums, finish})});
    try {
        blockwise_of(made);
    } catch (const UserError&) {
        return {};
    }
    return made;
}

Blockwise last_block(const Blockwise& b, std::int64_t rows, std::int64_t columns) {
    Blockwise last = b;
    last.row_block = rows, last.column_block = columns;
    for (BlockPart& p : last.parts) {
        p.statement = statement_of(block_statement(p.kind, p.statement.term, rows, columns));
        p.nest = nest_of(p.statement);
        for (std::size_t i = 0; i < p.views.size(); ++i)
            if (p.views[i].part >= 0) p.views[i].strides = row_major(p.statement.buffers[i].shape);
    }
    return last;
}

Term with_part_nests(const Term& stmt, const std::vector<Term>& nests) {
    std::size_t next = 0;
    return Term("blockwise", {stmt[0], stmt[1], stmt[2], with_nests_in(stmt[3], nests, next)});
}

}  // namespace loopegg
