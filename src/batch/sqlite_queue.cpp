#include <chrono>

#include <fmt/format.h>

#include "base/database.hpp"
#include "base/error.hpp"
#include "base/owner.hpp"
#include "batch/queue.hpp"

namespace loopegg {
namespace {

// `owner` names a process (base/owner.hpp); `beat` is when it last said that it lives.
constexpr int version = 2;
constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS jobs(
  id TEXT PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'waiting',   -- waiting | running | done | failed
  owner TEXT NOT NULL DEFAULT '', began REAL NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', beat REAL NOT NULL DEFAULT 0) WITHOUT ROWID;
)";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

class SqliteQueue : public JobQueue {
public:
    explicit SqliteQueue(const std::filesystem::path& file) : db_(file, "the queue of the batch", version, schema) {
        db_.try_run("ALTER TABLE jobs ADD COLUMN beat REAL NOT NULL DEFAULT 0");   // a queue of an earlier version; for others it fails and changes nothing
    }

    void add(const std::vector<Job>& jobs) override {
        Transaction all(db_);
        for (const Job& job : jobs) Query(db_, "INSERT OR IGNORE INTO jobs(id, name) VALUES(?, ?)").bind(job.id).bind(job.name).done();
        all.commit();
    }

    std::optional<std::string> take(const std::vector<std::string>& among) override {
        Transaction all(db_);   // begins by writing, so no other process takes between our look and our claim
        for (const std::string& id : among) {
            Query look(db_, "SELECT state, owner, beat FROM jobs WHERE id = ?");
            if (!look.bind(id).row()) continue;
            const std::string state = look.text(0);
            if (state != "waiting" && !(state == "running" && !owner_lives(look.text(1), now() - look.real(2)))) continue;
            Query(db_, "UPDATE jobs SET state = 'running', owner = ?, began = ?, beat = ?, error = '' WHERE id = ?").bind(owner_).bind(now()).bind(now()).bind(id).done();
            all.commit();
            return id;
        }
        all.commit();
        return std::nullopt;
    }

    void finish(const std::string& id, const std::string& error, double seconds) override {
        Query(db_, "UPDATE jobs SET state = ?, error = ?, seconds = ?, owner = '' WHERE id = ? AND owner = ?").bind(std::string(error.empty() ? "done" : "failed")).bind(error).bind(seconds).bind(id).bind(owner_).done();
    }
    void put_back(const std::string& id) override { Query(db_, "UPDATE jobs SET state = 'waiting', owner = '' WHERE id = ? AND owner = ?").bind(id).bind(owner_).done(); }

    void forget_failures(const std::vector<std::string>& among) override {
        Transaction all(db_);
        for (const std::string& id : among) Query(db_, "UPDATE jobs SET state = 'waiting' WHERE id = ? AND state = 'failed'").bind(id).done();
        all.commit();
    }

    std::vector<JobRecord> list(const std::vector<std::string>& among) override {
        say_that_we_live();
        std::vector<JobRecord> out;
        for (const std::string& id : among) {
            Query look(db_, "SELECT name, state, error, seconds, began, owner, beat FROM jobs WHERE id = ?");
            if (!look.bind(id).row()) continue;
            JobRecord r{id, look.text(0), JobState::waiting, look.text(2), look.real(3), 0, look.text(5) == owner_};
            const std::string state = look.text(1);
            r.state = state == "done" ? JobState::done : state == "failed" ? JobState::failed : state == "running" && owner_lives(look.text(5), now() - look.real(6)) ? JobState::running : JobState::waiting;
            if (r.state == JobState::running) r.running_for = now() - look.real(4);
            out.push_back(std::move(r));
        }
        return out;
    }

private:
    // Every poll comes here; others that cannot see this process hear of it often enough.
    void say_that_we_live() {
        if (now() - said_ < beat_seconds) return;
        Query(db_, "UPDATE jobs SET beat = ? WHERE owner = ? AND state = 'running'").bind(now()).bind(owner_).done();
        said_ = now();
    }

    Database db_;
    const std::string owner_ = own_name();
    double said_ = 0;
};

}  // namespace

const char* to_string(JobState state) {
    switch (state) {
        case JobState::waiting: return "waiting";
        case JobState::running: return "running";
        case JobState::done: return "done";
        case JobState::failed: return "failed";
    }
    return "";
}

std::unique_ptr<JobQueue> open_sqlite_queue(const std::filesystem::path& file) { return std::make_unique<SqliteQueue>(file); }

}  // namespace loopegg
