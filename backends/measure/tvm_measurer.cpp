#include "backends/measure/tvm_measurer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/machine_load.hpp"
#include "backends/network/network.hpp"
#include "backends/measure/roofline.hpp"
#include "backends/measure/rpc.hpp"
#include "backends/measure/thread_clocks.hpp"
#include "base/error.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {

Latency summarize(std::vector<double> ms, const std::string& target, bool disturbed) {
    std::sort(ms.begin(), ms.end());
    auto at = [&](double q) {
        const double x = q * static_cast<double>(ms.size() - 1);
        const auto i = static_cast<std::size_t>(x);
        return i + 1 < ms.size() ? ms[i] + (x - static_cast<double>(i)) * (ms[i + 1] - ms[i]) : ms.back();
    };
    const double iqr = at(0.75) - at(0.25);
    return {at(0.5), iqr, static_cast<int>(ms.size()), target, true, disturbed || iqr > 0.2 * at(0.5)};
}

struct TvmMeasurer::Job {
    std::size_t index;               // of the candidate
    Term nest;
    std::string target;
    Hash128 key;
    // while it is worked on
    std::int64_t id = -1;
    int worker = -1, generation = -1;
    std::vector<double> ms{};
    int clean = 0, asked = 0, rebuilt = 0;
    double seconds = 0;              // its part of the time that measuring takes
    MachineLoad load{};
    std::optional<Measured> answer{};
};

TvmMeasurer::TvmMeasurer(MeasurerOptions options) : options_(std::move(options)), store_(options_.store) {
    int n = options_.workers;
    if (n <= 0) n = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto program = loopegg_program();
    for (int i = 0; i < n; ++i) workers_.push_back(std::make_unique<WorkerProcess>(program, options_.limits));
}
TvmMeasurer::~TvmMeasurer() = default;

// Compiles and checks with all workers while nothing is timed; then times one candidate at a time, in turns. What is known of a candidate is stored at once:
// whoever is killed loses what was in flight.
void TvmMeasurer::run_batch(std::vector<Job>& jobs) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    auto build = [&](Job& job, int w) {
        const double start = clock_seconds(CLOCK_MONOTONIC);
        WorkerProcess& worker = *workers_[static_cast<std::size_t>(w)];
        nlohmann::json request{{"op", "build"}, {"id", job.id}, {"nest", to_string(job.nest)}, {"target", job.target}, {"shelf", options_.shelf.string()}};
        if (options_.fault)
            if (const std::string fault = options_.fault(job.index); !fault.empty()) request["fault"] = fault;
        const nlohmann::json reply = worker.ask(request);
        std::lock_guard lock(mutex);
        ++counts_.compiled;
        if (reply.value("died", false)) ++counts_.worker_deaths;
        job.worker = w, job.generation = worker.generation();
        job.seconds += (clock_seconds(CLOCK_MONOTONIC) - start) / static_cast<double>(workers_.size());   // others are built meanwhile
        if (!reply["ok"].get<bool>()) settle(job, Measured{{}, reply.value("why", "failed")});
    };
    for (Job& job : jobs) job.id = next_id_++;
    std::vector<std::thread> team;
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w)
        team.emplace_back([&, w] { for (std::size_t i = next++; i < jobs.size(); i = next++) build(jobs[i], w); });
    for (std::thread& t : team) t.join();

    auto current = [&](const Job& job) { const WorkerProcess& w = *workers_[static_cast<std::size_t>(job.worker)]; return w.running() && w.generation() == job.generation; };
    for (int round = 0; round < options_.rounds; ++round)
        for (Job& job : jobs) {
            if (job.answer) continue;
            if (!current(job)) {   // its worker died of another candidate
                if (++job.rebuilt > 4) settle(job, Measured{{}, "its worker died again and again"});
                else build(job, job.worker);
                if (job.answer) continue;
            }
            job.load.look();
            const double start = clock_seconds(CLOCK_MONOTONIC);
            const nlohmann::json reply = workers_[static_cast<std::size_t>(job.worker)]->ask({{"op", "time"}, {"id", job.id}, {"samples", options_.samples}, {"cold", options_.cold_bytes}});
            job.seconds += clock_seconds(CLOCK_MONOTONIC) - start;
            if (reply.value("died", false)) ++counts_.worker_deaths;
            if (!reply["ok"].get<bool>()) {
                settle(job, Measured{{}, reply.value("why", "failed")});
                continue;
            }
            for (double v : reply["ms"]) job.ms.push_back(v);
            job.clean += reply["clean"].get<int>(), job.asked += options_.samples;
            if (round + 1 < options_.rounds) continue;
            settle(job, Measured{summarize(job.ms, job.target, job.clean < 0.7 * job.asked || job.load.busy()), ""});
            workers_[static_cast<std::size_t>(job.worker)]->ask({{"op", "drop"}, {"id", job.id}});
        }
}

void TvmMeasurer::settle(Job& job, Measured answer) {
    ++(answer.latency ? counts_.timed : counts_.failed);
    answer.seconds = job.seconds;
    store_.put(job.key, job.target, to_string(job.nest), answer, timing_words(options_.cold_bytes));
    job.answer = std::move(answer);
}

std::vector<Measured> TvmMeasurer::measure(std::span<const Candidate> candidates) {
    std::vector<Measured> answers(candidates.size());
    std::map<std::string, Target> targets;
    std::map<Hash128, std::vector<std::size_t>> places;   // one measurement answers equal candidates
    std::vector<Job> todo;
    std::vector<Job> elsewhere;
    std::size_t done = 0;
    auto tell = [&] { if (options_.progress) options_.progress(done, candidates.size()); };
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        ++counts_.asked;
        try {
            auto t = targets.find(candidates[i].target);
            if (t == targets.end()) t = targets.emplace(candidates[i].target, find_target(candidates[i].target)).first;
            const Term nest = complete(candidates[i].nest);
            const Hash128 key = latency_key(t->second, nest, timing_words(t->second.reach == Reach::here ? options_.cold_bytes : 0));
            if (auto known = store_.find(key)) {
                answers[i] = *known, ++done, ++counts_.from_store;
                continue;
            }
            if (t->second.reach == Reach::rpc) {
                answers[i] = measure_over_rpc(nest, t->second, options_.rounds * options_.samples), ++done, ++counts_.compiled, ++counts_.timed;
                store_.put(key, candidates[i].target, to_string(nest), answers[i]);
                continue;
            }
            if (t->second.reach != Reach::here) {
                answers[i] = Measured{estimate_latency(nest, t->second), ""}, ++done, ++counts_.estimated;
                continue;
            }
            auto& same = places[key];
            same.push_back(i);
            if (same.size() > 1) continue;
            Job job{i, nest, candidates[i].target, key};
            (store_.claim(key, job.target, to_string(nest)) ? todo : elsewhere).push_back(std::move(job));
        } catch (const std::exception& e) {
            answers[i] = Measured{{}, e.what()}, ++done, ++counts_.failed;
        }
    }
    auto give = [&](const Job& job) {
        for (std::size_t i : places[job.key]) answers[i] = *job.answer, ++done;
    };
    auto run = [&](std::vector<Job>& all) {
        for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(options_.batch)) {
            const std::size_t end = std::min(all.size(), at + static_cast<std::size_t>(options_.batch));
            std::vector<Job> batch(std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(at)), std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(end)));
            run_batch(batch);
            for (const Job& job : batch) give(job);
            tell();
        }
    };
    run(todo);
    while (!elsewhere.empty()) {   // another process is measuring these: wait for it, or take over when it is gone
        std::vector<Job> waiting, mine;
        for (Job& job : elsewhere) {
            if (auto known = store_.find(job.key)) job.answer = *known, ++counts_.from_store, give(job);
            else if (store_.claim(job.key, job.target, to_string(job.nest))) mine.push_back(std::move(job));
            else waiting.push_back(std::move(job));
        }
        run(mine);
        elsewhere = std::move(waiting);
        if (!elsewhere.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    tell();
    return answers;
}

std::vector<std::vector<double>> measure_steps(std::span<const std::filesystem::path> folders, int rounds) {
    constexpr int runs = 12;   // a turn; the first two find another network's weights in the caches
    const auto program = loopegg_program();
    std::vector<std::unique_ptr<WorkerProcess>> workers;
    std::vector<std::vector<std::vector<double>>> samples(folders.size());   // by folder, by step
    for (const auto& folder : folders) {
        workers.push_back(std::make_unique<WorkerProcess>(program, WorkerLimits{120, 0}));
        if (!workers.back()->ask({{"op", "open"}, {"id", 0}, {"folder", folder.string()}})["ok"].get<bool>()) workers.back().reset();
    }
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < folders.size(); ++i) {
            if (!workers[i]) continue;
            const auto reply = workers[i]->ask({{"op", "steps"}, {"id", 0}, {"runs", runs}});
            if (!reply["ok"].get<bool>()) {
                workers[i].reset(), samples[i].clear();
                continue;
            }
            for (std::size_t r = 2; r < reply["ms"].size(); ++r) {
                samples[i].resize(reply["ms"][r].size());
                for (std::size_t s = 0; s < samples[i].size(); ++s) samples[i][s].push_back(reply["ms"][r][s]);
            }
        }
    std::vector<std::vector<double>> times(folders.size());
    for (std::size_t i = 0; i < folders.size(); ++i)
        for (std::vector<double>& ms : samples[i]) {
            const auto quartile = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 4);   // what disturbs a step only ever adds to it
            std::nth_element(ms.begin(), quartile, ms.end());
            times[i].push_back(*quartile);
        }
    return times;
}

std::vector<Measured> measure_networks(std::span<const std::filesystem::path> folders, int rounds) {
    const auto program = loopegg_program();
    struct Run {
        std::unique_ptr<WorkerProcess> worker;
        std::vector<double> ms{};
        int clean = 0, asked = 0;
        std::string why, target = "host";
        MachineLoad load{};
    };
    std::vector<Run> runs;
    for (const auto& folder : folders) {
        Run r;
        r.worker = std::make_unique<WorkerProcess>(program, WorkerLimits{120, 0});
        const auto reply = r.worker->ask({{"op", "open"}, {"id", 0}, {"folder", folder.string()}});
        if (!reply["ok"].get<bool>()) r.why = reply.value("why", "failed");
        runs.push_back(std::move(r));
    }
    for (int round = 0; round < rounds; ++round)
        for (Run& r : runs) {
            if (!r.why.empty()) continue;
            r.load.look();
            const auto reply = r.worker->ask({{"op", "time"}, {"id", 0}, {"samples", 3}});
            if (!reply["ok"].get<bool>()) {
                r.why = reply.value("why", "failed");
                continue;
            }
            for (double v : reply["ms"]) r.ms.push_back(v);
            r.clean += reply["clean"].get<int>(), r.asked += 3;
        }
    std::vector<Measured> answers;
    for (Run& r : runs) answers.push_back(r.why.empty() ? Measured{summarize(r.ms, r.target, r.clean < 0.7 * r.asked || r.load.busy()), ""} : Measured{{}, r.why});
    return answers;
}

}  // namespace loopegg
