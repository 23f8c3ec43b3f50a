#include "backends/lower/random_nest.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/term/axis.hpp"

namespace loopegg {
namespace {

constexpr const char* statements[]{"(conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)",
                                   "(conv2d 2 1 4 8 5 5 1 1 1 1 0 0 1 1)",
                                   "(conv2d 1 2 4 4 7 7 3 3 2 2 1 1 1 1)",
                                   "(conv2d 1 6 1 1 6 6 3 3 1 1 1 1 1 1)",
                                   "(conv2d 1 1 8 8 6 6 3 3 1 1 2 2 2 2)",
                                   "(epilogue relu (epilogue bias (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)))",
                                   "(epilogue relu (epilogue add (conv2d 1 1 4 4 5 5 3 3 1 1 1 1 1 1)))",
                                   "(epilogue scale_shift (conv2d 1 1 6 4 4 4 3 3 1 1 1 1 1 1))",
                                   "(layout O co 4 (layout I ci 2 (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)))",
                                   "(layout W co 4 (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1))",
                                   "(linear 3 10 12)",
                                   "(epilogue bias (linear 4 8 16))",
                                   "(matmul 2 6 8 4)",
                                   "(max_pool 1 4 8 8 3 3 2 2 1 1)",
                                   "(avg_pool 1 4 6 6 2 2 2 2 0 0)",
                                   "(row_sum 6 12 1)",
                                   "(row_mean 4 8 2)",
                                   "(row_max 5 9 1)",
                                   "(row_square 4 6 1)",
                                   "(map relu 60)",
                                   "(zip + 48)",
                                   "(zip * 35)",
                                   "(scale 0.5 24)",
                                   "(channel_scale 2 4 9)",
                                   "(stretch + 2 3 4 5 15 10)",
                                   "(order I 4132 (move 2 3 4 5))",
                                   "(order O 231 (order J 312 (epilogue (times 0.5) (matmul 2 6 8 4))))"};

class Dice {
public:
    explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x632BE59BD9B4E019ull) {}
    std::size_t below(std::size_t n) {
        state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
        return static_cast<std::size_t>((state_ >> 11) % n);
    }
    bool once_in(std::size_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

struct Loop {
    Term axis;
    bool output;
};

// What the loops leave out of a statement's domain.
enum class Cut { nothing, instances, outputs };

// Loops over each axis: whole, split (evenly or not), or a span.
std::vector<Loop> loops_of(const Statement& s, Dice& dice, Cut cut) {
    std::vector<Loop> loops;
    std::vector<std::string> taken;
    if (cut == Cut::outputs) {  // the first half of an axis, or every second of it
        std::vector<const Iterator*> axes;
        for (const Iterator& it : s.axes)
            if (it.extent >= 4 && s.writes_axis(s.axis(it.name)) && it.name != "n") axes.push_back(&it);
        const Iterator& it = *axes[dice.below(axes.size())];
        const Term leaf = axis_leaf(it.name, it.extent), two(std::int64_t{2}), zero(std::int64_t{0});
        if (it.extent % 2 == 0 && dice.once_in(2)) {
            loops.push_back({Term("quo", {leaf, two}), true});
            loops.push_back({Term("span", {Term("rem", {leaf, two}), zero, Term(std::int64_t{1})}), true});
        } else {
            loops.push_back({Term("span", {leaf, zero, Term(it.extent / 2)}), true});
        }
        taken = {it.name};
    }
    if (cut == Cut::instances && s.axis("co") >= 0 && s.axis("ci") >= 0) {
        const std::int64_t co = s.axes[static_cast<std::size_t>(s.axis("co"))].extent, ci = s.axes[static_cast<std::size_t>(s.axis("ci"))].extent;
        if (co % 2 == 0 && ci % 2 == 0) {
            const std::int64_t g = co % 4 == 0 && ci % 4 == 0 && dice.once_in(2) ? 4 : 2;
            const Term a = axis_leaf("co", co), b = axis_leaf("ci", ci);
            loops.push_back({Term("diag", {Term(g), a, b}), true});
            if (co / g > 1) loops.push_back({Term("rem", {a, Term(co / g)}), true});
            if (ci / g > 1) loops.push_back({Term("rem", {b, Term(ci / g)}), false});
            taken = {"co", "ci"};
        }
    }
    for (const Iterator& it : s.axes) {
        if (it.extent == 1 || std::find(taken.begin(), taken.end(), it.name) != taken.end()) continue;
        const Term leaf = axis_leaf(it.name, it.extent);
        const bool output = s.writes_axis(s.axis(it.name));
        if (it.extent >= 4 && dice.once_in(2)) {
            const auto k = static_cast<std::int64_t>(2 + dice.below(static_cast<std::size_t>(it.extent - 2)));
            loops.push_back({Term("quo", {leaf, Term(k)}), output});
            loops.push_back({Term("rem", {leaf, Term(k)}), output});
        } else if (cut == Cut::instances && !output && it.extent > 1 && dice.once_in(3)) {
            loops.push_back({Term("span", {leaf, Term(std::int64_t{0}), Term(it.extent - 1)}), output});
        } else {
            loops.push_back({leaf, output});
        }
    }
    return loops;
}

Term schedule(const Statement& s, Dice& dice, bool gpu, Cut cut) {
    if (cut != Cut::outputs && dice.once_in(6) && !gpu) {  // two parts, cut along an axis
        std::vector<const Iterator*> axes;
        for (const Iterator& it : s.axes)
            if (it.extent >= 4) axes.push_back(&it);
        if (!axes.empty()) {
            const Iterator& it = *axes[dice.below(axes.size())];
            const auto at = static_cast<std::int64_t>(1 + dice.below(static_cast<std::size_t>(it.extent - 1)));
            auto part = [&](std::int64_t lo, std::int64_t hi) {
                std::vector<Loop> loops = loops_of(s, dice, Cut::nothing);
                std::erase_if(loops, [&](const Loop& l) { return axis_name(iterators_of(l.axis)[0])->name == it.name; });
                loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(dice.below(loops.size() + 1)),
                             {Term("span", {axis_leaf(it.name, it.extent), Term(lo), Term(hi)}), true});
                Term t("done");
                for (auto l = loops.rbegin(); l != loops.rend(); ++l) t = Term("at", {l->axis, t});
                return t;
            };
            return Term("cat", {part(0, at), part(at, it.extent)});
        }
    }
    std::vector<Loop> loops = loops_of(s, dice, cut);
    for (std::size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[dice.below(i)]);
    if (loops.size() > 2 && dice.once_in(4)) {  // two neighbours fused
        const std::size_t i = dice.below(loops.size() - 1);
        if (loops[i].output == loops[i + 1].output || !gpu) {
            loops[i] = {Term("pair", {loops[i].axis, loops[i + 1].axis}), loops[i].output && loops[i + 1].output};
            loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
    }
    Term t("done");
    int block = 0, thread = 0;
    bool reduced_below = false, parallel_used = false;
    for (std::size_t i = loops.size(); i-- > 0;) {
        const Loop& l = loops[i];
        if (gpu && l.output && block + thread < 4 && dice.once_in(2)) {
            static constexpr const char* threads[]{"threadIdx.x", "threadIdx.y"};
            static constexpr const char* blocks[]{"blockIdx.x", "blockIdx.y"};
            if (thread < 2 && block == 0 && axis_extent(l.axis) <= 32)
                t = Term("bind", {Term(threads[thread++]), l.axis, t});
            else if (block < 2)
                t = Term("bind", {Term(blocks[block++]), l.axis, t});
            else
                t = Term("at", {l.axis, t});
        } else if (!gpu && l.output && !parallel_used && i < 2 && dice.once_in(2)) {
            parallel_used = true;
            t = Term("par", {l.axis, t});
        } else if (!gpu && l.output && dice.once_in(3) && axis_extent(l.axis) <= 16) {
            t = Term("vec", {l.axis, t});
        } else if (dice.once_in(4) && axis_extent(l.axis) <= 8) {
            t = Term("unroll", {l.axis, t});
        } else if (!gpu && !l.output && !reduced_below && s.combine != Combine::assign && dice.once_in(4)) {
            t = Term("partial", {Term(dice.once_in(2) ? "serial" : "unroll"), l.axis, t});
        } else {
            t = Term("at", {l.axis, t});
        }
        reduced_below = reduced_below || !l.output;
        if (dice.once_in(5)) {
            const char* name = dice.once_in(2) ? "O" : dice.once_in(2) ? "I" : "W";
            if (s.buffer(name) >= 0) t = Term("stage", {gpu && std::string(name) != "O" && thread > 0 ? Term("shared", {Term(name)}) : Term(name), t});
        }
    }
    return t;
}

}  // namespace

Term random_nest(std::uint64_t seed, bool gpu) {
    for (std::uint64_t attempt = 0;; ++attempt) {
        Dice dice(seed * 1000 + attempt);
        const Statement s = statement_of(parse_term(statements[dice.below(std::size(statements))]));
        Cut cut = s.combine == Combine::sum && dice.once_in(3) ? Cut::instances : Cut::nothing;
        if (cut == Cut::instances && s.axis("co") >= 0 && dice.once_in(2)) cut = Cut::outputs;
        Term nest("nest", {s.term, schedule(s, dice, gpu, cut)});
        if (cut == Cut::outputs) nest = Term("restore", {Term(dice.once_in(2) ? "repeat" : "zero"), nest});
        try {
            resolve(nest);
            return nest;
        } catch (const UserError&) {
        }
    }
}

}  // namespace loopegg
