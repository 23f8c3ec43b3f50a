// Lowers what is computed block by block. Each part is a nest of its own, lowered with its own schedule; here are the loops over blocks around them, and the
// sums that go on from block to block.
#include "backends/lower/default_schedule.hpp"
#include "backends/lower/elementary.hpp"
#include "backends/lower/lower_loops.hpp"
#include "backends/lower/lower_nest.hpp"
#include "backends/lower/scalar.hpp"
#include "base/error.hpp"
#include "nest/term/blockwise.hpp"

namespace loopegg {
namespace {

using tv::Expr;
using tv::Fn;
using tv::Obj;

constexpr double lowest = -3.4028234663852886e38;  // a row's exponent before its first block: -inf minus -inf would be no number

tv::Buffer flat(const std::string& name, std::int64_t floats) { return tv::buffer(name, {floats}, 4 * floats <= max_stack_bytes ? "local" : "global"); }

class BlockwiseLowering {
public:
    BlockwiseLowering(const Term& nest, const Target& target) : b_(blockwise_of(nest_parts(nest).statement)), statement_(statement_in(nest)), target_(target) {}

    LoweredNest run(const std::string& name) {
        LoweredNest result;
        for (const Buffer& buffer : statement_.buffers) {
            const std::int64_t floats = element_count(buffer.shape);
            result.parameters.push_back({buffer.name, buffer.kind, buffer.shape, {}, floats, {}});
            parameters_.push_back(tv::buffer(buffer.name, {floats}, "global"));
        }
        const std::int64_t row_blocks = (b_.rows + b_.row_block - 1) / b_.row_block, turns = b_.matrices * row_blocks;
        const tv::Variable turn = tv::variable("block");
        const Expr at = turns > 1 ? turn.expr() : Expr(0);
        matrix_ = floor_div(at, row_blocks), row_ = floor_mod(at, row_blocks);
        const Obj body = block_of_rows();
        result.function = tv::primitive(name, parameters_, turns > 1 ? tv::loop(turn, turns, tv::LoopKind::parallel, body) : body);
        result.turns = turns > 1 ? turns : 0;
        return result;
    }

private:
    struct Sums {
        tv::Buffer all, block;
        std::int64_t width = 1;  // floats of a row
    };

    Obj block_of_rows() {
        std::vector<Obj> code;
        const auto storage = [&](const std::string& name, std::int64_t floats) {
            tv::Buffer made = flat(name, floats);
            code.push_back(tv::allocate(made, 4 * floats <= max_stack_bytes));
            return made;
        };
        block_ = storage("block_values", b_.row_block * b_.column_block);
        for (std::size_t p = 0; p < b_.parts.size(); ++p) {
            if (b_.parts[p].kind != BlockPart::Kind::sum) continue;
            const std::int64_t floats = element_count(b_.parts[p].statement.buffers[0].shape);
            const std::string number = std::to_string(p);
            sums_[p] = {storage("sum" + number, floats), storage("block_sum" + number, floats), floats / b_.row_block};
        }
        if (b_.wide)
            exponent_ = storage("exponent", b_.row_block), block_exponent_ = storage("block_exponent", b_.row_block), factor_ = storage("factor", b_.row_block);
        const std::int64_t left = b_.rows % b_.row_block;
        const Obj all = rows_of_block(b_);
        code.push_back(left == 0 ? all : tv::either(tv::less(row_, Expr(b_.rows / b_.row_block)), all, rows_of_block(arranged(left, b_.column_block))));
        return tv::sequence(code);
    }

    // A last block, whose parts have their default schedules.
    Blockwise arranged(std::int64_t rows, std::int64_t columns) const {
        Blockwise last = last_block(b_, rows, columns);
        for (BlockPart& p : last.parts) p.nest = arrange_for_one_core(p.nest, target_);
        return last;
    }

    Obj rows_of_block(const Blockwise& b) {
        std::vector<Obj> code;
        for (const auto& [p, sums] : sums_) code.push_back(fill(sums.all, b.row_block * sums.width, 0));
        if (b.wide) code.push_back(fill(exponent_, b.row_block, lowest));
        const std::int64_t blocks = b.columns / b.column_block, left = b.columns % b.column_block;
        const tv::Variable column = tv::variable("column_block");
        column_ = blocks > 1 ? column.expr() : Expr(0);
        const Obj body = block_of_columns(b);
        code.push_back(blocks > 1 ? tv::loop(column, blocks, tv::LoopKind::serial, body) : body);
        column_ = Expr(blocks);
        if (left > 0) code.push_back(block_of_columns(arranged(b.row_block, left)));
        for (const BlockPart& p : b.parts)
            if (p.kind == BlockPart::Kind::finish) code.push_back(part(b, p));
        return tv::sequence(code);
    }

    Obj block_of_columns(const Blockwise& b) {
        std::vector<Obj> code;
        for (std::size_t p = 0; p < b.parts.size(); ++p) {
            const BlockPart& of = b.parts[p];
            if (of.kind == BlockPart::Kind::finish) continue;
            if (of.wide()) code.push_back(next_exponents(b));
            code.push_back(of.wide() ? wide_numbers(b, of) : part(b, of));
            if (of.kind == BlockPart::Kind::sum) code.push_back(add_up(b, sums_.at(p)));
        }
        return tv::sequence(code);
    }

    // Where a part writes to, and what it reads.
    std::vector<OperandView> views_of(const Blockwise& b, const BlockPart& p) const {
        std::vector<OperandView> views;
        for (std::size_t i = 0; i < p.views.size(); ++i) {
            const BlockView& v = p.views[i];
            const auto number = static_cast<std::size_t>(&p - b.parts.data());
            const std::size_t from = i == 0 ? number : static_cast<std::size_t>(std::max(v.part, 0));
            const bool whole = v.part < 0 && (i > 0 || p.kind == BlockPart::Kind::finish);
            if (whole) {
                const Expr shared = v.share > 1 ? floor_div(matrix_, v.share) : matrix_, matrix = v.period > 0 ? floor_mod(shared, v.period) : shared;
                const Expr begin = matrix * Expr(v.matrix) + row_ * Expr(v.row) + (v.column ? column_ * Expr(v.column) : Expr(0));
                views.push_back({parameters_[static_cast<std::size_t>(v.buffer)], begin, v.strides});
            } else if (b.parts[from].kind == BlockPart::Kind::sum) {
                views.push_back({i == 0 ? sums_.at(from).block : sums_.at(from).all, 0, v.strides});
            } else {
                views.push_back({block_, 0, v.strides});
            }
        }
        return views;
    }

    Obj part(const Blockwise& b, const BlockPart& p) const {
        std::vector<OperandView> views = views_of(b, p);
        for (std::size_t i = 0; i < views.size(); ++i)
            if (views[i].strides.empty()) views[i].strides = {1};
        return nest_code(p.nest, target_, views);
    }

    // The largest exponent of each row so far, and by how much the sums so far shrink because of it.
    Obj next_exponents(const Blockwise& b) const {
        const std::int64_t columns = b.column_block, one = 1;
        const Statement rows = statement_of(Term("row_max", {Term(b.row_block), Term(columns), Term(one)}));
        const Term largest = arrange_for_one_core(nest_of(rows), target_);
        const std::vector<OperandView> views{{block_exponent_, 0, {1, 1}}, {block_, 0, {columns, 1, 1}}};
        const Obj next = over(b.row_block, [&](const Expr& r) {
            const Expr before = exponent_.load({r}), most = larger(before, block_exponent_.load({r}));
            return tv::sequence({factor_.store(exponential(tv::binary(Fn::sub, before, most)), {r}), exponent_.store(most, {r})});
        });
        return tv::sequence({nest_code(largest, target_, views), next});
    }

    // exp(x) as a wide number is exp(x - exponent).
    Obj wide_numbers(const Blockwise& b, const BlockPart& p) const {
        const NestParts of = nest_parts(p.nest);
        const Term nest("nest", {Term("row_exp", {of.statement[0], of.statement[1]}), of.schedule});
        const OperandView values{block_, 0, {b.column_block, 1}};
        return nest_code(nest, target_, {values, values, {exponent_, 0, {1}}});
    }

    Obj add_up(const Blockwise& b, const Sums& of) const {
        const auto element = [&](const Expr& r, const Expr& x) {
            const std::vector<Expr> at{r * Expr(of.width) + x};
            const Expr before = b.wide ? tv::binary(Fn::mul, of.all.load(at), factor_.load({r})) : of.all.load(at);
            return of.all.store(tv::binary(Fn::add, before, of.block.load(at)), at);
        };
        if (of.width == 1) return over(b.row_block, [&](const Expr& r) { return element(r, 0); });
        const tv::Variable row = tv::variable("r");
        return tv::loop(row, b.row_block, tv::LoopKind::serial, over(of.width, [&](const Expr& x) { return element(row.expr(), x); }));
    }

    Obj fill(const tv::Buffer& buffer, std::int64_t floats, double value) const {
        return over(floats, [&](const Expr& i) { return buffer.store(tv::float_value(value), {i}); });
    }

    // A loop, in vectors where these fill it.
    template <class F>
    Obj over(std::int64_t extent, const F& body) const {
        const std::int64_t lanes = target_.machine.lanes;
        const tv::Variable i = tv::variable("i");
        if (extent == 1) return body(Expr(0));
        if (extent % lanes != 0) return tv::loop(i, extent, tv::LoopKind::serial, body(i.expr()));
        const tv::Variable lane = tv::variable("lane");
        const Obj vector = tv::loop(lane, lanes, tv::LoopKind::vectorized, body(i.expr() * Expr(lanes) + lane.expr()));
        return tv::loop(i, extent / lanes, tv::LoopKind::serial, vector);
    }

    const Blockwise b_;
    const Statement statement_;
    const Target& target_;
    std::vector<tv::Buffer> parameters_;
    Expr matrix_, row_, column_;
    tv::Buffer block_, exponent_, block_exponent_, factor_;
    std::map<std::size_t, Sums> sums_;  // by part
};

}  // namespace

LoweredNest lower_blockwise(const Term& nest, const Target& target, const std::string& name) {
    if (target.gpu()) throw UserError("what is computed block by block runs on CPUs alone");
    return BlockwiseLowering(nest, target).run(name);
}

}  // namespace loopegg
