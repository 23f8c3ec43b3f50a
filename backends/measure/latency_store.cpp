#include "backends/measure/latency_store.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/error.hpp"
#include "base/sqlite.hpp"
#include "tvm_paths.hpp"

namespace loopegg {
namespace {

// Counts changes of lowering, of the runtime and of how times are taken: older figures are then not found any more.
constexpr int lowering_version = 5;

constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS latency(
  key TEXT PRIMARY KEY, target TEXT NOT NULL, nest TEXT NOT NULL, state TEXT NOT NULL,  -- claimed | measured | failed
  median_ms REAL, iqr_ms REAL, n INTEGER, measured INTEGER, disturbed INTEGER, why TEXT, seconds REAL, timing TEXT,
  owner INTEGER, machine TEXT, at INTEGER NOT NULL DEFAULT (strftime('%s','now'))) WITHOUT ROWID;
)";

std::string machine_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

// One prepared statement, bound, stepped and reset.
class Query {
public:
    Query(sqlite3* db, const char* sql) : db_(db) {
        if (sqlite3_prepare_v2(db, sql, -1, &s_, nullptr) != SQLITE_OK) fail();
    }
    ~Query() { sqlite3_finalize(s_); }
    Query& bind(const std::string& v) { sqlite3_bind_text(s_, ++at_, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT); return *this; }
    Query& bind(double v) { sqlite3_bind_double(s_, ++at_, v); return *this; }
    Query& bind(std::int64_t v) { sqlite3_bind_int64(s_, ++at_, v); return *this; }
    bool row() {
        const int r = sqlite3_step(s_);
        if (r == SQLITE_ROW) return true;
        if (r != SQLITE_DONE) fail();
        return false;
    }
    std::string text(int c) const {
        const unsigned char* t = sqlite3_column_text(s_, c);
        return t ? reinterpret_cast<const char*>(t) : "";
    }
    double real(int c) const { return sqlite3_column_double(s_, c); }
    std::int64_t integer(int c) const { return sqlite3_column_int64(s_, c); }

private:
    [[noreturn]] void fail() const { throw UserError(std::string("the latency store: ") + sqlite3_errmsg(db_)); }
    sqlite3* db_;
    sqlite3_stmt* s_ = nullptr;
    int at_ = 0;
};

}  // namespace

struct LatencyStore::Impl {
    sqlite3* db = nullptr;
    std::mutex mutex;
    std::string machine = machine_name();

    // The owner of a claim is gone when its process is; one on another machine is believed for an hour.
    bool alive(std::int64_t owner, const std::string& where, std::int64_t age) const {
        if (where != machine) return age < 3600;
        return kill(static_cast<pid_t>(owner), 0) == 0 || errno == EPERM;
    }
};

LatencyStore::LatencyStore(const std::filesystem::path& file) : impl_(std::make_unique<Impl>()) {
    std::error_code ignored;
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
    if (sqlite3_open_v2(file.c_str(), &impl_->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr) != SQLITE_OK) {
        std::string why = sqlite3_errmsg(impl_->db);
        sqlite3_close(impl_->db);
        throw UserError("cannot open the latency store " + file.string() + ": " + why);
    }
    sqlite3_busy_timeout(impl_->db, 60000);
    for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", schema})
        if (exec_waiting(impl_->db, sql) != SQLITE_OK) throw UserError("cannot use the latency store " + file.string() + ": " + sqlite3_errmsg(impl_->db));
    // Stores of earlier versions lack these columns; for all others the statements fail and change nothing.
    for (const char* sql : {"ALTER TABLE latency ADD COLUMN seconds REAL", "ALTER TABLE latency ADD COLUMN timing TEXT"}) sqlite3_exec(impl_->db, sql, nullptr, nullptr, nullptr);
}
LatencyStore::~LatencyStore() { sqlite3_close(impl_->db); }

std::optional<Measured> LatencyStore::find(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    Query q(impl_->db, "SELECT state, median_ms, iqr_ms, n, measured, disturbed, why, target, seconds FROM latency WHERE key=? AND state<>'claimed'");
    if (!q.bind(key.hex()).row()) return {};
    Measured m;
    if (q.text(0) == "measured") m.latency = Latency{q.real(1), q.real(2), static_cast<int>(q.integer(3)), q.text(7), q.integer(4) != 0, q.integer(5) != 0};
    m.why = q.text(6), m.seconds = q.real(8);
    return m;
}

bool LatencyStore::claim(const Hash128& key, const std::string& target, const std::string& nest) {
    std::lock_guard lock(impl_->mutex);
    Query insert(impl_->db, "INSERT OR IGNORE INTO latency(key,target,nest,state,owner,machine) VALUES(?,?,?,'claimed',?,?)");
    insert.bind(key.hex()).bind(target).bind(nest).bind(std::int64_t{getpid()}).bind(impl_->machine).row();
    if (sqlite3_changes(impl_->db) == 1) return true;
    std::int64_t owner = 0;
    {
        Query q(impl_->db, "SELECT owner, machine, strftime('%s','now') - at FROM latency WHERE key=? AND state='claimed'");
        if (!q.bind(key.hex()).row()) return false;
        owner = q.integer(0);
        if (owner == getpid() && q.text(1) == impl_->machine) return false;
        if (impl_->alive(owner, q.text(1), q.integer(2))) return false;
    }
    Query take(impl_->db, "UPDATE latency SET owner=?, machine=?, at=strftime('%s','now') WHERE key=? AND state='claimed' AND owner=?");
    take.bind(std::int64_t{getpid()}).bind(impl_->machine).bind(key.hex()).bind(owner).row();
    return sqlite3_changes(impl_->db) == 1;
}

void LatencyStore::put(const Hash128& key, const std::string& target, const std::string& nest, const Measured& m, const std::string& timing) {
    std::lock_guard lock(impl_->mutex);
    const Latency l = m.latency.value_or(Latency{});
    Query q(impl_->db,
            "INSERT OR REPLACE INTO latency(key,target,nest,state,median_ms,iqr_ms,n,measured,disturbed,why,seconds,timing,owner,machine) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    q.bind(key.hex()).bind(target).bind(nest).bind(std::string(m.latency ? "measured" : "failed")).bind(l.median_ms).bind(l.iqr_ms).bind(std::int64_t{l.n});
    q.bind(std::int64_t{l.measured}).bind(std::int64_t{l.disturbed}).bind(m.why).bind(m.seconds).bind(timing).bind(std::int64_t{getpid()}).bind(impl_->machine).row();
}

void LatencyStore::release(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    Query(impl_->db, "DELETE FROM latency WHERE key=? AND state='claimed' AND owner=?").bind(key.hex()).bind(std::int64_t{getpid()}).row();
}

LatencyStore::Counts LatencyStore::counts() {
    std::lock_guard lock(impl_->mutex);
    Counts c;
    Query q(impl_->db, "SELECT state, count(*) FROM latency GROUP BY state");
    while (q.row()) (q.text(0) == "measured" ? c.known : q.text(0) == "failed" ? c.failed : c.claimed) = q.integer(1);
    return c;
}

std::filesystem::path default_store_file() {
    if (const char* file = std::getenv("LOOPEGG_STORE")) return file;
    if (const char* cache = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(cache) / "loopegg" / "latency.sqlite";
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : ".") / ".cache" / "loopegg" / "latency.sqlite";
}

Hash128 latency_key(const Target& target, const Term& nest, const std::string& timing) {
    return Hasher().add(target.fingerprint()).add(to_string(nest)).add(std::string_view(tvm_version)).add(lowering_version).add(timing).finish();
}

}  // namespace loopegg
