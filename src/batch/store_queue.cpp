#include <unistd.h>

#include <atomic>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/owner.hpp"
#include "batch/queue.hpp"
#include "store/database.hpp"

namespace loopegg {
namespace {

std::string new_owner() {
    static std::atomic<int> queues{0};
    return own_name() + " " + std::to_string(queues++);
}

JobState state_of(const std::string& word, const std::string& owner, double silent_seconds) {
    if (word == "done") return JobState::done;
    if (word == "failed") return JobState::failed;
    return word == "running" && is_owner_alive(owner, silent_seconds) ? JobState::running : JobState::waiting;
}

constexpr const char* record_columns = "id, name, state, error, seconds, unixepoch() - began, owner, unixepoch() - beat";
JobRecord record_of(const StoreQuery& q, const std::string& us) {
    JobRecord r{q.text(0), q.text(1), state_of(q.text(2), q.text(6), q.real(7)), q.text(3), q.real(4), 0, q.text(6) == us};
    if (r.state == JobState::running) r.running_for = q.real(5), r.owner = owner_words(q.text(6));
    return r;
}

}  // namespace

JobQueue::JobQueue(const StoreAddress& address, std::string batch)
    : db_(std::make_unique<Database>(address, "the queue of the batch")), batch_(std::move(batch)), owner_(new_owner()) {}
JobQueue::~JobQueue() = default;

std::string JobQueue::key_of(const std::string& id) const { return batch_.empty() ? id : Hasher().add(batch_).add(id).finish().hex(); }

void JobQueue::add(const std::vector<Job>& jobs) {
    std::set<std::string> there;
    for (StoreQuery q = std::move(StoreQuery(*db_, "SELECT id FROM jobs WHERE batch = ?").bind(batch_)); q.row();) there.insert(q.text(0));
    for (const Job& job : jobs) ids_[key_of(job.id)] = job.id;
    // Row by row in one order for all, so that two who add the same jobs do not wait for each other in a ring.
    std::map<std::string, std::int64_t> missing;
    for (std::size_t i = 0; i < jobs.size(); ++i)
        if (const std::string key = key_of(jobs[i].id); !there.contains(key)) missing[key] = static_cast<std::int64_t>(i);
    if (missing.empty()) return;
    db_->atomically([&] {
        for (const auto& [key, place] : missing)
            StoreQuery(*db_, "INSERT INTO jobs(id, name, batch, place) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING")
                .bind(key)
                .bind(jobs[static_cast<std::size_t>(place)].name)
                .bind(batch_)
                .bind(place)
                .done();
    });
}

bool JobQueue::claim(const std::string& key, const std::string& condition, const std::string& owner) {
    StoreQuery(*db_, "UPDATE jobs SET state = 'running', owner = ?, began = unixepoch(), beat = unixepoch(), error = '' WHERE id = ? AND " + condition +
                         " AND owner = ?")
        .bind(owner_)
        .bind(key)
        .bind(owner)
        .done();
    return db_->changes() == 1;
}

std::optional<std::string> JobQueue::take() {
    const std::string look = "SELECT id FROM jobs WHERE batch = ? AND state = 'waiting'";
    const std::string taken = db_->atomically([&]() -> std::string {
        std::string first;
        {
            StoreQuery q(*db_, look + " ORDER BY place LIMIT 1" + db_->skip_locked());
            if (q.bind(batch_).row()) first = q.text(0);
        }
        if (first.empty()) return "";
        if (ids_.contains(first)) return claim(first, "state = 'waiting'", "") ? first : "";
        // A job of another file that shares this folder comes first: those that are wanted are looked for one by one.
        std::vector<std::string> waiting;
        for (StoreQuery q = std::move(StoreQuery(*db_, look + " ORDER BY place").bind(batch_)); q.row();)
            if (ids_.contains(q.text(0))) waiting.push_back(q.text(0));
        for (const std::string& key : waiting) {
            StoreQuery q(*db_, "SELECT id FROM jobs WHERE id = ? AND state = 'waiting'" + std::string(db_->skip_locked()));
            if (q.bind(key).row() && claim(key, "state = 'waiting'", "")) return key;
        }
        return "";
    });
    if (!taken.empty()) return held_.insert(taken), ids_.at(taken);
    // Nobody waits: jobs of processes that are gone, and jobs that are ours by a statement whose answer a restarting server lost.
    std::vector<std::pair<std::string, std::string>> left;
    for (StoreQuery q =
             std::move(StoreQuery(*db_, "SELECT id, owner, unixepoch() - beat FROM jobs WHERE batch = ? AND state = 'running' ORDER BY place").bind(batch_));
         q.row();)
        if (ids_.contains(q.text(0)) && (q.text(1) == owner_ ? !held_.contains(q.text(0)) : !is_owner_alive(q.text(1), q.real(2))))
            left.emplace_back(q.text(0), q.text(1));
    for (const auto& [key, owner] : left)
        if (claim(key, "state = 'running'", owner)) return held_.insert(key), ids_.at(key);
    return std::nullopt;
}

void JobQueue::finish(const std::string& id, const std::string& error, double seconds, const std::string& result) {
    StoreQuery(*db_, "UPDATE jobs SET state = ?, error = ?, seconds = ?, result = ?, owner = '' WHERE id = ? AND owner = ? AND state = 'running'")
        .bind(std::string(error.empty() ? "done" : "failed"))
        .bind(error)
        .bind(seconds)
        .bind(result)
        .bind(key_of(id))
        .bind(owner_)
        .done();
    held_.erase(key_of(id));
}

void JobQueue::put_back(const std::string& id) {
    StoreQuery(*db_, "UPDATE jobs SET state = 'waiting', owner = '' WHERE id = ? AND owner = ? AND state = 'running'").bind(key_of(id)).bind(owner_).done();
    held_.erase(key_of(id));
}

void JobQueue::forget_failures(const std::vector<std::string>& among) {
    std::set<std::string> keys;
    for (const std::string& id : among) keys.insert(key_of(id));
    db_->atomically([&] {
        for (const std::string& key : keys)
            StoreQuery(*db_, "UPDATE jobs SET state = 'waiting', owner = '' WHERE id = ? AND state = 'failed'").bind(key).done();
    });
}

std::vector<JobRecord> JobQueue::list(const std::vector<std::string>& among) {
    say_that_we_live();
    std::map<std::string, JobRecord> all;
    for (StoreQuery q = std::move(StoreQuery(*db_, fmt::format("SELECT {} FROM jobs WHERE batch = ?", record_columns)).bind(batch_)); q.row();) {
        JobRecord r = record_of(q, owner_);
        all[r.id] = std::move(r);
    }
    std::vector<JobRecord> out;
    for (const std::string& id : among)
        if (auto found = all.find(key_of(id)); found != all.end()) out.push_back(found->second), out.back().id = id;
    return out;
}

std::vector<std::pair<JobRecord, std::string>> JobQueue::everything() {
    std::vector<std::pair<JobRecord, std::string>> all;
    StoreQuery q(*db_, fmt::format("SELECT {}, result FROM jobs WHERE batch = ? ORDER BY place, id", record_columns));
    for (q.bind(batch_); q.row();) all.emplace_back(record_of(q, owner_), q.text(8));
    return all;
}

std::map<std::string, std::string> JobQueue::results() {
    std::map<std::string, std::string> out;
    for (StoreQuery q = std::move(StoreQuery(*db_, "SELECT id, result FROM jobs WHERE batch = ? AND state = 'done'").bind(batch_)); q.row();)
        if (auto known = ids_.find(q.text(0)); known != ids_.end()) out[known->second] = q.text(1);
    return out;
}

void JobQueue::say_that_we_live() {
    if (monotonic_seconds() - said_ < beat_seconds) return;
    StoreQuery(*db_, "UPDATE jobs SET beat = unixepoch() WHERE owner = ? AND state = 'running'").bind(owner_).done();
    said_ = monotonic_seconds();
}

const char* to_string(JobState state) {
    switch (state) {
        case JobState::waiting: return "waiting";
        case JobState::running: return "running";
        case JobState::done: return "done";
        case JobState::failed: return "failed";
    }
    return "";
}

std::unique_ptr<JobQueue> open_queue(const std::filesystem::path& out) {
    if (const StoreAddress store = default_store(); store.on_server())
        return std::make_unique<JobQueue>(store, std::filesystem::weakly_canonical(out).string());
    return std::make_unique<JobQueue>(out / "queue.sqlite");
}

bool has_queue(const std::filesystem::path& out) { return default_store().on_server() || std::filesystem::exists(out / "queue.sqlite"); }

}  // namespace loopegg
