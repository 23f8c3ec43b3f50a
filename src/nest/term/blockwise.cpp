#include "nest/term/blockwise.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/term/wrapped_statement.hpp"

namespace loopegg {
namespace {

constexpr std::array<const char*, 3> operand_names{"I", "J", "K"};

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
        for (const Buffer& buffer : s.buffers) b_.parts.back().views.push_back({last(), 0, row_major(buffer.shape), 0, 0, 0});
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
        view = {-1, ++buffers_, strides, 0, 0, 0};
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
            if (b_.rows % n[1] != 0 || b_.columns % n[2] != 0) malformed(value, "blocks that divide the rows and the columns");
            BlockPart& p = part(BlockPart::Kind::product, value[1]);
            const Term outer = with_numbers(stmt, {b_.matrices, b_.rows, b_.columns, n[3]});
            outside(p, "I", outer, "j"), outside(p, "J", outer, "j");
            return;
        }
        if (!value.is("then", 2)) malformed(value, "(columns K NEST) or (then CHAIN NEST)");
        chain(value[0]);
        if (b_.parts.back().wide()) malformed(value, "wide numbers that are summed up next");
        const int before = last();
        BlockPart& p = part(BlockPart::Kind::map, value[1]);
        const bool fits = p.statement.instances() == b_.row_block * b_.column_block && p.statement.buffers.size() == 2 && p.statement.buffer("I") == 1;
        const bool rows = !p.wide() || (p.statement.axes[0].extent == b_.row_block && p.statement.axes[1].extent == b_.column_block);
        if (!fits || !rows || p.statement.combine != Combine::assign) malformed(value[1], "a function of each element of the block");
        reads(p, "I", before);
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
        p.views[0] = {-1, 0, {width, 1}, b_.rows * width, b_.row_block * width, 0};
    }

    const Term& stmt_;
    Blockwise b_;
    int buffers_ = 0;
};

// The nest of a whole VALUE as that of one block.
Term block_nest(const Term& nest, const std::vector<std::int64_t>& numbers) { return nest_of(statement_of(with_numbers(nest_parts(nest).statement, numbers))); }

struct Sizes {
    std::int64_t matrices, rows, columns, row_block, column_block;
};

std::optional<Term> block_chain(const Term& value, const Sizes& of) {
    if (value.is("columns", 2))
        return Term("columns", {value[0], block_nest(value[1], {1, of.row_block, of.column_block, numbers_of(nest_parts(value[1]).statement)[3]})});
    const auto inner = block_chain(value[0], of);
    const Term& stmt = nest_parts(value[1]).statement;
    if (!inner || !stmt.is("wide_exp", 2)) return {};
    return Term("then", {*inner, block_nest(value[1], {of.row_block, of.column_block})});
}

std::optional<Term> block_sum(const Term& nest, const Sizes& of) {
    const Term& stmt = nest_parts(nest).statement;
    if (is_row_sum(stmt)) return block_nest(nest, {of.row_block, of.column_block, 1});
    if (!is_product(stmt)) return {};
    return block_nest(nest, {1, of.row_block, numbers_of(stmt)[2], of.column_block});
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
            if (view.buffer > static_cast<int>(operand_names.size())) malformed(stmt, "three operands at most");
            const std::int64_t elements = b.matrices * view.matrix;
            s.reads.push_back({view.buffer, {{{0, 0}, 0}}, false});
            s.buffers.push_back({operand_names.at(static_cast<std::size_t>(view.buffer) - 1), {elements}, BufferKind::input, {}});
        }
    return s;
}

std::optional<Term> blockwise_form(const Term& value, std::int64_t row_block) {
    if (!value.is("then", 2) || !value[0].is("sums", 3)) return {};
    Term leaf = value[0][0];
    while (leaf.is("then", 2)) leaf = leaf[0];
    if (!leaf.is("columns", 2) || !is_product(nest_parts(leaf[1]).statement)) return {};
    const std::vector<std::int64_t> n = numbers_of(nest_parts(leaf[1]).statement);
    const Sizes of{n[0], n[1], n[2], row_block, leaf[0].integer().value_or(0)};
    if (of.column_block < 1 || of.columns % of.column_block != 0 || of.rows % row_block != 0) return {};
    const auto chain = block_chain(value[0][0], of), first = block_sum(value[0][1], of), second = block_sum(value[0][2], of);
    const Term& last = nest_parts(value[1]).statement;
    if (!chain || !first || !second || !last.is("row_divide", 2)) return {};
    const Term sums("sums", {*chain, *first, *second}), finish = block_nest(value[1], {row_block, last[1].integer().value_or(0)});
    const Term made("blockwise", {Term(of.matrices), Term(of.rows), Term(of.columns), Term("then", {sums, finish})});
    try {
        blockwise_of(made);
    } catch (const UserError&) {
        return {};
    }
    return made;
}

Term with_part_nests(const Term& stmt, const std::vector<Term>& nests) {
    std::size_t next = 0;
    return Term("blockwise", {stmt[0], stmt[1], stmt[2], with_nests_in(stmt[3], nests, next)});
}

}  // namespace loopegg
