#include "rules/nest_language.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/functions.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "nest/net/net.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/statement_kinds.hpp"
#include "nest/term/value.hpp"
#include "nest/term/wrapped_statement.hpp"
#include "rules/judged.hpp"
#include "rules/loop_lists.hpp"
#include "rules/nest_facts.hpp"
#include "rules/nest_judge.hpp"
#include "rules/net_language.hpp"

namespace loopegg {
namespace {

using Value = std::optional<std::int64_t>;

const AxisFact* axis(const Question& q, std::size_t i) { return q.arguments[i].eclass == none ? nullptr : nest_facts(q).axis(q.arguments[i].eclass); }
const ScheduleFact* schedule(const Question& q, std::size_t i) {
    return q.arguments[i].eclass == none ? nullptr : nest_facts(q).schedule(q.arguments[i].eclass);
}

std::string name_of(const AxisFact& a) { return to_string(bare(to_term(a.digit))); }

Verdict no(std::string why) { return {false, std::move(why), {}}; }
Verdict yes(std::string why) { return {true, std::move(why), {}}; }

GuardKind axis_guard(std::string name, std::string summary, bool (*holds)(const AxisFact&), std::string otherwise) {
    return {std::move(name), {{"axis"}}, std::move(summary), [holds, otherwise](const Question& q) {
                const AxisFact* a = axis(q, 0);
                if (a == nullptr) return no("not an axis");
                return holds(*a) ? yes(name_of(*a)) : no(name_of(*a) + " " + otherwise);
            }};
}

GuardKind bounding(GuardKind guard) {
    guard.bounds_search = true;
    return guard;
}

bool share_iterators(const AxisFact& a, const AxisFact& b) {
    return std::any_of(a.iterators.begin(), a.iterators.end(),
                       [&](const Term& x) { return std::find(b.iterators.begin(), b.iterators.end(), x) != b.iterators.end(); });
}

std::vector<Term> divisors_between(std::int64_t n, std::int64_t low, std::int64_t high) {
    std::vector<Term> out;
    for (std::int64_t k = std::max<std::int64_t>(low, 2); k <= high && k < n; ++k)
        if (n % k == 0) out.emplace_back(k);
    return out;
}

std::vector<GuardKind> guards() {
    std::vector<GuardKind> all{
        {"permutable",
         {{"axis", "axis"}},
         "two neighbouring loops may change places: no dependence is reversed (no sum reordered, with strict-fp)",
         [](const Question& q) {
             const AxisFact *a = axis(q, 0), *b = axis(q, 1);
             if (a == nullptr || b == nullptr) return no("not axes");
             if (permutable(*a, *b, nest_facts(q).strict_fp())) return yes(name_of(*a) + " and " + name_of(*b) + " commute");
             return no(name_of(*a) + " and " + name_of(*b) + " both carry an order that must be kept");
         }},
        axis_guard(
            "parallel", "iterations of the loop may run at once: none accumulates into another's result", [](const AxisFact& a) { return !a.ordered; },
            "carries a result from one iteration to the next"),
        axis_guard(
            "reduction", "the loop carries an accumulation, and nothing else", [](const AxisFact& a) { return a.ordered && !a.sequential; }, "is no reduction"),
        {"reassociable",
         {{"axis"}},
         "the loop carries a sum, which may be taken in parts: not with strict-fp",
         [](const Question& q) {
             const AxisFact* a = axis(q, 0);
             if (a == nullptr || !a->ordered || a->sequential) return no("no reduction");
             return nest_facts(q).strict_fp() ? no("sums keep their order (strict-fp)") : yes(name_of(*a));
         }},
        {"allow-reassociation",
         {},
         "sums may be taken another way, with other rounding: not with strict-fp",
         [](const Question& q) { return nest_facts(q).strict_fp() ? no("sums keep their order (strict-fp)") : yes(""); }},
        {"may-round",
         {{"kind"}},
         "operands of products may be rounded so (bf16, fp16, int8, tf32): only where the user allows it, and the machine multiplies such numbers faster",
         [](const Question& q) {
             const Argument& given = q.arguments[0];
             std::string kind = given.eclass == none ? given.word.text() : q.graph.smallest_term(given.eclass).op().text();
             if (kind.starts_with(tensor_place)) kind = kind.substr(tensor_place.size());
             const auto multiplies = [&](const std::vector<MatrixUnit>& units) {
                 return std::any_of(units.begin(), units.end(), [&](const MatrixUnit& u) { return u.operands == kind; });
             };
             return multiplies(nest_facts(q).gpu().units) || multiplies(nest_facts(q).cpu().units) ? yes(kind) : no("operands keep all of their digits");
         },
         false},
        bounding(axis_guard(
            "unsplit", "the axis is an unchanged iterator of the statement", [](const AxisFact& a) { return a.depth == 0; },
            "is split, fused or restricted already")),
        bounding(axis_guard(
            "digit", "the axis is an iterator or a digit of one: no pair, span or diagonal", [](const AxisFact& a) { return a.digit.base.size() == 0; },
            "is no digit of an iterator")),
        bounding({"shallow",
                  {{"axis", "number"}},
                  "the axis is made of at most so many splits, pairs, spans and diagonals",
                  [](const Question& q) {
                      const AxisFact* a = axis(q, 0);
                      if (a == nullptr || !q.arguments[1].number) return no("not an axis");
                      return a->depth <= *q.arguments[1].number ? yes(name_of(*a)) : no(name_of(*a) + " is deep enough");
                  }}),
        {"apart",
         {{"axis", "axis"}},
         "the axes have no iterator in common",
         [](const Question& q) {
             const AxisFact *a = axis(q, 0), *b = axis(q, 1);
             if (a == nullptr || b == nullptr) return no("not axes");
             return share_iterators(*a, *b) ? no("both walk one iterator") : yes(name_of(*a) + ", " + name_of(*b));
         }},
        {"channels",
         {{"axis", "axis"}},
         "the first moves the output and the second is summed over, and they have no iterator in common: their diagonal blocks still give every output a value",
         [](const Question& q) {
             const AxisFact *a = axis(q, 0), *b = axis(q, 1);
             if (a == nullptr || b == nullptr) return no("not axes");
             if (share_iterators(*a, *b)) return no("both walk one iterator");
             if (a->ordered) return no(name_of(*a) + " does not move the output");
             if (!b->ordered || b->sequential) return no(name_of(*b) + " is no reduction");
             return yes(name_of(*a) + " moves the output, " + name_of(*b) + " is summed over");
         }},
        {"unpacked",
         {{"statement", "buffer"}},
         "the statement says nothing yet of how the buffer is laid out, and has it",
         [](const Question& q) {
             const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
             if (s == nullptr || !s->statement) return no("not a statement");
             int buffer = s->statement->buffer(q.arguments[1].word.text());
             if (buffer < 0) return no("it has no buffer " + q.arguments[1].word.text());
             return s->statement->buffers[static_cast<std::size_t>(buffer)].blocking.empty() ? yes("")
                                                                                             : no(q.arguments[1].word.text() + " is laid out already");
         }},
        {"blocks",
         {{"statement", "buffer", "axis-name", "number"}},
         "the iterator walks a dimension of the buffer step by step, in whole blocks of so many",
         [](const Question& q) {
             const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
             if (s == nullptr || !s->statement || !q.arguments[3].number) return no("not a statement");
             const int at = s->statement->axis(q.arguments[2].word.text()), buffer = s->statement->buffer(q.arguments[1].word.text());
             if (at < 0 || buffer < 0) return no("no such axis or buffer");
             if (!walked_dimension(*s->statement, buffer, at)) return no(q.arguments[2].word.text() + " walks no dimension of the buffer by itself");
             std::int64_t extent = s->statement->axes[static_cast<std::size_t>(at)].extent, k = *q.arguments[3].number;
             return extent % k == 0 ? yes("") : no(fmt::format("{} does not divide {}", k, extent));
         }},
    };
    for (auto& [name, summary, holds] : std::initializer_list<std::tuple<const char*, const char*, bool (*)(const Term&)>>{
             {"convolution", "the statement is a convolution, and nothing comes after its sums but its own bias", is_convolution},
             {"weighted-sum", "the statement sums products with weights, and nothing comes after its sums", is_weighted_sum},
             {"has-weights", "the statement sums products with weights, whatever comes after its sums", has_weights},
             {"beyond-map", "the statement is more than a function of each element", is_beyond_map},
             {"separate-columns", "a product of matrices, to which nothing is added: its columns can be computed by themselves", has_separate_columns},
             {"each-element", "an element of the output needs only the same element of the input", works_by_element},
             {"each-pair", "an element of the output needs only the same element of the input, and one of another operand", works_by_pair},
             {"sums-columns", "a sum over the columns of the input, with weights or without: it can be taken in blocks of columns", sums_columns}})
        all.push_back({name, {{"statement"}}, summary, [holds](const Question& q) {
                           const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
                           if (s == nullptr || !s->statement) return no("not a statement");
                           return holds(s->plain) ? yes(to_string(s->plain)) : no(to_string(s->plain) + " is not");
                       }});
    all.push_back({"output-shape",
                   {{"statement", "images", "channels", "elements"}},
                   "the output is so many images of so many channels of so many elements",
                   [](const Question& q) {
                       const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
                       if (s == nullptr || !s->statement || s->statement->buffers[0].shape.size() < 2) return no("no output with channels");
                       const Shape& shape = s->statement->buffers[0].shape;
                       const std::int64_t each = element_count(shape) / (shape[0] * shape[1]);
                       const bool same = q.arguments[1].number == shape[0] && q.arguments[2].number == shape[1] && q.arguments[3].number == each;
                       const std::string words = fmt::format("{} images of {} channels of {} elements", shape[0], shape[1], each);
                       return same ? yes(words) : no("it is " + words);
                   }});
    all.push_back({"epilogue-function",
                   {{"word"}},
                   "the function can be done to each output element as it is finished",
                   [](const Question& q) {
                       if (q.arguments[0].eclass == none) return no("no function");
                       const std::string word = q.graph.smallest_term(q.arguments[0].eclass).op().text();
                       return is_epilogue_function(word) ? yes(word) : no(word + " is no epilogue");
                   },
                   false});
    for (GuardKind& guard : net_guards()) all.push_back(std::move(guard));
    all.push_back({"comes-back",
                   {{"how", "axis"}},
                   "what is left out of the axis may be restored that way: pointwise where its first values are the first output channels",
                   [](const Question& q) {
                       const AxisFact* a = axis(q, 1);
                       if (a == nullptr) return no("not an axis");
                       const Argument& word = q.arguments[0];
                       const std::string how =
                           word.eclass == none ? word.word.text() : q.graph.smallest_term(word.eclass).op().text();  // the only node of its class
                       const auto leaf = axis_name(a->digit.base);
                       if (how != "pointwise" || (leaf && leaf->name == "co" && a->digit.top())) return yes(name_of(*a) + " comes back by " + how);
                       return no(name_of(*a) + " is not the leading part of the output channels");
                   }});
    GuardKind capacity;
    capacity.name = "capacity";
    capacity.summary = "the conditions of the phase hold for this step alone";
    capacity.capacity = true;
    all.push_back(std::move(capacity));
    return all;
}

// One of the nests that a convolution becomes (bilinear_nests.hpp). Any term of the convolution's class will do, because all have one domain.
ListKind bilinear_list(std::string name, std::string summary, Term BilinearNests::*which) {
    ListKind list{std::move(name), {{"nest", "algorithm", "algorithm"}}, std::move(summary), [which](const Question& q) -> std::vector<Term> {
                      const auto any_none = [](const Argument& a) { return a.eclass == none; };
                      if (std::any_of(q.arguments.begin(), q.arguments.end(), any_none)) return {};
                      const auto down = bilinear_form(q.graph.smallest_term(q.arguments[1].eclass));
                      const auto along = bilinear_form(q.graph.smallest_term(q.arguments[2].eclass));
                      if (!down || !along) return {};
                      const Term nest = q.graph.smallest_term(q.arguments[0].eclass);
                      if (!nest.is("nest", 2) && !nest.is("restore", 2)) return {};
                      const auto nests = bilinear_nests(nest, {*down, *along});
                      return nests ? std::vector{(*nests).*which} : std::vector<Term>{};
                  }};
    list.facts_only = false;
    return list;
}

// The order in which a statement has the dimensions of a buffer, where the buffer takes the place of what a move reads or writes.
std::vector<Term> buffer_orders(const Question& q) {
    const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
    if (s == nullptr || !s->statement) return {};
    const Argument& word = q.arguments[1];
    const int buffer = s->statement->buffer(word.eclass == none ? word.word.text() : q.graph.smallest_term(word.eclass).op().text());
    Shape moved;
    for (std::size_t i = 2; i < q.arguments.size(); ++i) {
        if (!q.arguments[i].number) return {};
        moved.push_back(*q.arguments[i].number);
    }
    const std::int64_t p = moved.front();
    moved.erase(moved.begin());
    const auto order = buffer < 0 ? std::nullopt : order_beyond_move(*s->statement, buffer, p, moved);
    return order ? std::vector{Term(*order)} : std::vector<Term>{};
}

std::vector<ListKind> lists() {
    return {
        {"orders",
         {{"statement", "buffer", "number", "number", "number", "number", "number"}},
         "the order of the buffer's dimensions with which a move of so many elements, which reads in the order of the first number, is left out",
         buffer_orders,
         false},
        bilinear_list("bilinear-input", "of a convolution: its input transformed by two bilinear algorithms, down columns and along rows",
                      &BilinearNests::input),
        bilinear_list("bilinear-products", "of a convolution: the products of its transformed input with transformed weights", &BilinearNests::products),
        bilinear_list("bilinear-output", "of a convolution: those products transformed back, and what follows its sums", &BilinearNests::output),
        {"column-blocks",
         {{"statement"}},
         "of a sum over the columns of its input: how many columns a block may have",
         [](const Question& q) {
             const StatementFact* s = q.arguments[0].eclass == none ? nullptr : nest_facts(q).statement(q.arguments[0].eclass);
             return s && s->statement ? column_blocks(s->plain) : std::vector<Term>{};
         },
         false},
        {"row-loops",
         {{"number", "number"}},
         "the loops over so many rows of so many elements, as a list of schedules with one in it",
         [](const Question& q) -> std::vector<Term> {
             if (!q.arguments[0].number || !q.arguments[1].number) return {};
             return {naive_schedule(statement_of(Term("row_divide", {Term(*q.arguments[0].number), Term(*q.arguments[1].number)})))};
         },
         false},
        {"divisors",
         {{"axis"}},
         "the proper divisors of the extent",
         [](const Question& q) {
             const AxisFact* a = axis(q, 0);
             return a ? divisors_between(a->extent, 2, a->extent - 1) : std::vector<Term>{};
         }},
        {"tiles",
         {{"axis", "number", "number"}},
         "the divisors of the extent from the first number to the second",
         [](const Question& q) {
             const AxisFact* a = axis(q, 0);
             return a && q.arguments[1].number && q.arguments[2].number ? divisors_between(a->extent, *q.arguments[1].number, *q.arguments[2].number)
                                                                        : std::vector<Term>{};
         }},
        {"uneven-tiles",
         {{"axis", "number", "number"}},
         "where no power of two from the first number to the second divides the extent: those below it, each with a shorter last tile",
         [](const Question& q) {
             const AxisFact* a = axis(q, 0);
             std::vector<Term> out;
             if (a == nullptr || !q.arguments[1].number || !q.arguments[2].number) return out;
             for (std::int64_t k = 1; k <= *q.arguments[2].number && k < a->extent; k *= 2) {
                 if (k < *q.arguments[1].number) continue;
                 if (a->extent % k == 0) return std::vector<Term>{};
                 out.emplace_back(k);
             }
             return out;
         }},
        {"coarse",
         {{"axis"}},
         "a few divisors: 2, half and a quarter of the extent",
         [](const Question& q) {
             const AxisFact* a = axis(q, 0);
             std::vector<Term> out;
             if (a == nullptr) return out;
             for (std::int64_t k : {std::int64_t{2}, a->extent / 4, a->extent / 2})
                 if (k > 1 && k < a->extent && a->extent % k == 0 && std::find(out.begin(), out.end(), Term(k)) == out.end()) out.emplace_back(k);
             return out;
         }},
        {"common-divisors",
         {{"axis", "axis"}},
         "the numbers above 1 that divide both extents",
         [](const Question& q) {
             const AxisFact *a = axis(q, 0), *b = axis(q, 1);
             std::vector<Term> out;
             if (a == nullptr || b == nullptr) return out;
             for (std::int64_t k = 2; k <= std::min(a->extent, b->extent); ++k)
                 if (a->extent % k == 0 && b->extent % k == 0) out.emplace_back(k);
             return out;
         }},
    };
}

std::vector<FunctionKind> functions() {
    return {
        {"extent",
         {{"axis"}},
         "how many values the axis has",
         [](const Question& q) -> Value {
             const AxisFact* a = axis(q, 0);
             return a ? Value(a->extent) : Value{};
         }},
        {"instances",
         {{"schedule"}},
         "how many instances the list visits",
         [](const Question& q) -> Value {
             const ScheduleFact* s = schedule(q, 0);
             return s ? Value(static_cast<std::int64_t>(std::min(s->instances, 9e18))) : Value{};
         }},
        {"output-tile",
         {{"schedule"}},
         "how many output elements the list writes, as far as its own loops go",
         [](const Question& q) -> Value {
             const ScheduleFact* s = schedule(q, 0);
             return s ? Value(s->output_tile) : Value{};
         }},
    };
}

void statement_operators(std::vector<OperatorKind>& all) {
    for (const StatementForm& form : statement_forms()) {
        OperatorKind op{form.op, "statement", {}};
        for (bool word : form.words) op.children.push_back(word ? "" : "number");
        all.push_back(std::move(op));
    }
}

std::vector<OperatorKind> operators() {
    std::vector<OperatorKind> all{
        {"nest", "nest", {"statement", "schedule"}},
        {"restore", "nest", {"how", "nest"}},
        {"site", "value", {"nest"}},
        {"then", "value", {"value", "nest"}},
        {"feed", "value", {"buffer", "value", "nest"}},
        {"prepare", "value", {"preparation", "value"}},
        {"with", "value", {"value", "nest"}},
        {"both", "value", {"value", "nest", "nest"}},
        {"sums", "value", {"value", "nest", "nest"}},
        {"columns", "value", {"number", "nest"}},
        {"blocks", "value", {"number", "value"}},
        {"epilogue", "statement", {"function", "statement"}},
        {"layout", "statement", {"buffer", "iterator", "number", "statement"}},
        {"order", "statement", {"buffer", "number", "statement"}},
        {"times", "function", {""}},
        {"at", "schedule", {"axis", "schedule"}},
        {"par", "schedule", {"axis", "schedule"}},
        {"vec", "schedule", {"axis", "schedule"}},
        {"unroll", "schedule", {"axis", "schedule"}},
        {"bind", "schedule", {"place", "axis", "schedule"}},
        {"partial", "schedule", {"loop-kind", "axis", "schedule"}},
        {"stage", "schedule", {"buffer", "schedule"}},
        {"cat", "schedule", {"schedule", "schedule"}},
        {"done", "schedule", {}},
        {"quo", "axis", {"axis", "number"}},
        {"rem", "axis", {"axis", "number"}},
        {"pair", "axis", {"axis", "axis"}},
        {"span", "axis", {"axis", "number", "number"}},
        {"diag", "axis", {"number", "axis", "axis"}},
        {"shared", "buffer", {"buffer"}},
        {"ahead", "buffer", {"buffer"}},
        {"local", "buffer", {"buffer"}},
    };
    for (const char* word : {"serial", "par", "vec", "unroll"}) all.push_back({word, "loop-kind", {}});
    for (const char* word : {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread"})
        all.push_back({word, "place", {}});
    for (const std::string& kind : rounding_names()) all.push_back({std::string(tensor_place) + kind, "place", {}});
    for (OperatorKind& op : net_operator_kinds()) all.push_back(std::move(op));
    all.push_back({"bilinear", "preparation", {"algorithm", "algorithm"}});
    for (const char* word : {"fold-bias", "fold-scale"}) all.push_back({word, "preparation", {}});
    for (const char* word : {"repeat", "zero", "pointwise"}) all.push_back({word, "how", {}});
    for (const char* word : {"O", "I", "J", "K", "W", "A", "B"}) all.push_back({word, "buffer", {}});
    for (const char* word : {"bias", "scale_shift", "add"}) all.push_back({word, "function", {}});
    for (const ElementFunction& f : element_functions())
        if (is_plain_function(f.name)) all.push_back({std::string(f.name), "function", {}});
    for (const char* word : {"n", "g", "co", "ci", "oh", "ow", "kh", "kw", "b", "i", "j", "k", "c", "x", "r", "s", "th", "tw", "u", "v"})
        all.push_back({word, "iterator", {}});
    statement_operators(all);
    return all;
}

// Completes nests, wherever they are in a row of sites.
Term prepared_term(const Term& term) {
    if (term.is("nest", 2) || term.is("restore", 2)) return complete(term);
    if (!is_value(term) && !is_net(term)) return term;
    std::vector<Term> children;
    for (const Term& child : term.children()) children.push_back(prepared_term(child));
    return Term(term.op(), std::move(children));
}

}  // namespace

const Language& nest_language() {
    static const Language language = [] {
        Language l;
        l.name = "nest";
        l.operators = operators();
        l.leaf_kind = [](std::string_view word) -> std::optional<std::string> {
            // Functions of (zip F SIZE) and (map F SIZE) that elsewhere are operators or have no meaning.
            if (word == "+" || word == "-" || word == "*" || word == "copy") return "function";
            if (word.starts_with('@')) return "site";  // net_name
            if (rational_matrix(word)) return "matrix";
            if (bilinear_form(Term(word))) return "algorithm";
            auto name = axis_name(Term(word));
            return name && name->extent > 0 ? std::optional<std::string>("axis") : std::nullopt;
        };
        l.guards = guards();
        l.lists = lists();
        l.functions = functions();
        for (ListKind& k : loop_lists()) l.lists.push_back(std::move(k));
        for (ListKind& k : net_lists()) l.lists.push_back(std::move(k));
        for (FunctionKind& f : loop_functions()) l.functions.push_back(std::move(f));
        for (FunctionKind& f : net_functions()) l.functions.push_back(std::move(f));
        l.make_facts = [] { return std::make_shared<NestAnalysis>(NestAnalysis::Options{.proven = !uses_unproved_rules()}); };
        l.prepare = prepared_term;
        l.implied_guards = [](const RuleVerdict& v) {
            std::vector<std::string> all;
            if (v.reorders_sums) all.push_back("(allow-reassociation)");
            for (const std::string& kind : v.roundings) all.push_back("(may-round " + kind + ")");
            for (const auto& [variable, most] : v.most) all.push_back("(<= " + variable + " " + std::to_string(most) + ")");
            return all;
        };
        l.judge = [](const Language&, const Rule& rule, bool deep) { return judge_nest_rule(rule, deep); };
        return l;
    }();
    return language;
}

}  // namespace loopegg
