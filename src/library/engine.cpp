#include "library/engine.h"

#include <atomic>
#include <cmath>
#include <map>

#include "base/embedded.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/sexpr.hpp"
#include "base/system_words.hpp"
#include "base/text.hpp"
#include "egraph/explain.hpp"
#include "egraph/runner.hpp"
#include "extract/acyclic.hpp"
#include "extract/best_terms.hpp"
#include "extract/extraction.hpp"
#include "extract/from_egraph.hpp"
#include "rules/limits.hpp"
#include "rules/load.hpp"

using namespace loopegg;
using nlohmann::json;

struct loopegg_rules {
    std::shared_ptr<const RuleBook> book;
};

struct loopegg_egraph {
    std::shared_ptr<const RuleBook> book;
    Binding binding;
    EGraph graph;
    std::atomic<bool> busy{false};

    Term term(const JsonView& of) const {
        const Term read = parse_term(of.text());
        return book->language->prepare ? book->language->prepare(read) : read;
    }
    // The class of a term that is there already.
    ClassId eclass(const JsonView& of) const {
        const Term wanted = term(of);
        if (const auto found = graph.lookup(wanted)) return *found;
        throw UserError(Diagnostic{"the term " + to_string(wanted) + " is not in the e-graph", {}, "add it first"});
    }
};

namespace {

const char* kept(const json& answer) {
    thread_local std::string text;
    text = answer.dump(-1, ' ', false, json::error_handler_t::replace);
    return text.c_str();
}

const char* failed(ExitCode code, const std::vector<Diagnostic>& all) {
    json errors = json::array();
    for (const Diagnostic& d : all) errors.push_back(as_json(d));
    return kept({{"exit", static_cast<int>(code)}, {"errors", errors}});
}

// No exception leaves the library.
template <class Work>
const char* answered(const Work& work) {
    try {
        return kept({{"answer", work()}});
    } catch (const UsageError& e) {
        return failed(ExitCode::usage, e.diagnostics());
    } catch (const UserError& e) {
        return failed(ExitCode::failed, e.diagnostics());
    } catch (const std::bad_alloc&) {
        return failed(ExitCode::failed, {{"there is not enough memory", {}, "a limit on nodes keeps an e-graph small"}});
    } catch (const std::system_error& e) {
        return failed(ExitCode::failed, as_user_error(e).diagnostics());
    } catch (const std::exception& e) {
        return failed(ExitCode::fault, {{e.what()}});
    }
}

// The one call that is inside an e-graph.
class Inside {
public:
    explicit Inside(loopegg_egraph& e) : egraph_(e) {
        if (e.busy.exchange(true)) throw UsageError("another call is inside this e-graph");
    }
    ~Inside() { egraph_.busy = false; }
    Inside(const Inside&) = delete;

private:
    loopegg_egraph& egraph_;
};

RunOptions run_options(const JsonView& given, const Phase* phase) {
    RunOptions options = phase ? limits_of(*phase) : RunOptions{};
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (const auto n = given.find("iterations")) options.limits.iterations = static_cast<std::size_t>(n->integer(0, most));
    if (const auto n = given.find("nodes")) options.limits.nodes = static_cast<std::size_t>(n->integer(1, most));
    if (const auto s = given.find("seconds")) {
        options.limits.seconds = s->number();
        if (!(options.limits.seconds > 0)) s->fail("expected seconds above 0");
    }
    if (const auto s = given.find("scheduler")) {
        if (s->text() != "simple" && s->text() != "backoff") s->fail("there is no scheduler '" + s->text() + "'", "the schedulers are simple and backoff");
        options.scheduler = s->text() == "backoff" ? Scheduler::backoff : Scheduler::simple;
    }
    return options;
}

const Phase* phase_of(const RuleBook& book, const JsonView& given) {
    const auto name = given.find("phase");
    if (!name) return nullptr;
    if (const Phase* phase = book.find_phase(name->text())) return phase;
    std::vector<std::string> known;
    for (const Phase& p : book.phases) known.push_back(p.name);
    throw UserError(Diagnostic{"the rules have no phase '" + name->text() + "'", {}, did_you_mean(name->text(), known)});
}

json as_json(const RunReport& report) {
    json rules = json::object();
    for (const IterationReport& i : report.iterations)
        for (const RuleReport& r : i.rules)
            if (r.applications) rules[r.rule] = rules.value(r.rule, std::size_t{0}) + r.applications;
    return {{"stop", name_of(report.stop)}, {"iterations", report.iterations.size()}, {"seconds", report.seconds}, {"applications", std::move(rules)}};
}

// The cheapest term of a class, shared parts counted each time. Operators without a cost of their own cost 1.
json cheapest(const EGraph& graph, ClassId root, const std::map<std::string, double>& costs) {
    if (costs.empty()) {
        const SmallestTerms smallest(graph);
        if (smallest.size(root) > longest_term) throw UserError("the smallest term has too many operators to be written out");
        return {{"term", to_string(smallest.term(root))}, {"cost", smallest.size(root)}};
    }
    const EGraphCopy copy = copy_of(graph, std::span(&root, 1), [&](const NodeView& node) {
        const auto own = costs.find(node.op.text());
        return own == costs.end() ? 1.0 : own->second;
    });
    const std::vector<RankedTerm> best = best_terms(copy.egraph, copy.egraph.roots.front(), 1);
    if (best.empty()) throw UserError("no term of finite cost is known to be equal");
    if (!best[0].term) throw UserError("the cheapest term has too many operators to be written out");
    return {{"term", to_string(best[0].term)}, {"cost", best[0].cost}};
}

std::map<std::string, double> costs_of(const JsonView& request) {
    std::map<std::string, double> costs;
    if (const auto given = request.find("costs"))
        for (const auto& [op, cost] : given->members()) {
            costs[op] = cost.number();
            if (!(costs[op] >= 0)) cost.fail("expected a cost from 0 on");
        }
    return costs;
}

json answer_to(loopegg_egraph& e, const JsonView& request) {
    const std::string& what = request.at("do").text();
    if (what == "add") {
        const ClassId c = e.graph.add(e.term(request.at("term")));
        e.graph.rebuild();
        return e.graph.find(c);
    }
    if (what == "merge") {
        const ClassId a = e.graph.add(e.term(request.at("terms").items().at(0))), b = e.graph.add(e.term(request.at("terms").items().at(1)));
        const bool news = e.graph.merge(a, b, request.at("why").text());
        e.graph.rebuild();
        return news;
    }
    if (what == "equal") return e.graph.equal(e.eclass(request.at("terms").items().at(0)), e.eclass(request.at("terms").items().at(1)));
    if (what == "extract") return cheapest(e.graph, e.eclass(request.at("term")), costs_of(request));
    if (what == "explain") {
        const Proof proof = minimise(explain(e.graph, e.term(request.at("terms").items().at(0)), e.term(request.at("terms").items().at(1))), e.graph);
        return {{"text", to_string(proof)}, {"proof", to_json(proof)}};
    }
    if (what == "size") return {{"nodes", e.graph.node_count()}, {"classes", e.graph.class_count()}, {"bytes", e.graph.bytes()}};
    if (what == "serialize") {
        const ClassId root = e.eclass(request.at("term"));
        return json::parse(to_json(copy_of(e.graph, std::span(&root, 1)).egraph));
    }
    throw InternalFault("no request '" + what + "'");
}

}  // namespace

const char* loopegg_engine_home(const char* folder) {
    return answered([&]() -> json {
        set_shipped_folder(folder);
        return true;
    });
}

const char* loopegg_rules_read(const char* name, const char* text, int unproved, loopegg_rules** rules) {
    return answered([&]() -> json {
        const LoadOptions options{.unproved = unproved != 0};
        auto book = std::make_shared<RuleBook>(load_rules(text ? make_source(name, text) : read_source(name), options));
        json names = json::array(), phases = json::array();
        for (const Rule* rule : book->rules()) names.push_back({{"name", rule->name}, {"set", rule->set}, {"text", rule->text}});
        for (const Phase& phase : book->phases) phases.push_back(phase.name);
        *rules = new loopegg_rules{std::move(book)};
        return {{"rules", std::move(names)}, {"phases", std::move(phases)}};
    });
}
void loopegg_rules_free(loopegg_rules* rules) { delete rules; }

const char* loopegg_egraph_create(const loopegg_rules* rules, int proofs, loopegg_egraph** egraph) {
    return answered([&]() -> json {
        Binding binding;
        if (rules->book->language->make_facts) binding.facts = rules->book->language->make_facts();
        auto made = std::make_unique<loopegg_egraph>(rules->book, binding, EGraph({.proofs = proofs != 0}));
        if (binding.facts) made->graph.attach(binding.facts);
        *egraph = made.release();
        return true;
    });
}
void loopegg_egraph_free(loopegg_egraph* egraph) { delete egraph; }

const char* loopegg_egraph_ask(loopegg_egraph* egraph, const char* request) {
    return answered([&] {
        const Inside inside(*egraph);
        return answer_to(*egraph, read_json(make_source("<request>", request)));
    });
}

const char* loopegg_egraph_saturate(loopegg_egraph* egraph, const char* options, loopegg_after_iteration after) {
    return answered([&] {
        const Inside inside(*egraph);
        const JsonView given = read_json(make_source("<options>", options));
        given.only({"iterations", "nodes", "seconds", "scheduler", "phase"});
        const Phase* phase = phase_of(*egraph->book, given);
        RunOptions run = run_options(given, phase);
        if (after) run.after_iteration = [&](const IterationReport& i) { return after(static_cast<long>(i.nodes), static_cast<long>(i.classes)) != 0; };
        const auto rules = phase ? egraph->book->rules_of(*phase) : egraph->book->rules();
        return as_json(Runner(egraph->graph, bind_rules(rules, egraph->binding)).run(run));
    });
}
