#include "backends/lower/lower_units.hpp"

#include "backends/runtime/loopegg_runtime.h"
#include "base/error.hpp"

namespace loopegg {

using tv::Expr;
using tv::Obj;

namespace {

constexpr std::int64_t registers = 8, bytes_of_a_word = 4;

// Instructions on registers for tiles that code can be made for.
constexpr const char* tile_instructions[]{"tdpbf16ps", "tdpbusd"};

// What a processor must have for a feature of LLVM, in the words of the runtime, which checks it when a network is loaded.
struct CheckedFeature {
    const char* name;
    std::uint32_t needs;
};
constexpr CheckedFeature checked_features[]{{"amx-bf16", loopeggrt_amx_bf16},      {"amx-int8", loopeggrt_amx_int8}, {"avx512vnni", loopeggrt_vnni},
                                            {"avx512bf16", loopeggrt_avx512_bf16}, {"dotprod", loopeggrt_dotprod},   {"i8mm", loopeggrt_i8mm},
                                            {"bf16", loopeggrt_arm_bf16}};

}  // namespace

NestUnits::NestUnits(const Statement& statement, const LoopTree& tree, const Target& target)
    : NestStages(statement, tree, target.gpu()),
      target_(target),
      units_(target.machine.units),
      signed_bytes_(std::any_of(units_.begin(), units_.end(), [](const MatrixUnit& u) { return u.operands == "int8" && u.signed_bytes; })) {}

// Throws UserError for a unit that this target's code cannot use: LLVM would end the program.
std::uint32_t NestUnits::needs_of(const MatrixUnit& unit) const {
    const tv::Obj machine = tv::obj(tv::Fn::target, target_.tvm.dump());
    for (const std::string& feature : unit.features)
        if (!tv::call(tv::Fn::has_feature, feature, machine).cast<bool>())
            throw UserError("the target '" + target_.name + "' lists the unit '" + unit.instruction + "', which needs '" + feature +
                            "', and code for its processor may not use that: add \"+" + feature + "\" to its \"mattr\"");
    std::uint32_t needs = 0;
    std::string known;
    for (const CheckedFeature& f : checked_features) {
        if (std::find(unit.features.begin(), unit.features.end(), f.name) != unit.features.end()) needs |= f.needs;
        known += (known.empty() ? "" : ", ") + std::string(f.name);
    }
    if (needs == 0)
        throw UserError("the unit '" + unit.instruction + "' has no feature that a network can check on the machine that it runs on: expected one of " + known);
    return needs;
}

Obj NestUnits::with_functions(const Obj& body) const {
    std::string all;
    for (const std::string& f : functions_) all += f;
    return all.empty() ? body : tv::with_llvm(all, body);
}

std::uint32_t NestUnits::units_used() const { return used_; }

bool NestUnits::has_unit(const std::string& operands) const {
    return std::any_of(units_.begin(), units_.end(), [&](const MatrixUnit& u) { return u.operands == operands; });
}

bool NestUnits::multiplies_in_tiles(const Tree& n) const {
    if (n->kind == TreeNode::Kind::stage && n->buffer == 0) {
        const auto fits = fitting_tiles(n);
        return fits && fits->in_registers();
    }
    return std::any_of(n->children.begin(), n->children.end(), [&](const Tree& c) { return multiplies_in_tiles(c); });
}

bool NestUnits::configures_parts(const Tree& n) const {
    return any_node(n, [&](const TreeNode& x) {
        return x.kind == TreeNode::Kind::cat && std::any_of(x.children.begin(), x.children.end(), [&](const Tree& c) { return multiplies_in_tiles(c); });
    });
}

bool NestUnits::configures(const TreeNode& n) const {
    return n.kind == TreeNode::Kind::loop && n.loop == LoopKind::parallel && multiplies_in_tiles(n.children[0]) && !configures_parts(n.children[0]);
}

bool NestUnits::begins_tiles(const Tree& n) const {
    return multiplies_in_tiles(n) && !configures_parts(n) && !any_node(n, [&](const TreeNode& x) { return configures(x); });
}

std::optional<NestUnits::Tiles> NestUnits::fitting_tiles(const Tree& output_stage) const {
    if (gpu_ || !packed() || !output_stage->owns) return {};
    Tiles t;
    Tree at = output_stage->children[0];
    for (; at->kind == TreeNode::Kind::loop && at->loop != LoopKind::tensor; at = at->children[0]) {
        const bool moves = writes_through(at->children[0], at->var);
        if (at->partial || at->loop == LoopKind::parallel || at->loop == LoopKind::vector || (moves && at->loop != LoopKind::unroll)) return {};
        if (!moves && !t.own.empty()) return {};
        if (moves) t.own.push_back(at.get()), t.sums *= at->extent;
    }
    const auto loops = at->kind == TreeNode::Kind::loop ? unit_loops(s_, *at) : std::nullopt;
    if (!loops) return {};
    t.loops = *loops;
    if (const auto in_registers = fitting_registers(t)) return in_registers;
    return fitting_vectors(t);
}

std::optional<NestUnits::Tiles> NestUnits::fitting_registers(Tiles t) const {
    const auto fits = [&](const MatrixUnit& u) {
        return u.forms.empty() && std::find(std::begin(tile_instructions), std::end(tile_instructions), u.instruction) != std::end(tile_instructions) &&
               u.operands == packed_kind_ && !takes_signed_bytes() && t.loops.rows->extent <= u.rows && t.loops.columns->extent <= u.columns &&
               in_word_ * t.loops.depth->extent <= u.depth;
    };
    const auto unit = std::find_if(units_.begin(), units_.end(), fits);
    if (unit == units_.end()) return {};
    t.instruction = unit->instruction, t.needs = needs_of(*unit), t.form = {"", 1, t.loops.columns->extent, 1};
    std::array<std::int64_t, 2> wanted{1, 1};
    for (std::size_t side : {0u, 1u})
        for (const TreeNode* own : t.own)
            if (t.loops.body->reads[t.loops.operands[side]].uses(own->var)) wanted[side] *= own->extent;
    const std::int64_t left = registers - t.sums;
    if (left < 2) return {};
    t.kept[0] = std::min(wanted[0], left - 1), t.kept[1] = std::min(wanted[1], left - t.kept[0]);
    return t;
}

bool NestUnits::begin_tiles(const Tree& output_stage) {
    tiles_ = fitting_tiles(output_stage);
    if (!in_tiles()) return false;
    used_ |= tiles_->needs;
    const UnitForm& form = tiles_->form;
    if (!form.intrinsic.empty()) functions_.insert(tv::multiplying_function(form.intrinsic, int8() ? tv::InWords::bytes : tv::InWords::bf16, tiles_->lanes()));
    if (!tiles_->in_registers() || int8())
        tiles_->vectors = tv::buffer("sums" + std::to_string(output_stage->stage),
                                     {tiles_->sums * tiles_->vector_rows() * tiles_->vector_columns(), tiles_->lanes()}, "local");
    return true;
}

bool NestUnits::is_tile_loop(const TreeNode& n) const { return std::find(tiles_->own.begin(), tiles_->own.end(), &n) != tiles_->own.end(); }

// Tiles of sums come first among the registers, then tiles of the rows' operand, then those of the columns' operand.
Obj NestUnits::configured(const Tree& below, const std::function<Obj()>& code) {
    std::optional<Tiles> t;
    const auto find = [&](const auto& self, const Tree& n) -> void {
        if (n->kind == TreeNode::Kind::stage && n->buffer == 0) {
            const auto here = fitting_tiles(n);
            const auto same = [&](const TreeNode* a, const TreeNode* b) { return a->extent == b->extent; };
            if (!here || !here->in_registers()) return;
            if (t && (here->sums != t->sums || here->kept != t->kept || !same(here->loops.rows, t->loops.rows) || !same(here->loops.depth, t->loops.depth) ||
                      !same(here->loops.columns, t->loops.columns)))
                throw UserError("parts of a nest want tiles of different shapes in the registers of one unit");
            t = here;
            return;
        }
        for (const Tree& c : n->children) self(self, c);
    };
    find(find, below);
    require(t.has_value(), "registers are shaped for tiles that there are");
    const std::int64_t rows = t->loops.rows->extent, depth = t->loops.depth->extent, columns = t->loops.columns->extent;
    std::array<std::uint32_t, 16> words{1};  // the layout of Intel's palette 1: 16-bit widths in bytes from byte 16 on, 8-bit heights from byte 48 on
    for (std::int64_t i = 0; i < t->sums + t->kept[0] + t->kept[1]; ++i) {
        const bool sum = i < t->sums, first = !sum && i < t->sums + t->kept[0];
        const auto width = static_cast<std::uint32_t>(bytes_of_a_word * (first ? depth : columns)),
                   height = static_cast<std::uint32_t>(sum || first ? rows : depth);
        words[static_cast<std::size_t>(4 + i / 2)] |= width << (16 * (i % 2));
        words[static_cast<std::size_t>(12 + i / 4)] |= height << (8 * (i % 4));
    }
    const tv::Buffer shape = tv::buffer("unit_shape", {16}, "local");
    std::vector<Obj> all{tv::allocate(shape, true)};
    for (std::size_t i = 0; i < words.size(); ++i)
        all.push_back(
            shape.store(words[i] == 0 ? tv::float_value(0) : tv::with_bits(Expr(static_cast<std::int64_t>(words[i]))), {static_cast<std::int64_t>(i)}));
    all.push_back(tv::machine_call("llvm.x86.ldtilecfg", {shape.address({0})}));
    all.push_back(code());
    all.push_back(tv::machine_call("llvm.x86.tilerelease", {}));
    return tv::sequence(all);
}

std::vector<Obj> NestUnits::clear_tiles() {
    std::vector<Obj> all;
    if (!tiles_->vectors.shape.empty()) all.push_back(tv::allocate(tiles_->vectors, on_stack(tiles_->vectors)));
    if (!tiles_->in_registers()) {
        for (const Obj& step : clear_vectors()) all.push_back(step);
        return all;
    }
    for (std::int64_t i = 0; i < tiles_->sums; ++i) all.push_back(tv::machine_call("llvm.x86.tilezero", {tv::narrow(i)}));
    return all;
}

std::int64_t NestUnits::stride(std::size_t read, const TreeNode* loop) const {
    const auto words = word_stride(*tiles_->loops.body, read, loop->var);
    if (!words) throw UserError("the rows of a unit's tile are not equally far apart in memory");
    return *words;
}

// Loads the tile of an operand that the own loops are at, unless a register still has it.
std::vector<Obj> NestUnits::operand_tile(std::size_t side, std::int64_t& number) {
    Tiles& t = *tiles_;
    const std::size_t read = t.loops.operands[side];
    std::vector<std::int64_t> key;
    for (const TreeNode* own : t.own)
        if (t.loops.body->reads[read].uses(own->var)) key.push_back(env_[static_cast<std::size_t>(own->var)].value);
    auto& loaded = t.loaded[side];
    const std::int64_t first = t.sums + (side == 0 ? 0 : t.kept[0]);
    if (const auto found = std::find(loaded.begin(), loaded.end(), key); found != loaded.end()) {
        number = first + (found - loaded.begin());
        return {};
    }
    const auto slot = t.next[side]++ % static_cast<std::size_t>(t.kept[side]);
    if (slot == loaded.size())
        loaded.push_back(key);
    else
        loaded[slot] = key;
    number = first + static_cast<std::int64_t>(slot);
    const TreeNode *along = side == 0 ? t.loops.depth : t.loops.columns, *down = side == 0 ? t.loops.rows : t.loops.depth;
    if (stride(read, along) != 1) throw UserError("the words of a unit's tile are no neighbours in memory");
    return {tv::machine_call("llvm.x86.tileloadd64", {tv::narrow(number), word_address(*t.loops.body, read), tv::wide(bytes_of_a_word * stride(read, down))})};
}

Obj NestUnits::multiply_tiles() {
    if (!tiles_->in_registers()) return multiply_vectors();
    std::int64_t a = 0, b = 0;
    const std::int64_t sum = number_of_sum();
    std::vector<Obj> all = operand_tile(0, a);
    for (const Obj& load : operand_tile(1, b)) all.push_back(load);
    all.push_back(tv::machine_call(tiles_->instruction == "tdpbf16ps"      ? "llvm.x86.tdpbf16ps"
                                   : input_moves_along_rows(tiles_->loops) ? "llvm.x86.tdpbusd"
                                                                           : "llvm.x86.tdpbsud",
                                   {tv::narrow(sum), tv::narrow(a), tv::narrow(b)}));
    return tv::sequence(all);
}

std::int64_t NestUnits::number_of_sum() const {
    std::int64_t sum = 0;
    for (const TreeNode* own : tiles_->own) sum = sum * own->extent + env_[static_cast<std::size_t>(own->var)].value;
    return sum;
}

bool NestUnits::input_moves_along_rows(const UnitLoops& loops) const {
    const Access& rows = s_.reads[loops.operands[0]];
    return s_.buffers[static_cast<std::size_t>(rows.buffer)].kind != BufferKind::weight;
}

// How far apart neighbours along a loop are in the storage of sums.
std::int64_t NestUnits::sum_step(const Storage& sums, const TreeNode* loop) const {
    const OperandPlace& place = tiles_->loops.body->write;
    std::int64_t distance = 1;
    for (std::size_t i = sums.order.size(); i-- > 0; distance *= sums.buffer.shape[i])
        if (place.index[static_cast<std::size_t>(sums.order[i])] == Index::variable(loop->var)) return distance;
    throw UserError("the rows of a unit's tile of sums are no step of their storage");
}

Obj NestUnits::store_tiles(const Storage& sums) {
    if (tiles_->loops.body->write.stage != sums.stage || sum_step(sums, tiles_->loops.columns) != 1)
        throw UserError("a unit's tiles of sums want columns as the innermost step of their storage");
    if (!tiles_->in_registers() || int8()) return store_vectors(sums);
    const Tiles t = *tiles_;
    const OperandPlace& place = t.loops.body->write;
    std::vector<Obj> all;
    Scope keep(env_);
    for (std::int64_t i = 0; i < t.sums; ++i) {
        std::int64_t rest = i;
        for (std::size_t o = t.own.size(); o-- > 0; rest /= t.own[o]->extent) env_[static_cast<std::size_t>(t.own[o]->var)] = rest % t.own[o]->extent;
        all.push_back(tv::machine_call("llvm.x86.tilestored64", {tv::narrow(i), sums.buffer.address(placed(sums, place.index)),
                                                                 tv::wide(bytes_of_a_word * sum_step(sums, t.loops.rows))}));
    }
    tiles_.reset();
    return tv::sequence(all);
}

}  // namespace loopegg
