// Doing a job somewhere: started, asked whether it has ended, stopped. A batch knows this interface; the program starts a child process.
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
    virtual std::optional<std::string> ended() = 0;   // none: still running; empty: well; otherwise its last words
    virtual bool told_to_end() const { return false; }   // by a signal that asks for it, sent by somebody else (a cluster, a person): no failure of its own
    virtual void stop() = 0;                          // asks it to end and waits until it has
};

class JobRunner {
public:
    virtual ~JobRunner() = default;
    virtual std::unique_ptr<RunningJob> start(const Job& job, const std::filesystem::path& folder) = 0;
};

// Runs `program` with the job's arguments; what it says goes to folder/log.txt. The child dies with this process, however that dies.
std::unique_ptr<JobRunner> process_runner(std::filesystem::path program);

}  // namespace loopegg
