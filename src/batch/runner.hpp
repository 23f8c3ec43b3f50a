// How a job is started, asked whether it has ended, and stopped. A batch knows this interface alone; the program starts a child process.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "batch/jobs.hpp"

namespace loopegg {

class RunningJob {
public:
    virtual ~RunningJob() = default;
    virtual std::optional<std::string> ended() = 0;     // none while the job runs; empty when it ended well; otherwise its last words
    virtual bool told_to_end() const { return false; }  // somebody else (a cluster, a person) ended the job by a signal, so the job did not fail
    virtual void stop() = 0;                            // asks the job to end and waits until it has
};

class JobRunner {
public:
    virtual ~JobRunner() = default;
    virtual std::unique_ptr<RunningJob> start(const Job& job, const std::filesystem::path& folder) = 0;
};

// Runs `program` with the job's arguments. The output of the child goes to folder/log.txt. The child dies with this process, however this process dies.
std::unique_ptr<JobRunner> process_runner(std::filesystem::path program);

}  // namespace loopegg
