#include "rules/loop_lists.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/rounding.hpp"
#include "rules/block_tiles.hpp"
#include "rules/nest_facts.hpp"
#include "rules/register_tiles.hpp"
#include "rules/sweep_tiles.hpp"
#include "rules/tile_contracts.hpp"
#include "rules/unit_tiles.hpp"

namespace loopegg {
namespace {

using Terms = std::optional<std::vector<Term>>;

// The naive loops of the nest whose statement and schedule are the first two arguments.
const NaiveLoops* loops(const Question& q) {
    if (q.arguments[0].eclass == none || q.arguments[1].eclass == none) return nullptr;
    return nest_facts(q).naive_loops(q.arguments[0].eclass, q.arguments[1].eclass);
}

const Statement* statement(const Question& q) {
    const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
    return s ? s->statement.get() : nullptr;
}

// An argument as terms: the terms of a function, the term of a variable, a word or a number.
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

FunctionKind terms_function(const char* name, const char* kind, Signature signature, const char* summary, std::function<Terms(const Question&)> made) {
    FunctionKind f;
    f.name = name, f.signature = std::move(signature), f.summary = summary, f.kind = kind, f.facts_only = false, f.terms = std::move(made);
    return f;
}

// (OP AXES REST), (OP WORD AXES REST): the loop for each axis around the rest.
FunctionKind loop_builder(const char* op, bool word) {
    return terms_function(op, "schedule", word ? Signature{{"word", "axes", "schedule"}} : Signature{{"axes", "schedule"}},
                          "one such loop for each axis of a list, outermost first", [name = std::string(op), word](const Question& q) -> Terms {
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
                          });
}

// The loops of one part of a tiled nest. Loops of one iteration are the innermost loops of a part that runs serially: `outputs` where they move the output,
// and `sums` where they do not. A tile without such parts has none of these loops, and does not cover a nest that has some.
struct Part {
    std::optional<std::vector<Term>> (*of)(const NaiveLoops&, const Term& tile, std::string_view part);
    std::string_view outputs{}, sums{};

    std::optional<std::vector<Term>> operator()(const NaiveLoops& nest, const Term& tile, std::string_view part) const {
        auto loops = of(nest, tile, part);
        if (!loops) return {};
        for (const NaiveLoop& l : nest.fixed)
            if (part == (l.reduction ? sums : outputs)) loops->push_back(l.axis);
        return loops;
    }
    explicit operator bool() const { return of != nullptr; }
};
constexpr Part of_tile{part_of_tile, "own", "window"}, of_rest{part_of_rest, "own", "window"};
constexpr Part of_block{part_of_block, "own", "window"};
constexpr Part of_sweep{part_of_sweep, "steps", "steps"}, of_sweep_rest{part_of_sweep_rest, "steps", "steps"};
constexpr Part of_transform{part_of_transform};
constexpr Part of_unit{part_of_unit, "own", "sums"}, of_unit_rest{part_of_unit_rest, "own", "sums"};
constexpr Part nothing{nullptr};

Term around(const std::vector<Term>& axes, Term inner) {
    for (const Term& a : axes) inner = Term("at", {a, inner});
    return inner;
}

// Whether the loops of a tile visit all that the nest visits. Loops are cut by extents alone, so a cut could miss a part where a restriction cuts across a
// digit. Where the tile has a rest, the rest has the loops of the first part too.
bool covers(const Question& q, const NaiveLoops& nest, const Term& tile, const Part& part_of, std::span<const std::string_view> parts, const Part& rest_of) {
    const auto loops = [&](const Part& of) {
        Term all("done");
        for (const std::string_view part : parts) all = around(of(nest, tile, part).value_or(std::vector<Term>{}), all);
        return all;
    };
    const Term all = loops(part_of);
    return nest_facts(q).visits_the_same(rest_of ? Term("cat", {all, loops(rest_of)}) : all, q.arguments[1].eclass);
}

FunctionKind parts_function(const char* name, const char* tile, const char* summary, Part part_of) {
    return terms_function(name, "axes", {{"statement", "schedule", tile, "part"}}, summary, [part_of](const Question& q) -> Terms {
        const NaiveLoops* nest = loops(q);
        const auto t = term(q, 2);
        return nest && t ? part_of(*nest, *t, q.arguments[3].word.text()) : std::nullopt;
    });
}

// Tiles of a statement's naive loops. Only tiles that cover the nest are listed.
struct Tiling {
    Part part_of;
    std::span<const std::string_view> parts;
    std::function<std::vector<Term>(const Question&, const Statement&, const NaiveLoops&)> tiles;
    Part rest_of = nothing;
};

// Whether the parts of a tile, and of its rest, are what the contract of the list says: the judge of rules relies on it.
bool keeps_its_contract(const TileContract& contract, const Tiling& tiling, const NaiveLoops& nest, const Term& tile, bool strict_fp) {
    const auto of = [&](const Part& part_of) {
        return [&nest, &tile, part_of](std::string_view part) { return part_of(nest, tile, part).value_or(std::vector<Term>{}); };
    };
    if (!keeps_contract(contract, nest, of(tiling.part_of), strict_fp)) return false;
    if (!tiling.rest_of) return true;
    return of(tiling.part_of)("shared") == of(tiling.rest_of)("shared") && keeps_contract(contract, nest, of(tiling.rest_of), strict_fp);
}

ListKind tiles_that_cover(const char* name, Signature signature, const char* summary, Tiling tiling) {
    const TileContract* contract = contract_of_list(name);
    require(contract != nullptr, "every list of tiles has a contract");
    return {name, std::move(signature), summary, [tiling = std::move(tiling), contract](const Question& q) {
                const NaiveLoops* nest = loops(q);
                const Statement* s = statement(q);
                std::vector<Term> out;
                if (!nest || !s || s->keeps_an_order() || (q.arguments.size() > 2 && !q.arguments[2].number)) return out;
                for (Term& t : tiling.tiles(q, *s, *nest))
                    if (keeps_its_contract(*contract, tiling, *nest, t, nest_facts(q).strict_fp()) &&
                        covers(q, *nest, t, tiling.part_of, tiling.parts, tiling.rest_of))
                        out.push_back(std::move(t));
                return out;
            }};
}

// The third argument is how many tiles to list.
std::size_t how_many(const Question& q) { return static_cast<std::size_t>(*q.arguments[2].number); }

ListKind blocks_of_threads(const char* name, const char* summary, TileKind kind) {
    const bool tensor = kind == TileKind::tensor || kind == TileKind::split_tensor;
    const std::span<const std::string_view> parts = tensor ? std::span<const std::string_view>(tensor_parts) : block_parts;
    return tiles_that_cover(name, {{"statement", "schedule", "number"}}, summary,
                            {of_block, parts, [kind](const Question& q, const Statement& s, const NaiveLoops& nest) {
                                 return block_tiles(s, nest, nest_facts(q).gpu(), kind, how_many(q));
                             }});
}

ListKind tiles_of_registers(const char* name, const char* summary, SharedLoop shared) {
    return tiles_that_cover(name, {{"statement", "schedule", "number"}}, summary,
                            {of_tile, tile_parts,
                             [shared](const Question& q, const Statement& s, const NaiveLoops& nest) -> std::vector<Term> {
                                 if (s.keeps_an_order() || !s.coefficients.empty()) return {};  // transforms have lists of their own
                                 return register_tiles(nest, nest_facts(q).cpu(), shared, how_many(q));
                             },
                             shared == SharedLoop::cut ? of_rest : nothing});
}

ListKind tiles_of_units(const char* name, const char* summary, UnitRows rows) {
    return tiles_that_cover(
        name, {{"statement", "schedule", "number"}}, summary,
        {of_unit, unit_parts,
         [rows](const Question& q, const Statement& s, const NaiveLoops& nest) { return unit_tiles(s, nest, nest_facts(q).cpu(), rows, how_many(q)); },
         rows == UnitRows::cut ? of_unit_rest : nothing});
}

ListKind tiles_of_sweeps(const char* name, const char* summary, SweepKind kind) {
    return tiles_that_cover(name, {{"statement", "schedule"}}, summary,
                            {of_sweep, sweep_parts, [kind](const Question& q, const Statement& s, const NaiveLoops& nest) {
                                 return sweep_tiles(s, nest, nest_facts(q).cpu(), kind);
                             }});
}

ListKind cuts_of_sweeps(const char* name, const char* summary, SweepKind kind) {
    return tiles_that_cover(
        name, {{"statement", "schedule"}}, summary,
        {of_sweep, sweep_parts,
         [kind](const Question& q, const Statement& s, const NaiveLoops& nest) { return cut_sweeps(s, nest, nest_facts(q).cpu(), kind); }, of_sweep_rest});
}

ListKind tiles_of_transforms(const char* name, const char* summary, TransformKind kind) {
    return tiles_that_cover(name, {{"statement", "schedule"}}, summary,
                            {of_transform, transform_parts,
                             [kind](const Question& q, const Statement& s, const NaiveLoops&) { return transform_tiles(s, nest_facts(q).cpu(), kind); }});
}

// Several units may multiply numbers of one kind: the tile decides which of them serves.
std::vector<Term> units(const Question& q) {
    std::set<std::string> kinds;
    for (const MatrixUnit& u : nest_facts(q).gpu().units) kinds.insert(u.operands);
    for (const MatrixUnit& u : nest_facts(q).cpu().units) kinds.insert(u.operands);
    std::vector<Term> out;
    for (const std::string& kind : kinds) out.emplace_back(std::string(tensor_place) + kind);
    return out;
}

std::vector<Term> units_of_tile(const Question& q) {
    std::vector<Term> all = units(q);
    const auto tile = term(q, 2);
    if (const auto depth = tile ? depth_of_tensor_tile(*tile) : std::nullopt) {
        const auto& gpu = nest_facts(q).gpu().units;
        std::erase_if(all, [&](const Term& place) {
            const std::string kind = place.op().text().substr(tensor_place.size());
            return std::none_of(gpu.begin(), gpu.end(), [&](const MatrixUnit& u) { return u.operands == kind && u.depth == *depth; });
        });
        return all;
    }
    std::erase_if(all, [&](const Term& place) { return !tile || words_of_tile(*tile) != numbers_in_word(place.op().text().substr(tensor_place.size())); });
    return all;
}

}  // namespace

std::vector<FunctionKind> loop_functions() {
    std::vector<FunctionKind> all;
    for (const char* op : {"at", "par", "vec", "unroll", "stage"}) all.push_back(loop_builder(op, false));
    for (const char* op : {"bind", "partial"}) all.push_back(loop_builder(op, true));
    all.push_back(
        terms_function("cat", "schedule", {{"schedule", "schedule"}}, "the loops of one schedule, and then those of the other", [](const Question& q) -> Terms {
            const auto first = term(q, 0), second = term(q, 1);
            if (!first || !second) return {};
            return std::vector{Term("cat", {*first, *second})};
        }));
    all.push_back(
        parts_function("block", "block-tile", "the loops of one part of a nest that is tiled for blocks of threads (rules/block_tiles.hpp)", of_block));
    all.push_back(parts_function("tile", "register-tile", "the loops of one part of a nest that is tiled for registers (rules/register_tiles.hpp)", of_tile));
    all.push_back(parts_function("rest", "register-tile", "the same of the rest of a nest that is cut where its whole vectors end", of_rest));
    all.push_back(parts_function("sweep", "sweep-tile", "the loops of one part of a nest that goes through memory once (rules/sweep_tiles.hpp)", of_sweep));
    all.push_back(parts_function("sweep-rest", "sweep-tile", "the same of the rest of a nest that is cut where its whole vectors end", of_sweep_rest));
    all.push_back(
        parts_function("transform", "transform-tile", "the loops of one part of a nest that transforms tiles (rules/transform_tiles.hpp)", of_transform));
    all.push_back(parts_function("unit", "unit-tile", "the loops of one part of a nest that is tiled for a unit (rules/unit_tiles.hpp)", of_unit));
    all.push_back(parts_function("unit-rest", "unit-tile", "the same of the rest of a nest that is cut where its whole tiles end", of_unit_rest));
    all.push_back(terms_function("both", "axes", {{"axes", "axes"}}, "the axes of one list, and then those of the other", [](const Question& q) -> Terms {
        std::vector<Term> all = terms(q, 0);
        for (const Term& t : terms(q, 1)) all.push_back(t);
        return all;
    }));
    all.push_back(terms_function("fused", "axes", {{"axes"}}, "all of them as one axis; no value where that is none: a part of an axis and a digit of it",
                                 [](const Question& q) -> Terms {
                                     const std::vector<Term> all = terms(q, 0);
                                     if (all.empty()) return all;
                                     Term one = all[0], loops("done");
                                     for (std::size_t i = 1; i < all.size(); ++i) one = Term("pair", {one, all[i]});
                                     for (std::size_t i = all.size(); i-- > 0;) loops = Term("at", {all[i], loops});
                                     if (all.size() > 1 && !nest_facts(q).visits_the_same(Term("at", {one, Term("done")}), loops)) return {};
                                     return std::vector{one};
                                 }));
    all.push_back(terms_function("shared", "buffers", {{"buffers"}}, "the buffers, in the memory that threads share", [](const Question& q) -> Terms {
        std::vector<Term> out;
        for (const Term& t : terms(q, 0)) out.push_back(Term("shared", {t}));
        return out;
    }));
    all.push_back(terms_function("accumulated", "buffers", {{"statement", "schedule"}}, "the output, where it is summed up", [](const Question& q) -> Terms {
        const Statement* s = statement(q);
        const NaiveLoops* nest = loops(q);
        if (!s || !nest) return {};
        return s->combine != Combine::assign && nest->innermost_reduction() ? std::vector{Term("O")} : std::vector<Term>{};
    }));
    all.push_back(terms_function("padded", "buffers", {{"statement"}}, "the input, where vectors of it may cross its edge", [](const Question& q) -> Terms {
        const Statement* s = statement(q);
        if (!s) return {};
        const bool leaves = std::any_of(s->reads.begin(), s->reads.end(), [&](const Access& a) { return crosses_edge(*s, a); });
        return leaves ? std::vector{Term("I")} : std::vector<Term>{};
    }));
    return all;
}

std::vector<ListKind> loop_lists() {
    return {
        blocks_of_threads("shared-tiles", "so many tiles for blocks of threads whose operands fit the memory that they share, cheapest first by the estimate",
                          TileKind::shared),
        blocks_of_threads("split-tiles", "the same, with several threads for each sum", TileKind::split),
        blocks_of_threads("tensor-tiles", "so many tiles for blocks of warps that multiply on tensor cores, cheapest first by the estimate", TileKind::tensor),
        blocks_of_threads("split-tensor-tiles", "the same, with several warps for each sum", TileKind::split_tensor),
        blocks_of_threads("plain-tiles", "so many tiles for blocks of threads that share nothing", TileKind::plain),
        tiles_of_registers("register-tiles", "so many tiles of registers, cheapest first by the estimate; the cores share the outermost loop",
                           SharedLoop::first),
        tiles_of_registers("row-tiles", "the same; the cores share blocks of rows", SharedLoop::rows),
        tiles_of_registers("weight-tiles", "the same; the cores share the loop that the lanes run along, on which no input depends", SharedLoop::weights),
        tiles_of_registers("channel-tiles",
                           "of a nest that reads beyond the edges of its input: the same; the cores share a loop of which each iteration has an "
                           "input of its own",
                           SharedLoop::channels),
        tiles_of_registers("block-tiles",
                           "the same; the cores share all loops but the one that the lanes run along, where the outermost loop alone gives them unequal shares",
                           SharedLoop::blocks),
        tiles_of_registers("cut-tiles", "the same, of a nest whose lanes' loop is cut where its whole vectors end; a shorter vector is the rest",
                           SharedLoop::cut),
        tiles_of_registers(
            "copied-row-tiles",
            "of a nest whose sums read an input from places that are far apart: the same; the cores share blocks of rows, and each copies its rows",
            SharedLoop::copied),
        tiles_of_sweeps("element-sweeps", "of an elementwise function: vectors along the innermost loop, or along a loop whose elements are in blocks",
                        SweepKind::elements),
        tiles_of_sweeps("row-sweeps", "of a sum along contiguous rows: each lane sums up a part of a row", SweepKind::rows),
        cuts_of_sweeps("cut-element-sweeps", "of a function of each element: the innermost loop is cut where its whole vectors end", SweepKind::elements),
        cuts_of_sweeps("cut-row-sweeps", "of a sum along contiguous rows: the same", SweepKind::rows),
        tiles_of_units("unit-tiles", "of a sum of products with weights: so many tiles for units that multiply tiles, cheapest first by the estimate",
                       UnitRows::equal),
        tiles_of_units("cut-unit-tiles",
                       "the same, of a nest whose loop of rows is cut where whole tiles end, because few rows divide it; fewer rows are the rest",
                       UnitRows::cut),
        {"units-of",
         {{"statement", "schedule", "unit-tile"}},
         "the places of the machine's units that multiply rounded operands, that the user allows, and that fit the tile",
         units_of_tile,
         false},
        {"vector-blocks",
         {{"statement"}},
         "as many channels as a vector has lanes, and half as many",
         [](const Question& q) -> std::vector<Term> {
             const std::int64_t lanes = nest_facts(q).cpu().lanes;
             if (lanes < 4) return {};
             return {Term(lanes), Term(lanes / 2)};
         }},
        tiles_of_transforms("input-transforms", "of a transform of tiles of an input: vectors of channels", TransformKind::input),
        tiles_of_transforms("output-transforms", "of a transform back to tiles of an output: vectors of channels", TransformKind::output),
    };
}

}  // namespace loopegg
