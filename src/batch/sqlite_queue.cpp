#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sqlite.hpp"
#include "batch/queue.hpp"

namespace loopegg {
namespace {

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS jobs(
  id TEXT PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'waiting',   -- waiting | running | done | failed
  owner TEXT NOT NULL DEFAULT '', began REAL NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
)";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// When a process began, in clock ticks since boot: tells a process from a later one that got its number.
std::string start_of(long pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t after_name = text.rfind(')');
    if (after_name == std::string::npos) return "";
    std::istringstream fields(text.substr(after_name + 1));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i)
        if (i == 3 && field == "Z") return "";   // dead, only not yet waited for
    return field;
}

std::string host() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

// "host pid start"
bool alive(const std::string& owner) {
    std::istringstream fields(owner);
    std::string where, start;
    long pid = 0;
    fields >> where >> pid >> start;
    if (where != host()) return true;   // cannot be seen from here, so believed
    return !start.empty() && start_of(pid) == start;
}

class Statement {
public:
    Statement(sqlite3* db, const char* sql) : db_(db) { check(sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr)); }
    ~Statement() { sqlite3_finalize(statement_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;
    Statement& bind(const std::string& text) { check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT)); return *this; }
    Statement& bind(double value) { check(sqlite3_bind_double(statement_, ++bound_, value)); return *this; }
    bool step() {
        int code = sqlite3_step(statement_);
        if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
        return code == SQLITE_ROW;
    }
    std::string text(int column) const { const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column)); return t ? t : ""; }
    double real(int column) const { return sqlite3_column_double(statement_, column); }

private:
    void check(int code) const {
        if (code != SQLITE_OK) throw UserError(fmt::format("the queue of the batch: {}", sqlite3_errmsg(db_)));
    }
    sqlite3* db_;
    sqlite3_stmt* statement_ = nullptr;
    int bound_ = 0;
};

class SqliteQueue : public JobQueue {
public:
    explicit SqliteQueue(const std::filesystem::path& file) : owner_(fmt::format("{} {} {}", host(), ::getpid(), start_of(::getpid()))) {
        if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) {
            std::string why = sqlite3_errmsg(db_);
            sqlite3_close(db_);
            throw UserError(fmt::format("cannot open the queue of the batch '{}': {}", file.string(), why));
        }
        sqlite3_busy_timeout(db_, 60'000);
        run("PRAGMA journal_mode=WAL");
        run(schema);
    }
    ~SqliteQueue() override { sqlite3_close(db_); }

    void add(const std::vector<Job>& jobs) override {
        Transaction all(*this);
        for (const Job& job : jobs) Statement(db_, "INSERT OR IGNORE INTO jobs(id, name) VALUES(?, ?)").bind(job.id).bind(job.name).step();
        all.commit();
    }

    std::optional<std::string> take(const std::vector<std::string>& among) override {
        Transaction all(*this);   // begins by writing, so no other process takes between our look and our claim
        for (const std::string& id : among) {
            Statement look(db_, "SELECT state, owner FROM jobs WHERE id = ?");
            if (!look.bind(id).step()) continue;
            const std::string state = look.text(0), owner = look.text(1);
            if (state != "waiting" && !(state == "running" && !alive(owner))) continue;
            Statement(db_, "UPDATE jobs SET state = 'running', owner = ?, began = ?, error = '' WHERE id = ?").bind(owner_).bind(now()).bind(id).step();
            all.commit();
            return id;
        }
        all.commit();
        return std::nullopt;
    }

    void finish(const std::string& id, const std::string& error, double seconds) override {
        Statement(db_, "UPDATE jobs SET state = ?, error = ?, seconds = ?, owner = '' WHERE id = ? AND owner = ?").bind(std::string(error.empty() ? "done" : "failed")).bind(error).bind(seconds).bind(id).bind(owner_).step();
    }
    void put_back(const std::string& id) override { Statement(db_, "UPDATE jobs SET state = 'waiting', owner = '' WHERE id = ? AND owner = ?").bind(id).bind(owner_).step(); }

    void forget_failures(const std::vector<std::string>& among) override {
        Transaction all(*this);
        for (const std::string& id : among) Statement(db_, "UPDATE jobs SET state = 'waiting' WHERE id = ? AND state = 'failed'").bind(id).step();
        all.commit();
    }

    std::vector<JobRecord> list(const std::vector<std::string>& among) override {
        std::vector<JobRecord> out;
        for (const std::string& id : among) {
            Statement look(db_, "SELECT name, state, error, seconds, began, owner FROM jobs WHERE id = ?");
            if (!look.bind(id).step()) continue;
            JobRecord r{id, look.text(0), JobState::waiting, look.text(2), look.real(3), 0, look.text(5) == owner_};
            const std::string state = look.text(1);
            r.state = state == "done" ? JobState::done : state == "failed" ? JobState::failed : state == "running" && alive(look.text(5)) ? JobState::running : JobState::waiting;
            if (r.state == JobState::running) r.running_for = now() - look.real(4);
            out.push_back(std::move(r));
        }
        return out;
    }

private:
    // All or nothing, also when an exception or a kill comes in between.
    class Transaction {
    public:
        explicit Transaction(SqliteQueue& queue) : queue_(queue) { queue_.run("BEGIN IMMEDIATE"); }
        ~Transaction() { if (!committed_) sqlite3_exec(queue_.db_, "ROLLBACK", nullptr, nullptr, nullptr); }
        void commit() { queue_.run("COMMIT"), committed_ = true; }

    private:
        SqliteQueue& queue_;
        bool committed_ = false;
    };

    void run(const char* sql) {
        if (exec_waiting(db_, sql) != SQLITE_OK) throw UserError(fmt::format("the queue of the batch: {}", sqlite3_errmsg(db_)));
    }

    sqlite3* db_ = nullptr;
    const std::string owner_;
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
