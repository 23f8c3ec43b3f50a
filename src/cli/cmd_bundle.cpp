// 'loopegg bundle': code, operands and a runner for a machine that has neither TVM nor a network; 'bundle import' takes its times back.
#include <fmt/format.h>

#include "backends/measure/latency_store.hpp"
#include "backends/network/bundle.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/load.hpp"

namespace loopegg {
namespace cmd_bundle {

struct Arguments {
    std::string what, folder, target = "h200", out, nests;
    std::uint64_t seed = 0;
    std::size_t schedules = 0;
    std::string runner;
    std::int64_t batch = 1;
    std::vector<std::string> allowed;
};

int import(const Arguments& a, Session& session) {
    const auto results = import_bundle(a.folder, default_store());
    nlohmann::json all = nlohmann::json::array();
    int right = 0;
    for (const BundleResult& r : results) {
        right += r.right;
        const Latency latency = r.measured.latency.value_or(Latency{});
        if (session.json)
            all.push_back({{"what", r.what},
                           {"right", r.right},
                           {"why", r.measured.why},
                           {"median_ms", latency.median_ms},
                           {"iqr_ms", latency.iqr_ms},
                           {"n", latency.n},
                           {"target", latency.target},
                           {"measured", r.right}});
        else if (r.right)
            fmt::print("{:.4f} ms  {:.100}\n", latency.median_ms, r.what);
        else
            fmt::print("failed: {}  {:.100}\n", r.measured.why, r.what);
    }
    if (session.json)
        session.answer({{"programs", results.size()}, {"right", right}, {"results", all}});
    else
        fmt::print("{} of {} programs gave the right output; their times are in the store\n", right, results.size());
    return right == static_cast<int>(results.size()) ? 0 : 1;
}

int run_and_import(Arguments a, Session& session) {
    session.progress.stage("run bundle");
    run_bundle(a.runner, a.out);
    session.progress.finish({});
    a.folder = a.out;
    return import(a, session);
}

int write(const Arguments& a, Session& session) {
    if (a.out.empty()) throw UsageError("expected --out DIR");
    if (!a.runner.empty()) check_runner(a.runner);
    std::vector<Term> nests;
    if (!a.nests.empty())
        for (const SExpr& e : read_sexprs(read_source(a.nests))) nests.push_back(to_term(e));
    std::optional<Model> model;
    if (!a.what.empty()) {
        model = load_model(a.what, a.seed);
        if (a.batch > 1) model->graph = with_batch(std::move(model->graph), a.batch);
    }
    if (!model && nests.empty()) throw UsageError("expected a MODEL, or --nests FILE, or both");
    const Target target = allowing(find_target(a.target), a.allowed);
    Schedules schedules;
    if (model && a.schedules > 0 && target.gpu()) {  // what was measured before is not carried again: the network runs with the fastest of it
        KnownSchedules known = known_schedules(model->graph, target, a.schedules, default_store());
        schedules = std::move(known.fastest);
        nests.insert(nests.end(), known.unmeasured.begin(), known.unmeasured.end());
    }
    session.progress.stage("write bundle");
    std::vector<ScheduledNetwork> networks;
    if (model) networks.push_back({model->graph, model->weights, schedules});
    const BundleReport r = write_bundle(nests, networks, target, a.out);
    session.progress.finish(fmt::format("{} programs", r.programs));
    for (const std::string& why : r.left_out) session.progress.note("left out: " + why);
    if (!a.runner.empty()) return run_and_import(a, session);
    if (!session.json)
        fmt::print("{}: {} programs. On the machine: sh run_bundle.sh; bring results.txt back, then: loopegg bundle import {}\n", a.out, r.programs, a.out);
    else
        session.answer({{"programs", r.programs}, {"left_out", r.left_out}, {"folder", a.out}});
    return 0;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->what, "the network for the bundle, or the word 'import'");
    app.add_option("DIR", a->folder, "with 'import': a bundle with its results.txt");
    add_store_option(app);
    app.add_option("--nests", a->nests, "a file of NEST terms, each of which becomes a program");
    app.add_option("--schedules", a->schedules, "with a MODEL: the number of schedules of each nest, each of which becomes a program");
    app.add_option("--runner", a->runner, "a command that runs the bundle in the folder {} on the GPU and writes results.txt there: 'sh {}/run_bundle.sh'");
    app.add_option("--target", a->target, "a GPU target")->capture_default_str();
    app.add_option("-o,--out", a->out, "the folder to write");
    app.add_option("--seed", a->seed, "random seed of the weights if the model has none");
    app.add_option("--batch", a->batch, "with a MODEL: the batch size of the network")->capture_default_str()->check(CLI::Range(1, 65536));
    add_allow_option(app, a->allowed);
    return [a](Session& session) {
        if (a->what == "import") {
            if (a->folder.empty()) throw UsageError("expected: loopegg bundle import DIR");
            return import(*a, session);
        }
        return write(*a, session);
    };
}

}  // namespace cmd_bundle

const Command bundle_command{"bundle", "write programs for a machine without TVM, and import their times",
                             "loopegg bundle zoo:resnet34-cifar10 --target h200 --out bundle", cmd_bundle::setup};

}  // namespace loopegg
