// Sums of products of packed numbers in vectors: by an instruction that the target's file names, or for int8 numbers by plain arithmetic with the same result.
#include "backends/lower/lower_units.hpp"

#include "base/error.hpp"

namespace loopegg {

using tv::Expr;
using tv::Obj;

namespace {

constexpr std::int64_t max_vectors = 64, largest_product = 255 * 127, largest_sum = 0x7fffffff, flipped_signs = -0x7f7f7f80;

}  // namespace

std::optional<NestUnits::Tiles> NestUnits::fitting_vectors(Tiles t) const {
    const auto cuts = [&](const UnitForm& f) {
        return t.loops.rows->extent % f.rows == 0 && t.loops.columns->extent % f.columns == 0 && t.loops.depth->extent % f.words == 0;
    };
    const bool known_sides = !int8() || signed_bytes_ || input_moves_along_rows(t.loops);  // a vector of unsigned bytes is that of the rows
    t.form = {"", 1, t.loops.columns->extent, 1};
    for (const MatrixUnit& u : units_) {
        if (u.operands != packed_kind_ || (int8() && u.signed_bytes != signed_bytes_) || t.needs != 0) continue;
        const auto form = std::find_if(u.forms.begin(), u.forms.end(), [&](const UnitForm& f) { return cuts(f) && (f.rows == 1 || known_sides); });
        if (form != u.forms.end()) t.form = *form, t.needs = needs_of(u);
    }
    if ((!int8() && t.needs == 0) || t.sums * t.vector_rows() * t.vector_columns() > max_vectors) return {};
    if (int8()) require_small_sums();
    return t;
}

void NestUnits::require_small_sums() const {
    std::int64_t steps = 1;
    for (const Iterator& axis : s_.axes)
        if (axis.role == AxisRole::reduction) steps *= axis.extent;
    if (steps > largest_sum / largest_product) throw UserError("a sum of " + std::to_string(steps) + " products of int8 numbers may need more than 32 bits");
}

NestUnits::Spot NestUnits::vector_of_sums(std::int64_t tile, std::int64_t row, std::int64_t column) const {
    const Tiles& t = *tiles_;
    return {t.vectors, {(tile * t.vector_rows() + row) * t.vector_columns() + column, tv::run_of(0, t.lanes())}};
}

std::vector<Obj> NestUnits::clear_vectors() const {
    std::vector<Obj> all;
    for (std::int64_t tile = 0; tile < tiles_->sums; ++tile)
        for (std::int64_t row = 0; row < tiles_->vector_rows(); ++row)
            for (std::int64_t column = 0; column < tiles_->vector_columns(); ++column)
                all.push_back(vector_of_sums(tile, row, column).store(tv::spread(tv::float_value(0), tiles_->lanes())));
    return all;
}

// A word of one row in all lanes, or the words of several rows, row by row.
Expr NestUnits::row_words(std::int64_t row, std::int64_t step) {
    const UnitLoops& u = tiles_->loops;
    const UnitForm& f = tiles_->form;
    if (f.words > 1 && stride(u.operands[0], u.depth) != 1) throw UserError("the words of a row are no neighbours in memory");
    env_[static_cast<std::size_t>(u.depth->var)] = step;
    std::vector<Expr> rows;
    std::vector<std::int64_t> lanes;
    for (std::int64_t r = 0; r < f.rows; ++r) {
        env_[static_cast<std::size_t>(u.rows->var)] = row * f.rows + r;
        Spot at = word(*u.body, u.operands[0]);
        if (f.rows == 1 && f.words == 1) return tv::whole_lanes(tv::spread(at.load(), f.columns), f.columns);
        at.at.back() = tv::run_of(at.at.back(), f.words);
        rows.push_back(tv::whole_lanes(at.load(), f.words));
        for (std::int64_t w = 0; w < f.words; ++w) lanes.push_back(r * f.words + w);
    }
    return tv::chosen_lanes(rows, lanes);
}

// Words of neighbouring columns, column by column.
Expr NestUnits::column_words(std::int64_t column, std::int64_t step) {
    const UnitLoops& u = tiles_->loops;
    const UnitForm& f = tiles_->form;
    if (stride(u.operands[1], u.columns) != 1) throw UserError("the words of a vector are no neighbours in memory");
    env_[static_cast<std::size_t>(u.columns->var)] = column * f.columns;
    std::vector<Expr> steps;
    for (std::int64_t w = 0; w < f.words; ++w) {
        env_[static_cast<std::size_t>(u.depth->var)] = step + w;
        Spot along = word(*u.body, u.operands[1]);
        along.at.back() = tv::run_of(along.at.back(), f.columns);
        steps.push_back(tv::whole_lanes(along.load(), f.columns));
    }
    if (f.words == 1) return steps.front();
    std::vector<std::int64_t> lanes;
    for (std::int64_t c = 0; c < f.columns; ++c)
        for (std::int64_t w = 0; w < f.words; ++w) lanes.push_back(w * f.columns + c);
    return tv::chosen_lanes(steps, lanes);
}

// Four products of bytes and signed bytes for each word, without an instruction for them.
Expr NestUnits::plain_products(Expr sums, const Expr& bytes, const Expr& wholes) const {
    const std::int64_t lanes = tiles_->lanes();
    const auto all = [&](std::int64_t n) { return tv::spread(n, lanes); };
    const auto part = [&](const Expr& words, std::int64_t byte) {  // with its sign
        return tv::bitwise("prim.right_shift", tv::bitwise("prim.left_shift", words, all(24 - 8 * byte)), all(24));
    };
    for (std::int64_t byte = 0; byte < 4; ++byte) {
        const Expr input = signed_bytes_ ? part(bytes, byte) : tv::bitwise("prim.bitwise_and", tv::bitwise("prim.right_shift", bytes, all(8 * byte)), all(255));
        sums = tv::binary(tv::Fn::add, sums, tv::binary(tv::Fn::mul, input, part(wholes, byte)));
    }
    return sums;
}

Expr NestUnits::multiplied(const Expr& sums, const Expr& rows, const Expr& columns) const {
    const UnitForm& f = tiles_->form;
    const std::int64_t lanes = tiles_->lanes();
    if (!int8()) return tv::multiplied_lanes(f.intrinsic, tv::InWords::bf16, sums, {rows, columns}, lanes);
    const bool input_in_rows = input_moves_along_rows(tiles_->loops);
    Expr input = input_in_rows ? rows : columns;
    if (signed_bytes_) input = tv::bitwise("prim.bitwise_xor", input, tv::spread(flipped_signs, lanes));
    const Expr& weights = input_in_rows ? columns : rows;
    const Expr wholes = tv::whole_lanes(sums, lanes);
    const bool in_order = input_in_rows || f.rows == 1;  // rows first, where several of them make it matter
    const Expr products = f.intrinsic.empty() ? plain_products(wholes, input, weights)
                          : in_order          ? tv::multiplied_lanes(f.intrinsic, tv::InWords::bytes, wholes, {input, weights}, lanes)
                                              : tv::multiplied_lanes(f.intrinsic, tv::InWords::bytes, wholes, {weights, input}, lanes);
    return tv::float_lanes(products, lanes);
}

Obj NestUnits::multiply_vectors() {
    Scope keep(env_);
    const Tiles& t = *tiles_;
    const std::int64_t tile = number_of_sum();
    env_[static_cast<std::size_t>(t.loops.packed->var)] = 0;
    std::vector<Obj> all;
    for (std::int64_t step = 0; step < t.loops.depth->extent; step += t.form.words)
        for (std::int64_t column = 0; column < t.vector_columns(); ++column) {
            const Expr columns = column_words(column, step);
            for (std::int64_t row = 0; row < t.vector_rows(); ++row) {
                const Spot sums = vector_of_sums(tile, row, column);
                all.push_back(sums.store(multiplied(sums.load(), row_words(row, step), columns)));
            }
        }
    return tv::sequence(all);
}

template <class F>
void NestUnits::each_own_tile(F f) {
    Scope keep(env_);
    for (std::int64_t i = 0; i < tiles_->sums; ++i) {
        std::int64_t rest = i;
        for (std::size_t o = tiles_->own.size(); o-- > 0; rest /= tiles_->own[o]->extent)
            env_[static_cast<std::size_t>(tiles_->own[o]->var)] = rest % tiles_->own[o]->extent;
        f(i);
    }
}

// Whole sums become numbers: each is finished by what its output channel begins with, and multiplied by the channel's factor.
Expr NestUnits::finished_sums(const Spot& sums) {
    if (!int8()) return sums.load();
    const UnitLoops& u = tiles_->loops;
    const std::int64_t lanes = tiles_->form.columns;
    const OperandPlace& place = u.body->reads[u.operands[input_moves_along_rows(u) ? 1 : 0]];
    if (place.stage >= 0) throw UserError("int8 weights that a stage copies have no place for their scales");
    const bool by_lane = place.index[0].uses(u.columns->var);
    const Expr channel = expr(place.index[0]);
    const auto scale = [&](Int8Tail part) { return by_lane ? int8_scale(part, channel, lanes) : tv::spread(int8_scale(part, channel), lanes); };
    const Expr whole = tv::binary(tv::Fn::add, tv::whole_lanes(sums.load(), lanes), tv::whole_lanes(scale(Int8Tail::offsets), lanes));
    return tv::binary(tv::Fn::mul, tv::as_numbers(whole, lanes), scale(Int8Tail::factors));
}

Obj NestUnits::store_vectors(const Storage& sums) {
    const Tiles t = *tiles_;
    const UnitLoops& u = t.loops;
    std::vector<Obj> all;
    each_own_tile([&](std::int64_t tile) {
        if (t.in_registers())
            all.push_back(
                tv::machine_call("llvm.x86.tilestored64", {tv::narrow(tile), t.vectors.address({tile * t.vector_rows(), 0}), tv::wide(4 * t.form.columns)}));
        for (const TreeNode* loop : {u.depth, u.packed}) env_[static_cast<std::size_t>(loop->var)] = 0;
        for (std::int64_t row = 0; row < u.rows->extent; ++row)
            for (std::int64_t column = 0; column < t.vector_columns(); ++column) {
                env_[static_cast<std::size_t>(u.rows->var)] = row, env_[static_cast<std::size_t>(u.columns->var)] = column * t.form.columns;
                Spot piece = vector_of_sums(tile, row / t.form.rows, column);
                piece.at.back() = tv::run_of(row % t.form.rows * t.form.columns, t.form.columns);
                std::vector<Expr> at = placed(sums, u.body->write.index);
                at.back() = tv::run_of(at.back(), t.form.columns);
                all.push_back(sums.buffer.store(finished_sums(piece), at));
            }
    });
    tiles_.reset();
    return tv::sequence(all);
}

}  // namespace loopegg
