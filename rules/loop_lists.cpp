#include "rules/loop_lists.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "nest/term/facts.hpp"
#include "rules/block_tiles.hpp"

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

// Loops are cut by extents alone: where a restriction cuts across a digit, a cut could miss a part of it.
bool covers(const Question& q, const NaiveLoops& nest, const Term& tile) {
    Term all("done");
    for (const std::string_view part : block_parts)
        for (const Term& a : part_of_block(nest, tile, part).value_or(std::vector<Term>{})) all = Term("at", {a, all});
    return facts(q).visits_the_same(all, q.arguments[1].eclass);
}

ListKind tiles(const char* name, const char* summary, TileKind kind) {
    return {name, {{"statement", "schedule", "number"}}, summary, [kind](const Question& q) {
        const NaiveLoops* nest = loops(q);
        const Statement* s = statement(q);
        std::vector<Term> out;
        if (!nest || !s || !q.arguments[2].number) return out;
        for (Term& t : block_tiles(*s, *nest, facts(q).gpu(), kind, static_cast<std::size_t>(*q.arguments[2].number)))
            if (covers(q, *nest, t)) out.push_back(std::move(t));
        return out;
    }};
}

}  // namespace

std::vector<FunctionKind> loop_functions() {
    std::vector<FunctionKind> all;
    for (const char* op : {"at", "unroll", "stage"}) all.push_back(loop_builder(op, false));
    for (const char* op : {"bind", "partial"}) all.push_back(loop_builder(op, true));
    all.push_back(terms_function("block", "axes", {{"statement", "schedule", "block-tile", "part"}},
                                 "the loops of one part of a nest that is tiled for blocks of threads (rules/block_tiles.hpp)", [](const Question& q) -> Terms {
                                     const NaiveLoops* nest = loops(q);
                                     const auto t = term(q, 2);
                                     return nest && t ? part_of_block(*nest, *t, q.arguments[3].word.text()) : std::nullopt;
                                 }));
    all.push_back(terms_function("fused", "axes", {{"axes"}}, "all of them as one axis; no value where that is none: a part of an axis and a digit of it",
                                 [](const Question& q) -> Terms {
                                     const std::vector<Term> all = terms(q, 0);
                                     if (all.empty()) return all;
                                     Term one = all[0], loops("done");
                                     for (std::size_t i = 1; i < all.size(); ++i) one = Term("pair", {one, all[i]});
                                     for (std::size_t i = all.size(); i-- > 0;) loops = Term("at", {all[i], loops});
                                     if (all.size() > 1 && !facts(q).visits_the_same(Term("at", {one, Term("done")}), loops)) return {};
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
    return all;
}

std::vector<ListKind> loop_lists() {
    return {
        tiles("shared-tiles", "so many tiles for blocks of threads whose operands fit the memory that they share, cheapest first by the estimate",
              TileKind::shared),
        tiles("split-tiles", "the same, with several threads for each sum", TileKind::split),
        tiles("plain-tiles", "so many tiles for blocks of threads that share nothing", TileKind::plain),
    };
}

}  // namespace loopegg
