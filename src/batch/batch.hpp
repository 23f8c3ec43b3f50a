// Many runs of 'optimize' from one file: processes share a queue, and each job is done once, whatever is killed in between.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "batch/jobs.hpp"
#include "batch/queue.hpp"

namespace loopegg {

// How a job is started, asked whether it has ended, and stopped. A batch knows this interface alone; the program starts a child process.
class RunningJob {
public:
    virtual ~RunningJob() = default;
    virtual std::optional<std::string> ended() = 0;      // none while the job runs; empty when it ended well; otherwise its last words
    virtual bool is_cancelled() const { return false; }  // somebody else (a cluster, a person) ended the job by a signal, so the job did not fail
    virtual void stop() = 0;                             // asks the job to end and waits until it has
};

class JobRunner {
public:
    virtual ~JobRunner() = default;
    virtual std::unique_ptr<RunningJob> start(const Job& job, const std::filesystem::path& folder) = 0;
};

// Runs `program` with the job's arguments. The output of the child goes to folder/log.txt. The child dies with this process, however this process dies.
std::unique_ptr<JobRunner> process_runner(std::filesystem::path program);

struct BatchOptions {
    std::filesystem::path out;  // OUT/queue.sqlite unless a server keeps the queue, OUT/runs/NAME, OUT/result.csv, OUT/result.json
    int at_once = 1;            // jobs that this process runs side by side
    double job_seconds = 0;     // a job that takes longer is stopped and failed; 0: no limit
    double poll_seconds = 0.1;
    bool leave = false;  // end when there is nothing to take, though other processes still run jobs, so that a node of a cluster is free again
};

// Is called about every poll with the state of all jobs. An answer of true asks to stop (Ctrl-C), and running jobs are put back.
using BatchWatcher = std::function<bool(const std::vector<JobRecord>&)>;

// Works until this process, or another one on the same queue, has finished or failed every job. Returns false when the batch was stopped before that.
bool run_batch(const std::vector<Job>& jobs, JobQueue& queue, JobRunner& runner, const BatchOptions& options, const BatchWatcher& watcher);

// The table at the end, with one row for each job. The queue takes the row of a job once, from the run's result.json, so interruptions do not change the
// table.
nlohmann::json batch_result(const std::vector<Job>& jobs, JobQueue& queue, const std::filesystem::path& out);
std::string batch_csv(const nlohmann::json& result);

}  // namespace loopegg
