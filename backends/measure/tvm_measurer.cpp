#include "backends/measure/tvm_measurer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backends/board/board_pool.hpp"
#include "backends/measure/cold_weights.hpp"
#include "backends/measure/roofline.hpp"
#include "backends/measure/samples.hpp"
#include "backends/measure/sensors.hpp"
#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/progress.hpp"
#include "base/scratch.hpp"
#include "base/team.hpp"
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
    std::size_t index;  // of the candidate
    Term nest;
    std::string target;
    Hash128 key;
    std::string timing;  // cold_weights.hpp
    // While the job is worked on:
    std::int64_t id = -1;
    int worker = -1, generation = -1;
    std::vector<double> ms{};
    int clean = 0, asked = 0, rebuilt = 0, failures = 0;
    bool outside = false;  // the last try failed by something other than the candidate
    double seconds = 0;    // the candidate's part of the time that measuring takes
    MachineLoad load{};
    std::optional<Measured> answer{};
};

TvmMeasurer::TvmMeasurer(MeasurerOptions options) : options_(std::move(options)), store_(options_.store) {
    int n = options_.workers;
    if (n <= 0) n = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const auto program = loopegg_program();
    if (!options_.pool.empty()) options_.limits.writes = options_.pool;
    for (int i = 0; i < n; ++i) workers_.push_back(std::make_unique<WorkerProcess>(program, options_.limits));
}
TvmMeasurer::~TvmMeasurer() = default;

// A failure that is not the candidate's own may be an accident, so the candidate is tried once more, with another worker. A candidate that ran past its
// limit is not tried again, because it would take the same time again.
void TvmMeasurer::fail(Job& job, const nlohmann::json& reply) {
    job.outside = reply.value("outside", false);
    const std::string why = reply.value("why", "failed");
    const bool own = reply.value("own", false);
    if (!own && why.find("past its limit") == std::string::npos && ++job.failures < 2) return;
    settle(job, Measured{{}, why, 0, own});
}

void TvmMeasurer::build(Job& job, int w) {
    WorkerProcess& worker = *workers_[static_cast<std::size_t>(w)];
    while (!job.answer) {
        const double start = monotonic_seconds();
        nlohmann::json request{{"op", "build"}, {"id", job.id}, {"nest", to_string(job.nest)}, {"target", job.target}, {"pool", options_.pool.string()}};
        if (options_.fault)
            if (const std::string fault = options_.fault(job.index); !fault.empty()) request["fault"] = fault;
        const nlohmann::json reply = worker.ask(request);
        std::lock_guard lock(mutex_);
        ++counts_.compiled;
        if (reply.value("died", false)) ++counts_.worker_deaths;
        job.worker = w, job.generation = worker.generation();
        job.seconds += (monotonic_seconds() - start) / static_cast<double>(workers_.size());  // other workers build other candidates meanwhile
        if (reply["ok"].get<bool>()) return;
        fail(job, reply);
    }
}

bool TvmMeasurer::time(Job& job) {
    job.load.look();
    const double start = monotonic_seconds();
    const nlohmann::json reply =
        workers_[static_cast<std::size_t>(job.worker)]->ask({{"op", "time"}, {"id", job.id}, {"samples", options_.samples}, {"cold", options_.cold_bytes}});
    job.seconds += monotonic_seconds() - start;
    if (reply.value("died", false)) ++counts_.worker_deaths;
    if (!reply["ok"].get<bool>()) {
        fail(job, reply);
        return job.answer.has_value();
    }
    for (double v : reply["ms"]) job.ms.push_back(v);
    job.clean += reply["clean"].get<int>(), job.asked += options_.samples;
    return true;
}

// Compiles and checks with all workers while nothing is timed. Then times one candidate at a time, in turns. The answer for a candidate is stored when its
// last round is done, so a process that is killed loses the current batch and nothing else.
void TvmMeasurer::run_batch(std::vector<Job>& jobs) {
    std::atomic<std::size_t> next{0};
    for (Job& job : jobs) job.id = next_id_++;
    run_together(workers_.size(), [&](std::size_t w) {
        for (std::size_t i = next++; i < jobs.size(); i = next++) build(jobs[i], static_cast<int>(w));
    });

    auto current = [&](const Job& job) {
        const WorkerProcess& w = *workers_[static_cast<std::size_t>(job.worker)];
        return w.running() && w.generation() == job.generation;
    };
    for (int round = 0; round < options_.rounds; ++round)
        for (Job& job : jobs) {
            for (bool timed = false; !job.answer && !timed;) {
                if (!current(job)) {  // the worker of the job died, of this candidate or of another
                    if (++job.rebuilt > 4)
                        settle(job, Measured{{}, "its worker died again and again", 0, false});
                    else
                        build(job, job.worker);
                    if (job.answer) break;
                }
                timed = time(job);
            }
            if (job.answer || round + 1 < options_.rounds) continue;
            settle(job, Measured{summarize(job.ms, job.target, job.clean < 0.7 * job.asked || job.load.busy()), ""});
            workers_[static_cast<std::size_t>(job.worker)]->ask({{"op", "drop"}, {"id", job.id}});
        }
    // All candidates failed, and for reasons that are not their own (which may be worded differently). The next candidates would fail as well.
    const auto not_its_fault = [](const Job& j) { return j.outside && !j.answer->latency && !j.answer->own; };
    if (!jobs.empty() && std::all_of(jobs.begin(), jobs.end(), not_its_fault))
        throw UserError(
            Diagnostic{"nothing can be measured: " + jobs[0].answer->why, {}, "what was measured so far is kept; the same command resumes from there"});
}

void TvmMeasurer::settle(Job& job, Measured answer) {
    ++(answer.latency ? counts_.timed : counts_.failed);
    answer.seconds = job.seconds;
    store_.put(job.key, job.target, to_string(job.nest), answer, job.timing);
    job.answer = std::move(answer);
}

namespace {

// A board cannot be used: its fault is the same for every candidate.
class NothingMeasured : public UserError {
public:
    using UserError::UserError;
};

std::string waiting_words(const std::string& holder, std::size_t count, double seconds) {
    return fmt::format("waiting for {}, which measures {} of these now; after {} without news they are measured here",
                       holder.empty() ? "another process" : holder, count, human_seconds(seconds));
}

}  // namespace

Measured TvmMeasurer::on_board(const Term& nest, const Target& target) {
    WorkerLimits limits = options_.limits;
    limits.role = WorkerRole::board;
    if (!board_) board_ = std::make_unique<WorkerProcess>(loopegg_program(), limits);
    const double start = monotonic_seconds();
    const nlohmann::json reply =
        board_->ask({{"op", "board"}, {"id", next_id_++}, {"nest", to_string(nest)}, {"target", target.name}, {"samples", options_.rounds * options_.samples}});
    const double seconds = monotonic_seconds() - start;
    if (reply["ok"].get<bool>()) return {summarize(reply["ms"].get<std::vector<double>>(), target.name, false), "", seconds};
    const std::string why = reply.value("why", "failed");
    if (reply.value("own", false)) return {{}, why, seconds, true};
    throw NothingMeasured(Diagnostic{fmt::format("the board of target '{}' at {} cannot be used: {}", target.name, target.address, why),
                                     {},
                                     "is its RPC server running, and free? 'loopegg targets' lists addresses"});
}

// All workers compile kernels here, and each board runs one kernel at a time.
void TvmMeasurer::run_on_boards(std::vector<Job>& jobs, const Target& target, const std::function<void(Job&)>& settled) {
    auto& pool = pools_[target.name];
    if (!pool) pool = std::make_unique<BoardPool>(target, BoardPoolOptions{options_.store, options_.limits.seconds, options_.board_patience, options_.note});
    const int samples = options_.rounds * options_.samples;
    std::vector<std::unique_ptr<ScratchFile>> packages(jobs.size());
    const auto done = [&](std::size_t i, Measured answer) {
        settle(jobs[i], std::move(answer));
        packages[i].reset();
        settled(jobs[i]);
    };
    const auto pack = [&](std::size_t i, int w) -> std::optional<std::filesystem::path> {
        Job& job = jobs[i];
        auto file = std::make_unique<ScratchFile>(".trial");
        nlohmann::json request{{"op", "pack"},
                               {"id", 0},
                               {"nest", to_string(job.nest)},
                               {"target", job.target},
                               {"pool", options_.pool.string()},
                               {"file", file->path().string()},
                               {"place", i},
                               {"samples", samples},
                               {"seconds", options_.limits.seconds},
                               {"memory", options_.limits.memory_mb}};
        if (options_.fault)
            if (const std::string fault = options_.fault(job.index); !fault.empty()) request["on_board"] = fault;
        nlohmann::json reply;
        const double start = monotonic_seconds();
        for (int tries = 0; tries < 2; ++tries) {  // a worker may have died by accident
            reply = workers_[static_cast<std::size_t>(w)]->ask(request);
            if (reply["ok"].get<bool>() || reply.value("own", false)) break;
        }
        std::lock_guard lock(mutex_);
        ++counts_.compiled;
        if (reply.value("died", false)) ++counts_.worker_deaths;
        job.seconds += (monotonic_seconds() - start) / static_cast<double>(workers_.size());
        if (!reply["ok"].get<bool>()) {
            const std::string why = reply.value("why", "failed");
            const bool died = reply.value("died", false);
            return done(i, Measured{{}, died ? why + " while it was compiled here" : why, 0, reply.value("own", false)}), std::nullopt;
        }
        packages[i] = std::move(file);
        return packages[i]->path();
    };
    pool->run(jobs.size(), static_cast<int>(workers_.size()), pack, [&](std::size_t i, const BoardAnswer& a) {
        std::lock_guard lock(mutex_);
        jobs[i].seconds += a.seconds / static_cast<double>(pool->size());  // other boards time other candidates meanwhile
        if (a.ms.empty())
            done(i, Measured{{}, a.why, 0, a.own});
        else
            done(i, Measured{summarize(a.ms, target.name, a.clean < 0.7 * samples), "", 0, false, a.machine});
    });
}

std::optional<Measured> known_or_claimed(LatencyStore& store, const Hash128& key, const std::string& target, const std::string& nest, double seconds,
                                         const std::function<void(const std::string&)>& note) {
    const double start = monotonic_seconds();
    for (bool said = false;;) {
        if (auto known = store.find(key)) return known;
        if (store.claim(key, target, nest)) return std::nullopt;
        if (!std::exchange(said, true) && note) note(waiting_words(store.holder(key), 1, seconds));
        if (monotonic_seconds() - start > seconds) {
            store.seize(key);
            return std::nullopt;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

std::vector<Measured> TvmMeasurer::measure(std::span<const Candidate> candidates) {
    std::vector<Measured> answers(candidates.size());
    std::map<std::string, Target> targets;
    std::map<Hash128, std::vector<std::size_t>> places;  // one measurement answers equal candidates
    std::vector<Job> todo;
    std::vector<Job> elsewhere;
    std::size_t done = 0;
    auto tell = [&] {
        if (options_.progress) options_.progress(done, candidates.size());
    };
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        ++counts_.asked;
        try {
            auto t = targets.find(candidates[i].target);
            if (t == targets.end()) t = targets.emplace(candidates[i].target, find_target(candidates[i].target)).first;
            const Term nest = complete(candidates[i].nest);
            const std::string timing = timing_words(t->second.reach == Reach::here ? options_.cold_bytes : 0);
            const Hash128 key = latency_key(t->second, nest, timing);
            if (auto known = store_.find(key)) {
                answers[i] = *known, ++done, ++counts_.from_store;
                continue;
            }
            if (t->second.reach == Reach::rpc) {
                answers[i] = on_board(nest, t->second), ++done, ++counts_.compiled, ++counts_.timed;
                store_.put(key, candidates[i].target, to_string(nest), answers[i]);
                continue;
            }
            if (t->second.reach != Reach::here && t->second.reach != Reach::ssh) {
                answers[i] = Measured{estimate_latency(nest, t->second), ""}, ++done, ++counts_.estimated;
                continue;
            }
            auto& same = places[key];
            same.push_back(i);
            if (same.size() > 1) continue;
            Job job{i, nest, candidates[i].target, key, timing};
            (store_.claim(key, job.target, to_string(nest)) ? todo : elsewhere).push_back(std::move(job));
        } catch (const NothingMeasured&) {
            throw;
        } catch (const std::exception& e) {
            answers[i] = Measured{{}, e.what()}, ++done, ++counts_.failed;
        }
    }
    auto give = [&](const Job& job) {
        for (std::size_t i : places[job.key]) answers[i] = *job.answer, ++done;
    };
    auto run_here = [&](std::vector<Job>& all) {
        for (std::size_t at = 0; at < all.size(); at += static_cast<std::size_t>(options_.batch)) {
            const std::size_t end = std::min(all.size(), at + static_cast<std::size_t>(options_.batch));
            std::vector<Job> batch(std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(at)),
                                   std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(end)));
            run_batch(batch);
            for (const Job& job : batch) give(job);
            tell();
        }
    };
    auto run = [&](std::vector<Job>& all) {
        std::vector<Job> here;
        std::map<std::string, std::vector<Job>> elsewhere_by_target;
        for (Job& job : all) (targets.at(job.target).reach == Reach::ssh ? elsewhere_by_target[job.target] : here).push_back(std::move(job));
        run_here(here);
        for (auto& [name, jobs] : elsewhere_by_target) run_on_boards(jobs, targets.at(name), [&](Job& job) { give(job), tell(); });
    };
    run(todo);
    double waited = monotonic_seconds();
    bool said = false;
    while (!elsewhere.empty()) {  // another process measures these keys: wait for it, or take over when it is gone
        std::vector<Job> waiting, mine;
        const bool enough = monotonic_seconds() - waited > options_.wait_seconds;
        for (Job& job : elsewhere) {
            if (auto known = store_.find(job.key))
                job.answer = *known, ++counts_.from_store, give(job);
            else if (store_.claim(job.key, job.target, to_string(job.nest)))
                mine.push_back(std::move(job));
            else if (enough)
                store_.seize(job.key), mine.push_back(std::move(job));
            else
                waiting.push_back(std::move(job));
        }
        if (waiting.size() < elsewhere.size()) waited = monotonic_seconds();  // the other process makes progress
        run(mine);
        elsewhere = std::move(waiting);
        if (elsewhere.empty()) break;
        if (!std::exchange(said, true) && options_.note) options_.note(waiting_words(store_.holder(elsewhere[0].key), elsewhere.size(), options_.wait_seconds));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    tell();
    return answers;
}

std::vector<std::vector<double>> measure_steps(std::span<const std::filesystem::path> folders, int rounds) {
    constexpr int runs = 12;  // in each turn; the first two find another network's weights in the caches
    const auto program = loopegg_program();
    std::vector<std::unique_ptr<WorkerProcess>> workers;
    std::vector<std::vector<std::vector<double>>> samples(folders.size());  // by folder, by step
    for (const auto& folder : folders) {
        workers.push_back(std::make_unique<WorkerProcess>(program, network_limits()));
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
            const auto quartile = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 4);  // a disturbance only ever adds to the time of a step
            std::nth_element(ms.begin(), quartile, ms.end());
            times[i].push_back(*quartile);
        }
    return times;
}

namespace {

// One network while it is timed.
struct NetworkRun {
    std::filesystem::path folder;
    std::unique_ptr<WorkerProcess> worker{};
    std::vector<double> ms{};
    int clean = 0, asked = 0;
    std::string why{};
    MachineLoad load{};

    void ask(nlohmann::json request, const std::function<void(const nlohmann::json&)>& use) {
        if (!why.empty()) return;
        const auto reply = worker->ask(request);
        if (reply["ok"].get<bool>())
            use(reply);
        else
            why = reply.value("why", "failed");
    }
};

std::vector<NetworkRun> timed_in_turns(std::span<const std::filesystem::path> folders, int rounds) {
    std::vector<NetworkRun> runs;
    for (const auto& folder : folders) {
        runs.push_back({folder, std::make_unique<WorkerProcess>(loopegg_program(), network_limits())});
        runs.back().ask({{"op", "open"}, {"id", 0}, {"folder", folder.string()}}, [](const nlohmann::json&) {});
    }
    for (int round = 0; round < rounds; ++round)
        for (NetworkRun& r : runs) {
            r.load.look();
            r.ask({{"op", "time"}, {"id", 0}, {"samples", 3}}, [&](const nlohmann::json& reply) {
                for (double v : reply["ms"]) r.ms.push_back(v);
                r.clean += reply["clean"].get<int>(), r.asked += 3;
            });
        }
    return runs;
}

}  // namespace

std::vector<Measured> measure_networks(std::span<const std::filesystem::path> folders, int rounds) {
    std::vector<NetworkRun> runs = timed_in_turns(folders, rounds);
    // The failure may have been an accident.
    if (std::any_of(runs.begin(), runs.end(), [](const NetworkRun& r) { return !r.why.empty(); })) runs = timed_in_turns(folders, rounds);
    std::vector<Measured> answers;
    for (NetworkRun& r : runs)
        answers.push_back(r.why.empty() && !r.ms.empty() ? Measured{summarize(r.ms, "host", r.clean < 0.7 * r.asked || r.load.busy()), ""}
                                                         : Measured{{}, r.why});
    return answers;
}

}  // namespace loopegg
