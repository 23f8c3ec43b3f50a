// The queue of a batch, behind one interface: several processes take jobs from it, each job is done once, a dead process's job is free again.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/jobs.hpp"

namespace loopegg {

enum class JobState { waiting, running, done, failed };
const char* to_string(JobState state);

struct JobRecord {
    std::string id, name;
    JobState state = JobState::waiting;
    std::string error;        // of a failed job: its last words
    double seconds = 0;       // of a finished job
    double running_for = 0;   // of a running one
    bool ours = false;        // taken by this process
};

// A store on another database (PostgreSQL, for many machines) implements this and nothing else changes.
class JobQueue {
public:
    virtual ~JobQueue() = default;
    virtual void add(const std::vector<Job>& jobs) = 0;                                    // those it does not know yet
    virtual std::optional<std::string> take(const std::vector<std::string>& among) = 0;   // the id of a job that is ours from now on
    virtual void finish(const std::string& id, const std::string& error, double seconds) = 0;   // empty error: done
    virtual void put_back(const std::string& id) = 0;                                      // stopped before its end
    virtual void forget_failures(const std::vector<std::string>& among) = 0;               // failed jobs wait again
    virtual std::vector<JobRecord> list(const std::vector<std::string>& among) = 0;        // in that order
};

// One SQLite file, shared by the processes of one machine.
std::unique_ptr<JobQueue> open_sqlite_queue(const std::filesystem::path& file);

}  // namespace loopegg
