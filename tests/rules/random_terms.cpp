#include "random_terms.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "nest/domain/domain.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/run/interpreter.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

constexpr const char* statements[] = {
    "(conv2d 1 1 8 8 5 5 2 2 1 1 1 1 1 1)",
    "(conv2d 2 2 4 4 6 5 3 3 2 1 1 1 1 1)",
    "(epilogue relu (epilogue add (epilogue bias (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1))))",
    "(conv2d 1 8 1 1 4 4 3 3 1 1 1 1 1 1)",
    "(conv2d 1 1 32 32 2 1 1 1 1 1 0 0 1 1)",
    "(epilogue bias (linear 2 12 8))",
    "(linear 3 10 7)",
    "(matmul 2 4 6 8)",
    "(matmul 3 4 8 5)",
    "(max_pool 1 8 6 6 3 3 2 2 1 1)",
    "(max_pool1d 1 8 12 3 2 1)",
    "(max_pool3d 1 4 4 4 4 3 3 3 2 2 2 1 1 1)",
    "(avg_pool 1 8 4 4 2 2 2 2 0 0)",
    "(avg_pool_inside 1 4 5 5 3 3 2 2 1 1)",
    "(max_pool_uneven 1 8 6 6 3 3 2 2 0 0 1 1)",
    "(avg_pool_uneven 1 8 5 5 2 2 2 2 0 0 1 1)",
    "(avg_pool_inside_uneven 1 4 5 6 3 3 2 2 0 1 1 0)",
    "(row_sum 4 10 3)",
    "(row_sum 3 7 1)",
    "(row_mean 6 16 1)",
    "(row_max 4 8 2)",
    "(row_exp_sum 4 8 1)",
    "(row_square 4 8 2)",
    "(row_softmax 4 8 2)",
    "(row_norm 4 8 1e-05)",
    "(row_exp 4 8)",
    "(row_divide 4 8)",
    "(wide_exp 4 8)",
    "(channel_scale 2 8 9)",
    "(map relu 24)",
    "(scale 0.5 28)",
    "(zip + 24)",
    "(stretch * 2 4 3 4 15 2)",
    "(order I 4132 (move 2 3 4 2))",
    "(order O 213 (order J 132 (epilogue (times 0.5) (matmul 2 4 6 8))))",
    "(bilinear_input [-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1] [1] 2 1 1 4 4 4 1 1)",
    "(bilinear_output [1,1,1,0|0,1,-1,1] [1,1,1,0|0,1,-1,1] 1 4 4 4)",
    "(recurrence 4 6)",
};

bool has_exp(const Term& t) { return t.op().text() == "exp" || std::any_of(t.children().begin(), t.children().end(), has_exp); }

// Whole numbers make sums exact in any order. An exponential is a whole number at 0 alone.
Buffers exact_buffers(const Statement& s) {
    Buffers buffers = whole_number_buffers(s, 5);
    if (s.combine == Combine::sum && has_exp(s.value))
        for (auto& [name, values] : buffers) std::fill(values.begin(), values.end(), 1.0f);
    return buffers;
}

}  // namespace

std::span<const char* const> sampled_statements() { return statements; }

RuleBook shipped_rules(const std::string& file) { return load_rules(shipped("rules/" + file), {.judge = false, .deep = false}); }

bool RuleSelection::takes(const Rule& rule) const { return sets.empty() || std::find(sets.begin(), sets.end(), rule.set) != sets.end(); }

TermSource::TermSource(const char* statement, const RuleSelection& selection)
    : facts_(std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = selection.strict_fp, .proven = true, .gpu = {}, .cpu = {.cores = 2}})) {
    graph_.attach(facts_);
    roots_.push_back(graph_.add(nest_of(statement_of(parse_term(statement)))));
    std::vector<Rewrite> rules;
    for (const RuleBook& book : selection.books)
        for (const Rule* r : book.rules())
            if (selection.takes(*r))
                for (Rewrite& w : bind_rule(*r, {facts_, {}})) rules.push_back(std::move(w));
    Runner runner(graph_, std::move(rules));
    RunOptions options;
    options.limits.iterations = selection.iterations;
    options.limits.nodes = selection.nodes;
    for (const IterationReport& it : runner.run(options).iterations)
        for (const RuleReport& r : it.rules)
            if (r.applications > 0) applied_.insert(r.rule);
    for (const Edge& edge : graph_.edges()) roots_.push_back(graph_.find(edge.to));
    std::sort(roots_.begin(), roots_.end());
    roots_.erase(std::unique(roots_.begin(), roots_.end()), roots_.end());
    if (selection.levels > 0)
        shallow_ = std::make_unique<ShallowTerms>(graph_, selection.levels);
    else
        terms_ = std::make_unique<ClassTerms>(graph_);
}

Term TermSource::sample(std::mt19937_64& random) {
    ClassId root = roots_[random() % roots_.size()];
    return shallow_ ? shallow_->sample(root, random) : terms_->sample(root, random);
}

std::string wrong(const Term& nest, const Check& check, bool* ran) {
    NestParts parts = nest_parts(nest);
    Statement statement = statement_of(parts.statement);
    NestAnalysis analysis;
    const ScheduleFact& fact = analysis.schedule_of(complete(statement, parts.schedule));
    if (!fact.broken.empty()) return "the analysis calls it " + fact.broken;
    Domain domain = domain_of_parts(statement, fact.parts);
    if (check.whole && !domain.whole()) return "the analysis finds another domain";
    if (!isl_visits(statement, parts.schedule, fact.parts)) return "isl finds other instances than the analysis";
    if (auto why = isl_judge(statement, parts.schedule, {.strict_fp = check.strict_fp, .may_restrict = !check.whole})) return "isl: it " + *why;
    if (!check.run) return "";
    try {
        resolve(nest);
    } catch (const UserError& e) {
        std::string why = e.what();
        if (why.find("cannot be distinguished from") != std::string::npos || why.find("touch different tiles") != std::string::npos) return "";
        return why;
    }
    if (ran) *ran = true;
    if (parts.restore == "repeat") domain.restore = Restore::repeat;
    if (parts.restore == "zero") domain.restore = Restore::zero;
    Buffers buffers = check.strict_fp ? random_buffers(statement, 5) : exact_buffers(statement);
    const Term& computes = parts.restore == "pointwise" ? nest[1] : nest;  // the convolution after it is another nest
    return interpret(computes, buffers) == reference(statement, domain, buffers) ? "" : "it computes something else";
}

}  // namespace loopegg
