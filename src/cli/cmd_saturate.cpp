// 'loopegg saturate': grows an e-graph from terms and rules, over any language, and says what it found.
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "egraph/explain.hpp"
#include "egraph/runner.hpp"
#include "egraph/serialize.hpp"
#include "extract/best_terms.hpp"
#include "extract/from_egraph.hpp"
#include "extract/serialized.hpp"
#include "rules/limits.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace cmd_saturate {

struct Arguments {
    std::string terms, rules, phase, scheduler = "simple", dot, out;
    std::int64_t iterations = 30, nodes = 10'000'000;
    double seconds = 0;
    bool proofs = false;
    std::vector<std::string> explain;
    CLI::Option *iterations_given = nullptr, *nodes_given = nullptr, *seconds_given = nullptr, *scheduler_given = nullptr;
};

std::vector<Term> read_terms(const std::string& file) {
    std::vector<Term> terms;
    for (const SExpr& e : read_sexprs(read_source(file))) terms.push_back(to_term(e));
    if (terms.empty()) throw UserError(fmt::format("there is no term in '{}'", file));
    return terms;
}

void check_usage(const Arguments& a) {
    if (a.iterations <= 0) throw UsageError("--iterations must be above 0");
    if (a.nodes <= 0) throw UsageError("--nodes must be above 0");
    if (a.seconds_given->count() && (!(a.seconds > 0) || !std::isfinite(a.seconds))) throw UsageError("--seconds must be a number above 0");
    if (a.scheduler != "simple" && a.scheduler != "backoff") {
        const std::vector<std::string> known{"simple", "backoff"};
        throw UsageError(Diagnostic{fmt::format("there is no scheduler '{}'", a.scheduler), {}, did_you_mean(a.scheduler, known)});
    }
}

// What the command line says; where it says nothing, what the phase says.
RunOptions run_options(const Arguments& a, const Phase* phase) {
    RunOptions options = phase ? limits_of(*phase) : RunOptions{};
    if (!phase || !phase->iterations || a.iterations_given->count()) options.limits.iterations = static_cast<std::size_t>(a.iterations);
    if (!phase || !phase->nodes || a.nodes_given->count()) options.limits.nodes = static_cast<std::size_t>(a.nodes);
    if (a.seconds_given->count()) options.limits.seconds = a.seconds;
    if (!phase || phase->scheduler.empty() || a.scheduler_given->count()) options.scheduler = a.scheduler == "backoff" ? Scheduler::backoff : Scheduler::simple;
    return options;
}

const Phase* find_phase(const RuleBook& book, const std::string& name) {
    if (name.empty()) return nullptr;
    if (const Phase* phase = book.find_phase(name)) return phase;
    std::vector<std::string> known;
    for (const Phase& p : book.phases) known.push_back(p.name);
    throw UserError(Diagnostic{fmt::format("the rules have no phase '{}'", name), {}, did_you_mean(name, known)});
}

nlohmann::json as_json(const RunReport& report) {
    nlohmann::json iterations = nlohmann::json::array();
    for (const IterationReport& i : report.iterations)
        iterations.push_back({{"nodes", i.nodes}, {"classes", i.classes}, {"edges", i.edges}, {"seconds", i.seconds}});
    return {{"stop", name_of(report.stop)}, {"seconds", report.seconds}, {"iterations", std::move(iterations)}, {"peak_bytes", report.peak_bytes}};
}

// The smallest term of each input; null where shared parts written out would fill the screen.
nlohmann::json best_terms(const EGraph& graph, const std::vector<ClassId>& inputs) {
    const SmallestTerms smallest(graph);
    nlohmann::json all = nlohmann::json::array();
    for (ClassId c : inputs) {
        const double size = smallest.size(c);
        all.push_back({{"term", size <= 100'000 ? nlohmann::json(to_string(smallest.term(c))) : nlohmann::json()}, {"cost", size}});
    }
    return all;
}

int saturate(const Arguments& a, bool proofs, Session& session) {
    check_usage(a);
    const bool serialized = a.terms.ends_with(".json");
    const std::vector<Term> terms = serialized ? std::vector<Term>{} : read_terms(a.terms);
    const RuleBook book = load_rules(std::filesystem::path(a.rules));
    const Phase* phase = find_phase(book, a.phase);
    std::vector<Term> explained;
    for (const std::string& text : a.explain) explained.push_back(parse_term(text, "<--explain>"));

    std::vector<ClassId> inputs;
    EGraph graph({.proofs = proofs});
    if (serialized) {
        ReadEGraph read = read_egraph_json(read_source(a.terms), {.proofs = proofs});
        graph = std::move(read.graph);
        inputs = std::move(read.roots);
    }
    Binding binding;
    if (book.language->make_facts) binding.facts = book.language->make_facts();
    if (binding.facts) graph.attach(binding.facts);
    auto whole = [&](const Term& t) { return book.language->prepare ? book.language->prepare(t) : t; };
    for (const Term& t : terms) inputs.push_back(graph.add(whole(t)));
    for (Term& t : explained) graph.add(t = whole(t));
    graph.rebuild();

    RunOptions options = run_options(a, phase);
    session.progress.stage("saturate", static_cast<std::int64_t>(options.limits.iterations));
    std::int64_t done = 0;
    options.after_iteration = [&](const IterationReport& i) {
        session.progress.advance(
            ++done, fmt::format("{} nodes, {} classes", with_commas(static_cast<long long>(i.nodes)), with_commas(static_cast<long long>(i.classes))));
        return true;
    };
    const auto rules = phase ? book.rules_of(*phase) : book.rules();
    const RunReport report = Runner(graph, bind_rules(rules, binding)).run(options);
    session.progress.finish(fmt::format("{} nodes, {} classes, stopped: {}", with_commas(static_cast<long long>(graph.node_count())),
                                        with_commas(static_cast<long long>(graph.class_count())), name_of(report.stop)));

    nlohmann::json answer = as_json(report);
    answer["best"] = best_terms(graph, inputs);
    std::string proof_text;
    if (!explained.empty()) {
        const Proof proof = minimise(explain(graph, explained[0], explained[1]), graph);
        answer["proof"] = to_json(proof);
        proof_text = to_string(proof);
    }
    if (!a.out.empty()) write_file(a.out, to_json(copy_of(graph, inputs).egraph));
    if (!a.dot.empty()) write_file(a.dot, to_dot(copy_of(graph, inputs).egraph));
    if (session.json)
        session.answer(answer);
    else {
        for (const auto& best : answer["best"])
            fmt::print("{}  cost {}\n", best["term"].is_null() ? "(a term too long to print)" : best["term"].get<std::string>(), best["cost"].get<double>());
        if (!proof_text.empty()) fmt::print("\n{}\n", proof_text);
    }
    return 0;
}

// Rules that contradict each other are reported with the proof that led there; when no proofs were kept, the run is made again with them.
int saturate(const Arguments& a, Session& session) {
    const bool proofs = a.proofs || !a.explain.empty();
    try {
        return saturate(a, proofs, session);
    } catch (const InvariantBroken&) {
        if (proofs) throw;
        session.progress.note("the rules contradict each other; running again to show how");
        return saturate(a, true, session);
    }
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("TERMS", a->terms, "a file of terms, or an e-graph as egraph-serialize JSON (.json)")->required();
    app.add_option("--rules", a->rules, "a rule file")->required();
    app.add_option("--phase", a->phase, "use the sets and limits of this phase (default: every rule)");
    a->iterations_given = app.add_option("--iterations", a->iterations, "maximum number of iterations")->capture_default_str();
    a->nodes_given = app.add_option("--nodes", a->nodes, "maximum number of e-nodes")->capture_default_str();
    a->seconds_given = app.add_option("--seconds", a->seconds, "time limit in seconds");
    a->scheduler_given = app.add_option("--scheduler", a->scheduler, "simple (every rule in every iteration) or backoff (ban rules with too many matches)")
                             ->capture_default_str();
    app.add_flag("--proofs", a->proofs, "record the reason for every merge");
    add_unproved_option(app);
    app.add_option("--explain", a->explain, "show why two terms are equal")->expected(2);
    app.add_option("-o,--out", a->out, "write the e-graph to this file as egraph-serialize JSON");
    app.add_option("--dot", a->dot, "write a small e-graph to this file in Graphviz's language");
    return [a](Session& session) { return saturate(*a, session); };
}

}  // namespace cmd_saturate

const Command saturate_command{"saturate", "grow an e-graph from terms by rules, and print the smallest terms",
                               "loopegg saturate examples/math.terms --rules rules/math.rules --iterations 6", cmd_saturate::setup};

}  // namespace loopegg
