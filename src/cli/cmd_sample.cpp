// 'loopegg sample': random networks by the rules of a phase, and which of them its conditions admit.
#include <chrono>
#include <fstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "fisher/evidence.hpp"
#include "fisher/oracle.hpp"
#include "graph/flops.hpp"
#include "graph/load.hpp"
#include "network/random_networks.hpp"
#include "optimize/run/request.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace cmd_sample {

struct Arguments {
    std::string model, rules = "paper", phase = "sites", data, out;
    int networks = 1000, seeds = 3, threads = 0;
    std::int64_t batch = 8;
    std::uint64_t seed = 1;
    bool no_store = false;
};

// One line of the file: what was drawn, and the verdict with the evidence of each measure.
nlohmann::json line_of(std::size_t index, const DrawnNetwork& drawn, const Verdict& verdict) {
    nlohmann::json sites = nlohmann::json::object();
    for (const auto& [site, sequence] : drawn.sites) sites[site] = {{"rules", sequence.rules}, {"nest", to_string(sequence.nest)}};
    return {{"sample", index},
            {"sites", sites},
            {"parameters", parameters(drawn.graph)},
            {"macs", macs(drawn.graph)},
            {"allowed", verdict.allowed},
            {"why", verdict.why},
            {"evidence", verdict.evidence}};
}

// How many verdicts there are, and how many of them reject; each condition by itself, too.
struct Counts {
    std::size_t networks = 0, rejected = 0;
    std::map<std::string, std::size_t> unmet{};  // by condition
    double macs = 0;                             // the mean share of the original's

    void add(const Verdict& verdict, double share) {
        ++networks, rejected += !verdict.allowed, macs += share;
        for (const nlohmann::json& row : verdict.evidence.at("measures")) unmet[to_string(condition_of(row))] += !row.at("holds").get<bool>();
    }
};

class Sampling {
public:
    Sampling(const Arguments& a, Session& session) : a_(a), session_(session), original_(load_graph(a.model)), book_(load_rules(rules_file(a.rules))) {
        phase_ = book_.find_phase(a.phase);
        if (!phase_) throw UsageError(fmt::format("'{}' has no phase '{}'", a.rules, a.phase));
        if (phase_->when.empty())
            throw UserError({fmt::format("the phase '{}' names no condition to judge networks by", a.phase), phase_->where, "add ':when (fisher >= 1)'"});
        if (brings_weights(a.model, original_)) model_ = load_model(a.model);
    }

    int run() {
        const auto began = std::chrono::steady_clock::now();
        session_.progress.stage("draw", a_.networks);
        RandomNetworks random(original_, book_, *phase_, a_.seed);
        const std::unique_ptr<Oracle> oracle = make_oracle(oracle_options());
        std::ofstream lines;
        if (!a_.out.empty()) lines.open(a_.out);
        for (std::size_t first = 0; first < static_cast<std::size_t>(a_.networks); first += together) {
            judge(random, *oracle, first, lines);
            if (!a_.out.empty() && !lines.flush()) throw UserError("cannot write '" + a_.out + "'");
        }
        session_.progress.finish();
        tell(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), oracle->counts());
        return 0;
    }

private:
    static constexpr std::size_t together = 32;  // judged side by side

    OracleOptions oracle_options() const {
        OracleOptions options;
        options.conditions = phase_->when;
        options.data = a_.data, options.batch = a_.batch, options.seeds = a_.seeds, options.seed = a_.seed, options.threads = a_.threads;
        options.trained = model_ ? &model_->weights : nullptr;
        if (!a_.no_store) options.store = default_evidence();
        return options;
    }

    void judge(RandomNetworks& random, Oracle& oracle, std::size_t first, std::ofstream& lines) {
        std::vector<DrawnNetwork> drawn;
        std::vector<Graph> graphs;
        while (graphs.size() < together && first + graphs.size() < static_cast<std::size_t>(a_.networks)) {
            drawn.push_back(random.draw());
            graphs.push_back(drawn.back().graph);
        }
        const std::vector<Verdict> verdicts = oracle.judge(original_, graphs);
        for (std::size_t i = 0; i < drawn.size(); ++i) {
            counts_.add(verdicts[i], static_cast<double>(macs(graphs[i])) / static_cast<double>(macs(original_)));
            if (lines.is_open()) lines << line_of(first + i, drawn[i], verdicts[i]).dump() << "\n";
        }
        session_.progress.advance(static_cast<std::int64_t>(counts_.networks), fmt::format("{} of {} rejected", counts_.rejected, counts_.networks));
    }

    void tell(double seconds, const OracleCounts& oracle) const {
        const double share = static_cast<double>(counts_.rejected) / static_cast<double>(counts_.networks);
        const double work = counts_.macs / static_cast<double>(counts_.networks);
        if (session_.json)
            return session_.answer({{"model", original_.name},
                                    {"rules", a_.rules},
                                    {"conditions", to_string(phase_->when)},
                                    {"networks", counts_.networks},
                                    {"rejected", counts_.rejected},
                                    {"unmet", counts_.unmet},
                                    {"macs", work},
                                    {"seconds", seconds},
                                    {"passes", oracle.passes},
                                    {"from_store", oracle.from_store},
                                    {"seed", a_.seed}});
        fmt::print("{}: {} networks by random sequences of {} in {:.1f} s ({} passes, {} verdicts from the store)\n", original_.name, counts_.networks,
                   a_.rules, seconds, oracle.passes, oracle.from_store);
        fmt::print("  {} rejected ({:.1f}%), {} admitted; on average they have {:.0f}% of the original's MACs\n", counts_.rejected, 100 * share,
                   counts_.networks - counts_.rejected, 100 * work);
        for (const auto& [condition, count] : counts_.unmet) fmt::print("  {} is not met by {}\n", condition, count);
        if (!a_.out.empty()) fmt::print("  every verdict is in {}\n", a_.out);
    }

    const Arguments& a_;
    Session& session_;
    const Graph original_;
    const RuleBook book_;
    const Phase* phase_ = nullptr;
    std::optional<Model> model_;
    Counts counts_;
};

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "the network: model.json, .onnx, or zoo:NAME")->required();
    app.add_option("--rules", a->rules, "the rule file: a path, paper or discover")->capture_default_str();
    app.add_option("--phase", a->phase, "the phase that provides the neural rules and the conditions")->capture_default_str();
    app.add_option("--networks", a->networks, "number of networks")->capture_default_str()->check(CLI::Range(1, 10'000'000));
    app.add_option("-o,--out", a->out, "write each network, its verdict and its evidence to this file, one per line");
    app.add_option("--data", a->data, "images: a folder of CIFAR-10 or .npy files (default: synthetic images)");
    app.add_option("--images,--batch", a->batch, "number of images for each seed")->capture_default_str();
    app.add_option("--seeds", a->seeds, "maximum number of seeds; fewer are used if the first ones decide")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_option("--seed", a->seed, "random seed of networks, weights and images")->capture_default_str();
    app.add_option("--threads", a->threads, "number of networks to score in parallel; 0: one per core")->capture_default_str();
    add_unproved_option(app);
    add_store_option(app);
    app.add_flag("--no-store", a->no_store, "neither read nor write the evidence store");
    return [a](Session& session) { return Sampling(*a, session).run(); };
}

}  // namespace cmd_sample

const Command sample_command{"sample", "draw random networks by rules, and count how many the conditions reject",
                             "loopegg sample zoo:resnet34-cifar10 --rules paper --networks 1000 --out verdicts.jsonl", cmd_sample::setup};

}  // namespace loopegg
