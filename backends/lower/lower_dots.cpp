// Sums of products of int8 numbers in vectors of 32-bit whole numbers: four products at a time by an instruction of the target, or by plain arithmetic with the
// same result.
#include "backends/lower/lower_units.hpp"

#include "base/error.hpp"

namespace loopegg {

using tv::Expr;
using tv::Obj;

namespace {

constexpr std::int64_t max_vectors = 64, largest_product = 255 * 127, largest_sum = 0x7fffffff;

// The forms of the dot product of x86, by the number of sums.
struct DotForm {
    std::int64_t lanes;
    const char* intrinsic;
};
constexpr DotForm dot_forms[]{{16, "llvm.x86.avx512.vpdpbusd.512"}, {8, "llvm.x86.avx512.vpdpbusd.256"}, {4, "llvm.x86.avx512.vpdpbusd.128"}};

bool uses(const Index& index, const TreeNode* loop) { return index.uses(loop->var); }

}  // namespace

std::optional<NestUnits::Tiles> NestUnits::fitting_vectors(Tiles t) const {
    if (!int8() || t.sums * t.loops.rows->extent > max_vectors) return {};
    std::int64_t steps = 1;
    for (const Iterator& axis : s_.axes)
        if (axis.role == AxisRole::reduction) steps *= axis.extent;
    if (steps > largest_sum / largest_product) throw UserError("a sum of " + std::to_string(steps) + " products of int8 numbers may need more than 32 bits");
    const std::int64_t lanes = t.loops.columns->extent;
    const bool has_form = std::any_of(std::begin(dot_forms), std::end(dot_forms), [&](const DotForm& f) { return f.lanes == lanes; });
    if (has_form && std::any_of(units_.begin(), units_.end(), [](const MatrixUnit& u) { return u.instruction == "vpdpbusd"; })) t.instruction = "vpdpbusd";
    return t;
}

NestUnits::Spot NestUnits::row_of_wholes(std::int64_t tile, std::int64_t row) const {
    return {tiles_->wholes, {tile * tiles_->loops.rows->extent + row, tv::run_of(0, tiles_->loops.columns->extent)}};
}

std::vector<Obj> NestUnits::clear_vectors() const {
    std::vector<Obj> all;
    const std::int64_t lanes = tiles_->loops.columns->extent;
    for (std::int64_t tile = 0; tile < tiles_->sums; ++tile)
        for (std::int64_t row = 0; row < tiles_->loops.rows->extent; ++row)
            all.push_back(row_of_wholes(tile, row).store(tv::spread(tv::float_value(0), lanes)));
    return all;
}

Expr NestUnits::dot(const Expr& sums, const Expr& bytes, const Expr& wholes, std::int64_t lanes) const {
    for (const DotForm& f : dot_forms)
        if (f.lanes == lanes && !tiles_->instruction.empty()) return tv::machine_lanes(f.intrinsic, {sums, bytes, wholes}, lanes);
    const auto all = [&](std::int64_t n) { return tv::spread(n, lanes); };
    Expr sum = sums;
    for (std::int64_t byte = 0; byte < 4; ++byte) {
        const Expr input = tv::bitwise("prim.bitwise_and", tv::bitwise("prim.right_shift", bytes, all(8 * byte)), all(255));
        const Expr weight = tv::bitwise("prim.right_shift", tv::bitwise("prim.left_shift", wholes, all(24 - 8 * byte)), all(24));
        sum = tv::binary(tv::Fn::add, sum, tv::binary(tv::Fn::mul, input, weight));
    }
    return sum;
}

// One step of a tile: each row adds its products with the vector of columns, a word of each after the other.
Obj NestUnits::multiply_vectors() {
    Scope keep(env_);
    const UnitLoops& u = tiles_->loops;
    const std::int64_t lanes = u.columns->extent, tile = number_of_sum();
    if (stride(u.operands[1], u.columns) != 1) throw UserError("the words of a vector are no neighbours in memory");
    std::vector<Obj> all;
    for (const TreeNode* loop : {u.columns, u.packed}) env_[static_cast<std::size_t>(loop->var)] = 0;
    for (std::int64_t step = 0; step < u.depth->extent; ++step) {
        env_[static_cast<std::size_t>(u.depth->var)] = step;
        env_[static_cast<std::size_t>(u.rows->var)] = 0;
        Spot along = word(*u.body, u.operands[1]);
        along.at.back() = tv::run_of(along.at.back(), lanes);
        const Expr columns = tv::whole_lanes(along.load(), lanes);
        for (std::int64_t row = 0; row < u.rows->extent; ++row) {
            env_[static_cast<std::size_t>(u.rows->var)] = row;
            const Expr one = tv::whole_lanes(tv::spread(word(*u.body, u.operands[0]).load(), lanes), lanes);
            const Spot sums = row_of_wholes(tile, row);
            const bool bytes_in_rows = input_moves_along_rows();
            all.push_back(sums.store(
                tv::float_lanes(dot(tv::whole_lanes(sums.load(), lanes), bytes_in_rows ? one : columns, bytes_in_rows ? columns : one, lanes), lanes)));
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

// Sums become numbers: each is finished by what its output channel begins with, and multiplied by the channel's factor.
Obj NestUnits::store_wholes(const Storage& sums) {
    const Tiles t = *tiles_;
    const std::int64_t lanes = t.loops.columns->extent, rows = t.loops.rows->extent;
    const std::size_t weights = t.loops.operands[input_moves_along_rows() ? 1 : 0];
    const OperandPlace& place = t.loops.body->reads[weights];
    if (place.stage >= 0) throw UserError("int8 weights that a stage copies have no place for their scales");
    const bool by_lane = uses(place.index[0], t.loops.columns);
    std::vector<Obj> all;
    each_own_tile([&](std::int64_t tile) {
        if (t.in_registers)
            all.push_back(tv::machine_call("llvm.x86.tilestored64", {tv::narrow(tile), t.wholes.address({tile * rows, 0}), tv::wide(4 * lanes)}));
        for (const TreeNode* loop : {t.loops.columns, t.loops.depth, t.loops.packed}) env_[static_cast<std::size_t>(loop->var)] = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
            env_[static_cast<std::size_t>(t.loops.rows->var)] = row;
            const Expr channel = expr(place.index[0]);
            const auto scale = [&](Int8Tail part) { return by_lane ? int8_scale(part, channel, lanes) : tv::spread(int8_scale(part, channel), lanes); };
            const Expr whole =
                tv::binary(tv::Fn::add, tv::whole_lanes(row_of_wholes(tile, row).load(), lanes), tv::whole_lanes(scale(Int8Tail::offsets), lanes));
            std::vector<Expr> at = placed(sums, t.loops.body->write.index);
            at.back() = tv::run_of(at.back(), lanes);
            all.push_back(sums.buffer.store(tv::binary(tv::Fn::mul, tv::as_numbers(whole, lanes), scale(Int8Tail::factors)), at));
        }
    });
    tiles_.reset();
    return tv::sequence(all);
}

}  // namespace loopegg
