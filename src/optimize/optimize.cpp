#include "optimize/optimize.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/measure/cold_weights.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "optimize/answer/answer.hpp"
#include "optimize/answer/finalists.hpp"
#include "optimize/answer/rounding_guard.hpp"
#include "optimize/run/run.hpp"
#include "optimize/run/times.hpp"
#include "optimize/train/train_networks.hpp"
#include "rewrite/rule_books.hpp"
#include "store/database.hpp"

namespace loopegg {
namespace {

// Where networks were found, most of the time for tuning is spent. The original and the network that is returned each get such a share once more, and such a
// share for their layouts (layout_times.cpp takes a part of it).
constexpr double last_tuning_share = 0.25, last_layouts_share = 0.5;

// What conditions that say nothing of the expected loss allow a search to look as far as.
constexpr double points_unasked = 10;

MeasurerOptions measurer_options(const OptimizeRequest& request, const Weights& weights, const std::filesystem::path& pool, Progress& progress) {
    MeasurerOptions options;
    options.pool = pool;
    options.wait_seconds = std::min(options.wait_seconds, request.tune_seconds);
    options.note = [&progress](const std::string& line) { progress.note(line); };
    options.cold_bytes = cold_bytes_for(weights);
    return options;
}

// Whether a run may return a network with fewer channels or connections than it read.
bool may_restrict(const RuleBook& book) {
    const std::vector<const Rule*> rules = book.rules();
    return std::any_of(rules.begin(), rules.end(), [](const Rule* r) { return r->arrow == Arrow::neural; });
}

std::string in_words(const Measured& m) {
    if (!m.latency) return "not measured (" + m.why + ")";
    return fmt::format("{:.3f} ms{}", m.latency->median_ms, m.latency->measured ? "" : " (estimated)");
}

// The stages, each with its seconds and one line of the log.
class StageLog {
public:
    explicit StageLog(Progress& progress) : progress_(progress) {}

    template <class F>
    auto run(const char* name, F&& f) {
        progress_.stage(name, 0);
        const double begin = monotonic_seconds();
        auto value = f();
        seconds_[name] = monotonic_seconds() - begin;
        return value;
    }
    void done(const std::string& what) { progress_.finish(what); }

    nlohmann::json seconds() const {
        nlohmann::json all = seconds_;
        double total = 0;
        for (const auto& s : seconds_) total += s.get<double>();
        all["total"] = total;
        return all;
    }

private:
    Progress& progress_;
    nlohmann::json seconds_ = nlohmann::json::object();
};

// Both networks are tuned with equal effort: the speed-up is over the fastest original that we know.
struct LastTuning {
    Tuning original, chosen;
};

LastTuning tune_again(const Run& run, const FoundNetworks& found, const FoundNetwork* chosen) {
    const double share = found.timed.empty() ? 1 : last_tuning_share;
    const Effort effort{run.request.tune_seconds * share, run.request.trials};
    RowChoices for_original, for_chosen;
    LastTuning last;
    last.original = tune_network(run, run.read.network, effort, for_original);
    if (chosen) last.chosen = tune_network(run, chosen->network, effort, for_chosen);
    return last;
}

void require_loss_is_asked(const std::vector<MeasureCondition>& conditions) {
    if (!points_asked(conditions)) throw UsageError(fmt::format("--train calibrates the expected loss, and no condition in {} uses it", to_string(conditions)));
}

double lost_by(const FoundNetwork& network) { return network.trained ? network.trained->lost : network.judged.loss.points; }

// Says so where the last times do not meet the limit that led the search.
void say_what_is_missed(const Run& run, const Confirmed& confirmed) {
    const auto &time = confirmed.optimized.time.latency, &whole = confirmed.original.time.latency;
    if (!time || !whole || confirmed.keep_original) return;
    const double allowed = run.request.allowed_ms(whole->median_ms);
    if (time->median_ms <= allowed) return;
    run.progress.note(fmt::format("the network takes {:.3f} ms, and {} allows {:.3f}: a larger --max-loss or another --seed may find a faster one",
                                  time->median_ms, allowed < run.request.max_latency_ms ? "--min-speedup" : "--max-latency", allowed));
}

}  // namespace

nlohmann::json optimize(const OptimizeRequest& request, Progress& progress) {
    StageLog log(progress);
    const StoreCost before = store_cost();
    Target target = allowing(find_target(request.target), request.allowed);
    target.rules = rules_file(request.rules);
    objective_for(request.objective, target);  // complains about a wrong word before the work begins

    ReadNetwork read = log.run("read", [&] { return read_network(request); });
    require_linkable(read.network.graph, target);
    RuleBook book = rules_for(request, read.network.graph);
    log.done(fmt::format("{}: {} sites, {} distinct nests", read.network.graph.name, read.network.sites.all.size(), read.network.sites.kinds.size()));

    if (read.trained && may_restrict(book)) {
        read.importance = log.run("importance", [&] { return importance_of(read.network.graph, &read.network.weights, {request.data, request.seed}); });
        log.done(read.importance.why);
    }

    const ScratchFolder kernels(request.out / ".loopegg-kernels");  // the kernels that tuning compiles, until the networks are made from them
    Times times(request, read.network.graph, target, measurer_options(request, read.network.weights, kernels.path(), progress));
    Run run{request, target, std::move(book), std::move(read), {}, 0, nullptr, times.timing(), KernelPool(kernels.path()), progress};
    OracleOptions guard = oracle_options(request, run.read, run.book);
    run.loss_budget = points_asked(guard.conditions).value_or(default_points);
    if (counts_points(run) && run.book.find_phase("networks") && points_asked(guard.conditions)) {
        const double reserved = log.run("rounding", [&] { return points_of_rounding(run); });
        guard.conditions = with_points(std::move(guard.conditions), run.loss_budget - reserved);
        log.done(fmt::format("{:.2f} of {:.2f} points are left to the network", run.loss_budget - reserved, run.loss_budget));
    }
    const std::unique_ptr<Oracle> oracle = make_oracle(guard);
    run.oracle = oracle.get(), run.conditions = guard.conditions, run.points = points_asked(guard.conditions).value_or(points_unasked);

    std::optional<NetworkTraining> training;
    if (!request.train.command.empty()) {
        require_loss_is_asked(run.conditions);
        training.emplace(request.train, run.read.network.graph, run.read.trained ? &run.read.network.weights : nullptr, target.rules, progress);
        run.training = &*training;
        log.run("train original", [&] { return training->train_original(), 0; });
        log.done("");
    }

    const FoundNetworks found = log.run("networks", [&] { return find_networks(run); });
    const FoundNetwork* chosen = found.best ? &found.timed[*found.best] : nullptr;
    log.done(fmt::format("{} e-nodes, {} networks timed{}", found.growth.nodes, found.timed.size(), chosen ? ": " + chosen->name : ""));

    const LastTuning tuning = log.run("tune", [&] { return tune_again(run, found, chosen); });
    log.done(fmt::format("{} schedules tried, {} failed", tuning.original.compiled + tuning.chosen.compiled, tuning.original.failed + tuning.chosen.failed));

    const Confirmed confirmed = log.run("confirm", [&] {
        const Effort layouts{request.tune_seconds * (found.timed.empty() ? 1 : last_layouts_share), request.trials};
        return confirm(run, {run.read.network, tuning.original},
                       chosen ? std::optional(TunedNetwork{chosen->network, tuning.chosen, lost_by(*chosen)}) : std::nullopt, layouts);
    });
    log.done(fmt::format("original {}, chosen {}", in_words(confirmed.original.time), in_words(confirmed.optimized.time)));
    say_what_is_missed(run, confirmed);

    const Answer answer{run, found, chosen, tuning.original, tuning.chosen, confirmed};
    nlohmann::json result = result_of(answer);
    if (const Importance& importance = run.read.importance; !importance.why.empty())
        result["importance"] = importance_json(importance, run.read.network.graph, answer.returned().graph);
    if (training) result["training"] = training_json(answer, *training);
    if (request.all_targets) {
        result["targets"] = log.run("targets", [&] { return compile_for_others(answer); });
        log.done(fmt::format("compiled for {} more", result["targets"].size()));
    }
    log.run("write", [&] {
        write_out(answer, result), write_finalists(request.out, found, run.read.trained);
        return 0;
    });
    if (times.in_rounds()) {
        result["rounds"] = log.run("round", [&] { return times.next_round(progress); });
        log.done(result["rounds"]["waiting"].is_null() ? "nothing more is measured"
                                                       : fmt::format("{} programs", result["rounds"]["waiting"]["programs"].get<int>()));
    }
    result["seconds"] = log.seconds();
    const StoreCost cost = store_cost() - before;
    result["store"] = {{"calls", cost.calls}, {"seconds", cost.seconds}};
    write_file(request.out / "result.json", result.dump(1));
    log.done("");
    return result;
}

}  // namespace loopegg
