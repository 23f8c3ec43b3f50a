// The queue of a batch. Several processes take jobs from the queue, each job's result is written once, and the job of a dead process is free again.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "batch/jobs.hpp"
#include "store/address.hpp"

namespace loopegg {

class Database;

enum class JobState { waiting, running, done, failed };
const char* to_string(JobState state);

struct JobRecord {
    std::string id, name;
    JobState state = JobState::waiting;
    std::string error;       // of a failed job: its last words
    double seconds = 0;      // of a finished job
    double running_for = 0;  // of a running job, in seconds
    bool ours = false;       // this process took the job
    std::string owner{};     // of a running job, in words
};

// The queue is the same on a store that is a file of one machine and on a server for many.
class JobQueue {
public:
    // `batch` names the queue among those of one store.
    explicit JobQueue(const StoreAddress& address, std::string batch = "");
    ~JobQueue();
    JobQueue(const JobQueue&) = delete;
    JobQueue& operator=(const JobQueue&) = delete;

    void add(const std::vector<Job>& jobs);  // jobs that the queue does not know yet
    std::optional<std::string> take();       // the id of a waiting job, which is ours from now on
    // With an empty error, the job is done and has its result. A job that is not ours any more stays as it is.
    void finish(const std::string& id, const std::string& error, double seconds, const std::string& result = "");
    void put_back(const std::string& id);                                // for a job that was stopped before its end
    void forget_failures(const std::vector<std::string>& among);         // failed jobs wait again
    std::vector<JobRecord> list(const std::vector<std::string>& among);  // in that order; the call also says that this process lives
    std::map<std::string, std::string> results();                        // by id, of jobs that are done
    std::vector<std::pair<JobRecord, std::string>> everything();         // all jobs of the batch, whoever added them, in order, each with its result
    void say_that_we_live();                                             // call it now and then while a job runs

private:
    std::string key_of(const std::string& id) const;  // names the job in the store, where other batches may have a job of the same id
    bool claim(const std::string& key, const std::string& condition, const std::string& owner);

    std::unique_ptr<Database> db_;
    const std::string batch_, owner_;         // owner_: this process, and this queue inside it
    std::map<std::string, std::string> ids_;  // by key
    std::set<std::string> held_;              // keys of jobs that this process knows it has
    double said_ = 0;
};

// Opens OUT/queue.sqlite, or, where the store is a server, a queue of OUT's name on that server.
std::unique_ptr<JobQueue> open_queue(const std::filesystem::path& out);
bool has_queue(const std::filesystem::path& out);

}  // namespace loopegg
