// Answers how long a nest takes: from the store, by running the nest in worker processes, or, where there is no device, by an estimate.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/measure/latency_store.hpp"
#include "backends/measure/worker_process.hpp"
#include "extract/measurer.hpp"

namespace loopegg {

class BoardPool;

struct MeasurerOptions {
    StoreAddress store = default_store();
    int workers = 0;               // 0: as many as there are cores
    int rounds = 3;                // candidates of a batch take turns this often
    int samples = 5;               // per round
    int batch = 24;                // compiled together, then timed together
    std::int64_t cold_bytes = 0;   // on this machine, copies of the weights take so much memory (cold_weights.hpp); 0: the same weights every time
    std::filesystem::path pool{};  // a folder for the compiled kernels (kernel_cache.hpp); empty: they are not kept
    WorkerLimits limits{};
    double wait_seconds = 300;  // how long to wait for a key that another process measures; then this process measures it
    std::function<void(std::size_t done, std::size_t all)> progress{};
    std::function<void(const std::string& line)> note{};    // what a waiting person should know
    double board_patience = 120;                            // seconds to wait while no board of a target answers
    std::function<std::string(std::size_t index)> fault{};  // tests: what the worker, or the board, should do instead of candidate `index`
};

class TvmMeasurer : public Measurer {
public:
    explicit TvmMeasurer(MeasurerOptions options = {});
    ~TvmMeasurer() override;

    std::vector<Measured> measure(std::span<const Candidate> candidates) override;

    struct Counts {
        long asked = 0, from_store = 0, compiled = 0, timed = 0, failed = 0, estimated = 0, worker_deaths = 0;
    };
    const Counts& counts() const { return counts_; }

private:
    struct Job;
    void run_batch(std::vector<Job>& jobs);
    void build(Job& job, int worker);
    bool time(Job& job);  // one round; false: the job needs to be built again
    void fail(Job& job, const nlohmann::json& reply);
    void settle(Job& job, Measured answer);  // gives the job its final answer, and the store as well
    void run_on_boards(std::vector<Job>& jobs, const Target& target, const std::function<void(Job&)>& settled);
    Measured on_board(const Term& nest, const Target& target);
    std::mutex mutex_;  // protects what builders share: counts, the store's order
    Counts counts_;
    MeasurerOptions options_;
    LatencyStore store_;
    std::vector<std::unique_ptr<WorkerProcess>> workers_;
    std::unique_ptr<WorkerProcess> board_;                     // talks to boards by RPC
    std::map<std::string, std::unique_ptr<BoardPool>> pools_;  // of boards that ssh reaches, by target
    std::int64_t next_id_ = 0;
};

// The answer of the store, or of the process that measures the key now. Gives none where the key is claimed for the caller, who must measure it. Waits at
// most `seconds`, says so, and then takes the key over.
std::optional<Measured> known_or_claimed(LatencyStore& store, const Hash128& key, const std::string& target, const std::string& nest, double seconds,
                                         const std::function<void(const std::string&)>& note);

// Median and quartile distance of samples.
Latency summarize(std::vector<double> ms, const std::string& target, bool disturbed);

}  // namespace loopegg
