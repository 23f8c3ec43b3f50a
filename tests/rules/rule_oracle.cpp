#include "rule_oracle.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/value.hpp"
#include "rules/nest_instance.hpp"
#include "rules/nest_judge.hpp"
#include "rules/value_judge.hpp"

namespace loopegg {
namespace {

using Point = std::vector<std::int64_t>;
constexpr std::int64_t max_instances = 1500;

struct Path {
    std::vector<Term> axes;           // a number for the side of a cat
    std::vector<std::size_t> apart;   // loops whose iterations run at once
    std::vector<std::size_t> summed;  // loops whose iterations have sums of their own, which are added up in an order of their own
};

void collect(const Term& sched, Path path, std::vector<Path>& out) {
    if (sched.size() == 0) return out.push_back(std::move(path));
    if (sched.is("cat", 2)) {
        for (std::size_t part : {0u, 1u}) {
            Path here = path;
            here.axes.emplace_back(static_cast<std::int64_t>(part));
            collect(sched[part], std::move(here), out);
        }
        return;
    }
    if (sched.is("stage", 2)) return collect(sched[1], std::move(path), out);
    const std::string& op = sched.op().text();
    const bool sums = op == "bind" && is_tensor_place(sched[0]);
    if (op == "par" || op == "vec" || (op == "bind" && !sums)) path.apart.push_back(path.axes.size());
    if (op == "partial" || sums) path.summed.push_back(path.axes.size());
    path.axes.push_back(loop_axis(sched));
    collect(loop_rest(sched), std::move(path), out);
}

// Where and when each instance runs.
struct Run {
    std::size_t path = 0;
    Point time;
};

struct Runs {
    std::vector<Path> paths;
    std::map<Point, Run> of;  // by the iterators
    std::string fault;
};

template <class Visit>
void each_instance(const Statement& s, const Visit& visit) {
    Point at(s.axes.size(), 0);
    for (;;) {
        visit(at);
        std::size_t i = at.size();
        while (i-- > 0 && ++at[i] == s.axes[i].extent) at[i] = 0;
        if (i == std::size_t(-1)) return;
    }
}

Runs runs_of(const Statement& s, const Term& sched) {
    Runs runs;
    collect(complete(s, sched), {}, runs.paths);
    std::set<Point> times;
    each_instance(s, [&](const Point& at) {
        const auto value_of = [&](const Term& leaf) -> std::optional<std::int64_t> {
            return leaf.integer() ? *leaf.integer() : at[static_cast<std::size_t>(s.axis(axis_name(leaf)->name))];
        };
        int visits = 0;
        for (std::size_t p = 0; p < runs.paths.size(); ++p) {
            Run run{p, {}};
            bool here = true;
            for (const Term& axis : runs.paths[p].axes) {
                const auto value = axis_value(axis, value_of);
                here = here && value;
                run.time.push_back(value.value_or(0));
            }
            if (!here) continue;
            if (++visits > 1) runs.fault = "visits an instance twice";
            if (!times.insert(run.time).second) runs.fault = "runs two instances at one time";
            runs.of[at] = std::move(run);
        }
    });
    return runs;
}

// The elements of O that an instance touches, written ones first.
std::vector<Point> touched(const Statement& s, const Point& at) {
    std::vector<Point> all;
    const auto element = [&](const Access& a) {
        Point e;
        for (const Affine& d : a.index) e.push_back(d.at(at));
        all.push_back(std::move(e));
    };
    element(s.write);
    for (const Access& r : s.reads)
        if (r.buffer == 0) element(r);
    return all;
}

// Of two instances that touch one element, in the order of the statement.
std::string pair_fault(const Runs& runs, const Run& first, const Run& second, bool ordered) {
    if (ordered && !(first.time < second.time)) return "reverses two instances that must keep their order";
    std::size_t d = 0;
    while (d < first.time.size() && d < second.time.size() && first.time[d] == second.time[d]) ++d;
    const auto holds = [d](const std::vector<std::size_t>& loops) { return std::find(loops.begin(), loops.end(), d) != loops.end(); };
    for (const Run* run : {&first, &second}) {
        if (holds(runs.paths[run->path].apart)) return "runs two instances at once that touch one element";
        if (ordered && holds(runs.paths[run->path].summed)) return "takes a sum in parts";
    }
    return {};
}

bool small_enough(const Statement& s) { return s.instances() <= max_instances; }

}  // namespace

std::string schedule_fault(const Term& before, const Term& after, bool neural, bool strict_fp) {
    const NestParts a = nest_parts(before), b = nest_parts(after);
    const Statement s = statement_of(a.statement);
    const Runs left = runs_of(s, a.schedule), right = runs_of(s, b.schedule);
    if (!right.fault.empty()) return right.fault;
    for (const auto& [at, run] : right.of)
        if (!left.of.contains(at)) return "visits what the left side does not visit";
    if (!neural && left.of.size() != right.of.size()) return "leaves instances out";
    if (neural && left.of.size() == right.of.size()) return "leaves nothing out";
    const bool kept = s.keeps_an_order(), ordered = kept || (strict_fp && s.combine != Combine::assign);
    std::map<Point, std::vector<const Run*>> by_element;  // in the order of the statement
    std::string fault;
    for (const auto& [at, run] : right.of)
        for (const Point& e : touched(s, at)) by_element[e].push_back(&run);
    for (const auto& [e, all] : by_element)
        for (std::size_t i = 0; i < all.size() && fault.empty(); ++i)
            for (std::size_t j = i + 1; j < all.size() && fault.empty(); ++j) fault = pair_fault(right, *all[i], *all[j], ordered);
    return fault;
}

namespace {

// Numbers in the conditions of a rule, and their neighbours.
std::vector<std::int64_t> sizes_of(const Rule& rule) {
    std::set<std::int64_t> all{2, 3, 4, 6, 8, 12};
    const std::string& text = rule.text;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
        if (end > i && end - i < 5 && (i == 0 || text[i - 1] == ' '))
            for (const std::int64_t offset : {-1, 0, 1}) {
                const std::int64_t n = std::stoll(text.substr(i, end - i)) + offset;
                if (n >= 2 && n <= 700) all.insert(n);
                if (n >= 2 && n <= 300) all.insert(2 * n);
            }
        i = std::max(end, i + 1);
    }
    return {all.begin(), all.end()};
}

std::string statement_with(std::int64_t a, std::int64_t b, std::mt19937_64& random) {
    static constexpr const char* forms[] = {"(recurrence {0} {1})",
                                            "(recurrence {1} {0})",
                                            "(linear 2 {0} {1})",
                                            "(row_sum {0} {1} 1)",
                                            "(row_softmax 2 {0} 1)",
                                            "(matmul 1 2 {0} {1})",
                                            "(max_pool 1 {0} 4 4 2 2 2 2 0 0)",
                                            "(conv2d 1 1 {0} {1} 3 3 2 2 1 1 0 0 1 1)",
                                            "(conv2d 1 2 {0} 2 3 3 1 1 1 1 0 0 1 1)"};
    return fmt::format(fmt::runtime(forms[random() % std::size(forms)]), a, b);
}

NestAnalysis::Options options(bool strict_fp) {
    return {.strict_fp = strict_fp, .proven = false, .gpu = {.units = units_for_trials(true)}, .cpu = {.cores = 2, .units = units_for_trials(false)}};
}

// What the rule makes of a term, and of a neural rule the variants.
std::vector<Term> made_of(const Rule& rule, const Term& term, bool strict_fp) {
    EGraph graph;
    const auto facts = std::make_shared<NestAnalysis>(options(strict_fp));
    graph.attach(facts);
    const ClassId root = graph.add(term);
    graph.rebuild();
    RunOptions once;
    once.limits.iterations = 1, once.limits.nodes = 4000;
    Runner(graph, bind_rule(rule, {facts, {}})).run(once);
    std::vector<Term> all;
    if (rule.arrow == Arrow::neural) {
        for (const Edge& edge : graph.edges())
            if (all.size() < 12) all.push_back(graph.smallest_term(graph.find(edge.to)));
        return all;
    }
    for (Term& made : ClassTerms(graph).all(graph.find(root), 24))
        if (!(made == term)) all.push_back(std::move(made));
    return all;
}

std::string nest_fault(const Rule& rule, const Term& nest, bool strict_fp, OracleAnswer& answer) {
    const Statement s = statement_of(nest_parts(nest).statement);
    if (!schedule_fault(nest, nest, false, strict_fp).empty()) return {};  // the instance itself is no such schedule
    try {
        resolve(nest);
    } catch (const UserError&) {  // nor is one with an empty part
        return {};
    }
    try {
        for (const Term& made : made_of(rule, nest, strict_fp)) {
            ++answer.applied;
            const bool neural = rule.arrow == Arrow::neural;
            std::string fault = schedule_fault(nest, made, neural, strict_fp);
            if (fault.empty() && !neural && nest_parts(nest).restore != nest_parts(made).restore) fault = "restores outputs in another way";
            if (fault.empty() && !neural && nest_parts(nest).restore != "pointwise") {
                const Buffers buffers = whole_number_buffers(statement_of(nest_parts(made).statement), 3);
                if (s.value.op().text() != "/" && interpret(nest, buffers) != interpret(made, buffers)) fault = "computes something else";
            }
            if (!fault.empty()) return fault + (strict_fp ? " (strict-fp): " : ": ") + to_string(nest) + " becomes " + to_string(made);
        }
    } catch (const InvariantBroken& broken) {
        return "breaks an invariant: " + to_string(nest) + ": " + broken.why;
    } catch (const UserError&) {  // what it makes cannot be run, and says so
    }
    return {};
}

OracleAnswer ask_about_nests(const Rule& rule, int draws, bool keeps_sums) {
    OracleAnswer answer;
    const std::vector<std::int64_t> sizes = sizes_of(rule);
    std::mt19937_64 random(29);
    for (int i = 0; i < draws && answer.applied < 2 * draws; ++i) {
        // Every pair of sizes has its turn, the first ones most often.
        const std::int64_t a = sizes[static_cast<std::size_t>(i) % sizes.size()], b = sizes[random() % (random() % 2 ? sizes.size() : 3)];
        const std::string statement = random() % 2 ? statement_with(a, b, random) : statement_with(b, a, random);
        for (const Term& pattern : {rule.left[0].term, rule.arrow == Arrow::both ? rule.right[0].term : rule.left[0].term}) {
            try {
                const auto instance = draw_instance(pattern, statement.c_str(), random);
                if (!instance || !small_enough(statement_of(nest_parts(instance->nest).statement))) continue;
                for (const bool strict_fp : {false, true}) {
                    if (strict_fp && !keeps_sums) continue;
                    answer.fault = nest_fault(rule, instance->nest, strict_fp, answer);
                    if (!answer.fault.empty()) return answer;
                }
            } catch (const UserError&) {  // the axes that were drawn do not fit together
            }
        }
    }
    return answer;
}

// Rows of sites with all that may follow them, with epilogues, constants of several values and signs.
std::vector<Term> values() {
    std::vector<Term> all;
    const auto naive = [](const std::string& stmt) { return nest_of(statement_of(parse_term(stmt))); };
    const char* sites[] = {"(conv2d 1 1 4 3 3 3 1 1 1 1 0 0 1 1)",
                           "(conv2d 1 1 4 4 4 4 3 3 1 1 1 1 1 1)",
                           "(linear 2 6 4)",
                           "(zip + 12)",
                           "(zip - 12)",
                           "(map relu 12)",
                           "(scale -3 12)",
                           "(matmul 1 3 4 2)",
                           "(max_pool 1 2 4 4 2 2 2 2 0 0)"};
    const char* around[] = {"{}",
                            "(epilogue relu {})",
                            "(epilogue bias {})",
                            "(epilogue scale_shift {})",
                            "(epilogue add {})",
                            "(epilogue scale_shift (epilogue bias {}))",
                            "(epilogue scale_shift (epilogue relu {}))",
                            "(epilogue relu6 (epilogue relu {}))",
                            "(epilogue (times -2) {})",
                            "(epilogue relu (epilogue (times 3) {}))"};
    for (const char* site : sites)
        for (const char* wrapped : around) {
            const Term nest = naive(fmt::format(fmt::runtime(wrapped), site));
            const Term first("site", {nest});
            all.push_back(first);
            const Shape shape = statement_of(nest[0]).buffers[0].shape;
            const std::int64_t size = element_count(shape);
            for (const char* next : {"(map relu {})", "(map relu6 {})", "(map silu {})", "(map copy {})", "(zip + {})", "(zip - {})", "(zip * {})",
                                     "(scale 2 {})", "(scale -3 {})", "(scale 7 {})"})
                all.push_back(Term("then", {first, naive(fmt::format(fmt::runtime(next), size))}));
            if (shape.size() > 1) {
                all.push_back(Term("then", {first, naive(fmt::format("(channel_scale {} {} {})", shape[0], shape[1], size / (shape[0] * shape[1])))}));
                all.push_back(Term("then", {first, naive(fmt::format("(order I 2134 (move {} {} {} 1))", shape[1], shape[0], size / (shape[0] * shape[1])))}));
            }
        }
    return all;
}

Operands operands_with(const std::vector<Buffer>& buffers, std::uint64_t seed, int range) {
    std::mt19937_64 random(seed);
    Operands all;
    for (const Buffer& b : buffers) {
        all.emplace_back(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : all.back()) v = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(2 * range + 1)) - range);
    }
    return all;
}

std::string value_fault(const Term& before, const Term& after) {
    const std::vector<Buffer> operands = operands_of(before), others = operands_of(after);
    const bool same = std::equal(operands.begin(), operands.end(), others.begin(), others.end(),
                                 [](const Buffer& a, const Buffer& b) { return element_count(a.shape) == element_count(b.shape); });
    if (!same) return "takes other operands";
    for (const int range : {1, 7, 40}) {
        const Operands given = operands_with(operands, 11, range);
        const std::vector<float> a = interpret_value(before, given), b = interpret_value(after, given);
        float largest = 1;
        for (const float v : a) largest = std::max(largest, std::abs(v));
        for (std::size_t i = 0; i < a.size(); ++i)
            if (!(std::abs(a[i] - b[i]) <= 1e-4f * largest)) return fmt::format("computes {} instead of {}", b[i], a[i]);
    }
    return {};
}

OracleAnswer ask_about_values(const Rule& rule) {
    OracleAnswer answer;
    static const std::vector<Term> all = values();
    for (const Term& value : all) {
        try {
            for (const Term& made : made_of(rule, value, false)) {
                ++answer.applied;
                if (std::string fault = value_fault(value, made); !fault.empty()) {
                    answer.fault = fault + ": " + to_string(value) + " becomes " + to_string(made);
                    return answer;
                }
            }
        } catch (const InvariantBroken& broken) {
            answer.fault = "breaks an invariant: " + to_string(value);
            return answer;
        } catch (const UserError& e) {
            answer.fault = "makes what is no value: " + to_string(value) + ": " + e.what();
            return answer;
        }
    }
    return answer;
}

}  // namespace

OracleAnswer ask_oracle(const Rule& rule, int draws, bool keeps_sums) {
    return is_value_rule(rule) ? ask_about_values(rule) : ask_about_nests(rule, draws, keeps_sums);
}

}  // namespace loopegg
