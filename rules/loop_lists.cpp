#include "rules/loop_lists.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "nest/term/facts.hpp"
#include "rules/block_tiles.hpp"
#include "rules/register_tiles.hpp"

namespace loopegg {
namespace {

using Terms = std::optional<std::vector<Term>>;

const NestAnalysis& facts(const Question& q) {
    const auto* nest = dynamic_cast<const NestAnalysis*>(q.facts);
    require(nest != nullptr, "rules over nests are bound to nest facts");
    return *nest;
}

// The naive loops of the nest whose statement and schedule are the first two arguments.
const NaiveLoops* loops(const Question& q) {
    if (q.arguments[0].eclass == none || q.arguments[1].eclass == none) return nullptr;
    return facts(q).naive_loops(q.arguments[0].eclass, q.arguments[1].eclass);
}

const Statement* statement(const Question& q) {
    const StatementFact* s = q.arguments[0].eclass == none ? nullptr : facts(q).statement(q.arguments[0].eclass);
    return s ? s->statement.get() : nullptr;
}

// An argument as terms: what a function gave, what a variable stands for, a word or a number.
std::vector<Term> terms(const Question& q, std::size_t i) {
    const Argument& a = q.arguments[i];
    if (a.terms) return *a.terms;
    if (a.eclass != none) return {q.graph.smallest_term(a.eclass)};
    if (a.number) return {Term(*a.number)};
    return {Term(a.word)};
}
std::optional<Term> term(const Question& q, std::size_t i) {
    std::vector<Term> all = terms(q, i);
    return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
}
std::optional<RegisterTile> tile(const Question& q, std::size_t i) {
    const auto t = term(q, i);
    return t ? read_tile(*t) : std::nullopt;
}

// The digit of an axis with so many values, each of so many elements: none if it is one value.
void add_digit(std::vector<Term>& out, const Term& axis, std::int64_t extent, std::int64_t stride, std::int64_t count) {
    if (count <= 1 || stride >= extent) return;
    const Term from = stride == 1 ? axis : Term("quo", {axis, Term(stride)});
    out.push_back(stride * count >= extent ? from : Term("rem", {from, Term(count)}));
}

// --- the parts of a tiled nest ------------------------------------------------------------------------------------------------

using PartOf = std::vector<Term> (*)(const NaiveLoops& nest, const RegisterTile& tile);

std::vector<Term> outer(const NaiveLoops& nest, const RegisterTile& tile) {
    std::vector<Term> out;
    for (const NaiveLoop& l : nest.loops)
        if (!l.reduction) add_digit(out, l.axis, l.extent, tile.of(l.axis).elements(), l.extent);
    return out;
}
std::vector<Term> inner(const NaiveLoops& nest, const RegisterTile& tile) {
    std::vector<Term> out;
    for (const NaiveLoop& l : nest.loops)
        if (const auto part = tile.of(l.axis); !l.reduction) add_digit(out, l.axis, l.extent, part.lanes, part.count);
    return out;
}
std::vector<Term> lanes(const NaiveLoops& nest, const RegisterTile& tile) {
    std::vector<Term> out;
    for (const NaiveLoop& l : nest.loops)
        if (const auto part = tile.of(l.axis); !l.reduction) add_digit(out, l.axis, l.extent, 1, part.lanes);
    return out;
}
// The vector's own loop before the others.
std::vector<Term> vectors_first(const NaiveLoops& nest, const RegisterTile& tile) {
    std::vector<Term> out, others;
    for (const NaiveLoop& l : nest.loops)
        if (!l.reduction) add_digit(l.axis == tile.vector_axis() ? out : others, l.axis, l.extent, tile.of(l.axis).elements(), l.extent);
    out.insert(out.end(), others.begin(), others.end());
    return out;
}

FunctionKind tile_part(const char* name, const char* summary, PartOf part) {
    FunctionKind f;
    f.name = name, f.signature = {{"statement", "schedule", "tile"}}, f.summary = summary, f.kind = "axes", f.facts_only = false;
    f.terms = [part](const Question& q) -> Terms {
        const NaiveLoops* nest = loops(q);
        const auto t = tile(q, 2);
        return nest && t ? Terms(part(*nest, *t)) : std::nullopt;
    };
    return f;
}

// --- lists of axes --------------------------------------------------------------------------------------------------------------

FunctionKind axes_function(const char* name, Signature signature, const char* summary, std::function<Terms(const Question&)> made) {
    FunctionKind f;
    f.name = name, f.signature = std::move(signature), f.summary = summary, f.kind = "axes", f.facts_only = false, f.terms = std::move(made);
    return f;
}

Terms naive_axes(const Question& q, bool reductions) {
    const NaiveLoops* nest = loops(q);
    if (!nest) return {};
    std::vector<Term> out;
    for (const NaiveLoop& l : nest->loops)
        if (l.reduction == reductions) out.push_back(l.axis);
    return out;
}

// What of each sum is written out (`inside`), and what goes on around it. The third argument says of which: all that are short, or the last alone.
Terms sums(const Question& q, bool inside) {
    const NaiveLoops* nest = loops(q);
    const auto which = term(q, 2);
    if (!nest || !which) return {};
    std::vector<Term> out;
    for (std::size_t i = 0; i < nest->loops.size(); ++i) {
        const NaiveLoop& l = nest->loops[i];
        if (!l.reduction) continue;
        const std::int64_t steps = which->op().text() == "none" ? 1 : unrolled_steps(*nest, i, which->op().text() == "all");
        if (inside) add_digit(out, l.axis, l.extent, 1, steps);
        else add_digit(out, l.axis, l.extent, steps, l.extent);
    }
    return out;
}

// Blocks of rows first, then the rest of the outer loops with what is left of the rows in its place.
Terms row_blocks(const Question& q) {
    const NaiveLoops* nest = loops(q);
    const auto t = tile(q, 2);
    if (!nest || !t || !nest->row_loop() || !q.arguments[3].number) return {};
    const std::int64_t rows = *q.arguments[3].number;
    std::vector<Term> out, rest;
    for (std::size_t i = 0; i < nest->loops.size(); ++i) {
        const NaiveLoop& l = nest->loops[i];
        if (l.reduction) continue;
        if (i == nest->row_loop()) add_digit(out, l.axis, l.extent, rows, l.extent), add_digit(rest, l.axis, l.extent, 1, rows);
        else add_digit(rest, l.axis, l.extent, t->of(l.axis).elements(), l.extent);
    }
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
}

Terms around_rows(const Question& q, bool above) {
    const NaiveLoops* nest = loops(q);
    if (!nest) return {};
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < nest->loops.size(); ++i)
        if (!nest->loops[i].reduction) outputs.push_back(i);
    const std::size_t row = nest->row_loop().value_or(outputs.empty() ? 0 : outputs.back());
    std::vector<Term> out;
    for (std::size_t i : outputs)
        if ((i < row) == above) out.push_back(nest->loops[i].axis);
    return out;
}

std::vector<FunctionKind> axes_functions() {
    std::vector<FunctionKind> all{
        axes_function("outputs", {{"statement", "schedule"}}, "the naive loops that move the output, in their order", [](const Question& q) { return naive_axes(q, false); }),
        axes_function("reductions", {{"statement", "schedule"}}, "the naive loops that are summed over, in their order", [](const Question& q) { return naive_axes(q, true); }),
        axes_function("sums", {{"statement", "schedule", "all-or-last"}}, "what goes on around the steps of sums that 'steps' writes out", [](const Question& q) { return sums(q, false); }),
        axes_function("steps", {{"statement", "schedule", "all-or-last"}}, "steps of sums to write out: short sums whole (all of them, or the last alone, or none), of the last one four steps if it is long",
                      [](const Question& q) { return sums(q, true); }),
        axes_function("row-blocks", {{"statement", "schedule", "tile", "number"}}, "the outer loops, blocks of so many rows of an image before the others", row_blocks),
        axes_function("above-rows", {{"statement", "schedule"}}, "the output loops before the rows of an image; all but the last where there is no image", [](const Question& q) { return around_rows(q, true); }),
        axes_function("rows-and-columns", {{"statement", "schedule"}}, "the other output loops", [](const Question& q) { return around_rows(q, false); }),
        axes_function("first", {{"axes"}}, "the first of them, if there is one", [](const Question& q) -> Terms {
            std::vector<Term> all = terms(q, 0);
            all.resize(std::min<std::size_t>(1, all.size()));
            return all;
        }),
        axes_function("rest", {{"axes"}}, "all but the first", [](const Question& q) -> Terms {
            std::vector<Term> all = terms(q, 0);
            if (!all.empty()) all.erase(all.begin());
            return all;
        }),
        axes_function("last", {{"axes"}}, "the last of them, if there is one", [](const Question& q) -> Terms {
            std::vector<Term> all = terms(q, 0);
            if (!all.empty()) all.erase(all.begin(), all.end() - 1);
            return all;
        }),
        axes_function("but-last", {{"axes"}}, "all but the last", [](const Question& q) -> Terms {
            std::vector<Term> all = terms(q, 0);
            if (!all.empty()) all.pop_back();
            return all;
        }),
        axes_function("fused", {{"axes"}}, "all of them as one axis; no value where that is none: a part of an axis and a digit of it", [](const Question& q) -> Terms {
            const std::vector<Term> all = terms(q, 0);
            if (all.empty()) return all;
            Term one = all[0], loops("done");
            for (std::size_t i = 1; i < all.size(); ++i) one = Term("pair", {one, all[i]});
            for (std::size_t i = all.size(); i-- > 0;) loops = Term("at", {all[i], loops});
            if (all.size() > 1 && !facts(q).visits_the_same(Term("at", {one, Term("done")}), loops)) return {};
            return std::vector{one};
        }),
        axes_function("both", {{"axes", "axes"}, true}, "one list after another", [](const Question& q) -> Terms {
            std::vector<Term> all;
            for (std::size_t i = 0; i < q.arguments.size(); ++i)
                for (Term& t : terms(q, i)) all.push_back(std::move(t));
            return all;
        }),
        axes_function("digits", {{"axes", "number", "number"}}, "of each axis the digit with so many values (the third argument) of so many elements each (the second)", [](const Question& q) -> Terms {
            std::vector<Term> out;
            if (!q.arguments[1].number || !q.arguments[2].number || *q.arguments[1].number < 1) return {};
            for (const Term& axis : terms(q, 0)) add_digit(out, axis, axis_extent(axis), *q.arguments[1].number, *q.arguments[2].number);
            return out;
        }),
        axes_function("blocks-of", {{"axes", "number"}}, "of each axis the blocks of so many", [](const Question& q) -> Terms {
            std::vector<Term> out;
            if (!q.arguments[1].number || *q.arguments[1].number < 1) return {};
            for (const Term& axis : terms(q, 0)) add_digit(out, axis, axis_extent(axis), *q.arguments[1].number, axis_extent(axis));
            return out;
        }),
        axes_function("block", {{"statement", "schedule", "block-tile", "part"}}, "one part of a nest that is tiled for blocks of threads (rules/block_tiles.hpp)", [](const Question& q) -> Terms {
            const NaiveLoops* nest = loops(q);
            const Statement* s = statement(q);
            const auto t = term(q, 2);
            return nest && s && t ? part_of_block(*s, *nest, *t, q.arguments[3].word.text()) : std::nullopt;
        }),
        tile_part("outer", "the output loops around a tile, in their order", outer),
        tile_part("inner", "the output loops of a tile, without its lanes", inner),
        tile_part("lanes", "the lanes of a tile", lanes),
        tile_part("vectors-first", "the output loops around a tile, that of its vectors before the others", vectors_first),
    };
    return all;
}

std::vector<FunctionKind> buffer_functions() {
    std::vector<FunctionKind> all{
        axes_function("padded", {{"statement"}}, "the input, where reads of it may leave the image", [](const Question& q) -> Terms {
            const Statement* s = statement(q);
            if (!s) return {};
            for (const Access& read : s->reads)
                if (read.padded) return std::vector{Term(s->buffers[static_cast<std::size_t>(read.buffer)].name)};
            return std::vector<Term>{};
        }),
        axes_function("accumulated", {{"statement", "schedule"}}, "the output, where it is summed up", [](const Question& q) -> Terms {
            const Statement* s = statement(q);
            const NaiveLoops* nest = loops(q);
            if (!s || !nest) return {};
            return s->combine != Combine::assign && nest->innermost_reduction() ? std::vector{Term("O")} : std::vector<Term>{};
        }),
    };
    for (FunctionKind& f : all) f.kind = "buffers";
    return all;
}

// --- loops over lists -----------------------------------------------------------------------------------------------------------

// (OP AXES REST), (OP WORD AXES REST): the loop for each axis around the rest.
FunctionKind loop_builder(const char* op, bool word) {
    FunctionKind f;
    f.name = op, f.kind = "schedule", f.facts_only = false;
    f.summary = "one such loop for each axis of a list, outermost first";
    f.signature = word ? Signature{{"word", "axes", "schedule"}} : Signature{{"axes", "schedule"}};
    f.terms = [name = std::string(op), word](const Question& q) -> Terms {
        auto made = term(q, word ? 2 : 1);
        if (!made) return {};
        const std::vector<Term> axes = terms(q, word ? 1 : 0);
        for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
            std::vector<Term> children;
            if (word) children.push_back(terms(q, 0).front());
            children.push_back(*it), children.push_back(*made);
            made = Term(name, std::move(children));
        }
        return std::vector{*made};
    };
    return f;
}

std::vector<FunctionKind> builders() {
    std::vector<FunctionKind> all;
    for (const char* op : {"at", "par", "vec", "unroll", "stage"}) all.push_back(loop_builder(op, false));
    for (const char* op : {"bind", "partial"}) all.push_back(loop_builder(op, true));
    all.push_back(axes_function("shared", {{"buffers"}}, "the buffers, in the memory that threads share", [](const Question& q) -> Terms {
        std::vector<Term> out;
        for (const Term& t : terms(q, 0)) out.push_back(Term("shared", {t}));
        return out;
    }));
    all.back().kind = "buffers";
    return all;
}

}  // namespace

std::vector<FunctionKind> loop_functions() {
    std::vector<FunctionKind> all = axes_functions();
    for (auto* more : {+[] { return buffer_functions(); }, +[] { return builders(); }})
        for (FunctionKind& f : more()) all.push_back(std::move(f));
    FunctionKind registers;
    registers.name = "machine-lanes", registers.signature = {{}}, registers.summary = "floats in a vector of the target";
    registers.value = [](const Question& q) { return std::optional<std::int64_t>(facts(q).machine().lanes); };
    all.push_back(std::move(registers));
    all.push_back({"sum-count", {{"statement", "schedule"}}, "how many naive loops are summed over", [](const Question& q) {
        const auto all = naive_axes(q, true);
        return all ? std::optional(static_cast<std::int64_t>(all->size())) : std::nullopt;
    }});
    return all;
}

namespace {

// Loops cut by extents alone; where a restriction cuts across a digit, a cut can miss a part of it.
bool covers(const Question& q, const NaiveLoops& nest, const RegisterTile& tile) {
    Term all("done");
    const auto add = [&](const std::vector<Term>& axes) {
        for (const Term& a : axes) all = Term("at", {a, all});
    };
    for (std::size_t i = 0; i < nest.loops.size(); ++i) {
        const NaiveLoop& l = nest.loops[i];
        std::vector<Term> digits;
        if (l.reduction) {
            const std::int64_t steps = unrolled_steps(nest, i, true);
            add_digit(digits, l.axis, l.extent, 1, steps), add_digit(digits, l.axis, l.extent, steps, l.extent);
        }
        add(digits);
    }
    add(outer(nest, tile)), add(inner(nest, tile)), add(lanes(nest, tile));
    return facts(q).visits_the_same(all, q.arguments[1].eclass);
}

}  // namespace

std::vector<ListKind> loop_lists() {
    return {
        {"register-tiles", {{"statement", "schedule", "number"}}, "so many tiles of output elements that fit the vector registers, those first that need fewest loads",
         [](const Question& q) {
             const NaiveLoops* nest = loops(q);
             std::vector<Term> out;
             if (!nest || !q.arguments[2].number) return out;
             for (const RegisterTile& t : register_tiles(*nest, facts(q).machine(), static_cast<std::size_t>(*q.arguments[2].number)))
                 if (covers(q, *nest, t)) out.push_back(to_term(t));
             return out;
         }},
        {"shared-tiles", {{"statement", "schedule"}}, "the tile of a convolution for blocks of threads whose inputs and weights fit the memory that they share, if there is one",
         [](const Question& q) {
             const NaiveLoops* nest = loops(q);
             const Statement* s = statement(q);
             std::vector<Term> out;
             if (nest && s)
                 if (auto t = shared_tile(*s, *nest, facts(q).machine(), facts(q).part())) out.push_back(std::move(*t));
             return out;
         }},
        {"plain-tiles", {{"statement", "schedule"}}, "the tile of any nest for blocks of threads that share nothing",
         [](const Question& q) {
             const NaiveLoops* nest = loops(q);
             const Statement* s = statement(q);
             return nest && s ? std::vector{plain_tile(*s, *nest, facts(q).machine())} : std::vector<Term>{};
         }},
        {"row-counts", {{"statement", "schedule", "tile", "number"}}, "divisors of the number of an image's rows up to a number, where the tile has one row",
         [](const Question& q) {
             const NaiveLoops* nest = loops(q);
             const auto t = tile(q, 2);
             std::vector<Term> out;
             if (!nest || !t || !nest->row_loop() || !q.arguments[3].number) return out;
             const NaiveLoop& row = nest->loops[*nest->row_loop()];
             if (t->of(row.axis).elements() > 1) return out;
             const auto covered = [&](std::int64_t k) { RegisterTile cut = *t; cut.parts.push_back({row.axis, 1, k}); return covers(q, *nest, cut); };
             for (std::int64_t k = 1; k <= std::min(row.extent, *q.arguments[3].number); ++k)
                 if (row.extent % k == 0 && covered(k)) out.emplace_back(k);
             return out;
         }, false},
        {"lane-counts", {{"axis"}}, "the floats of the target's vector, half and a quarter of them, where the extent comes in so many",
         [](const Question& q) {
             std::vector<Term> out;
             const AxisFact* a = q.arguments[0].eclass == none ? nullptr : facts(q).axis(q.arguments[0].eclass);
             if (a)
                 for (std::int64_t k : lane_counts(facts(q).machine(), a->extent)) out.emplace_back(k);
             return out;
         }},
        {"output-loops", {{"statement", "schedule"}}, "each of the naive loops that move the output", [](const Question& q) { return naive_axes(q, false).value_or(std::vector<Term>{}); }},
        {"sum-loops", {{"statement", "schedule"}}, "each of the naive loops that are summed over", [](const Question& q) { return naive_axes(q, true).value_or(std::vector<Term>{}); }},
    };
}

std::vector<GuardKind> loop_guards() {
    return {
        {"weights-alone", {{"statement", "schedule", "tile"}}, "what the tile's lanes walk moves weights and outputs, no input, and there is more of it than one tile",
         [](const Question& q) -> Verdict {
             const NaiveLoops* nest = loops(q);
             const auto t = tile(q, 2);
             if (!nest || !t) return {false, "no tile", {}};
             const auto loop = nest->find(t->vector_axis());
             const bool yes = loop && nest->loops[*loop].weights_only && nest->loops[*loop].extent > t->of(t->vector_axis()).elements();
             return {yes, yes ? to_string(t->vector_axis()) : "the lanes walk an input", {}};
         }, false},
        {"own-inputs", {{"statement", "schedule", "tile"}}, "the first loop outside the tile moves the input: what it goes over in one step, it alone reads",
         [](const Question& q) -> Verdict {
             const NaiveLoops* nest = loops(q);
             const auto t = tile(q, 2);
             if (!nest || !t) return {false, "no tile", {}};
             for (const NaiveLoop& l : nest->loops)
                 if (!l.reduction && l.extent > t->of(l.axis).elements()) return {!l.weights_only, to_string(l.axis), {}};
             return {false, "nothing is outside the tile", {}};
         }, false},
    };
}

}  // namespace loopegg
