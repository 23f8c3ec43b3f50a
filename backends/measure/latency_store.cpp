#include "backends/measure/latency_store.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "base/database.hpp"
#include "base/error.hpp"
#include "base/owner.hpp"
#include "tvm_paths.hpp"

namespace loopegg {
namespace {

// Counts changes of lowering, of the runtime and of how times are taken: older figures are then not found any more.
constexpr int lowering_version = 6;

// `owner` names a process (base/owner.hpp) and one store inside it; `at` is when it last said that it lives, or when the row was written.
constexpr int version = 2;
constexpr const char* schema = R"(
CREATE TABLE IF NOT EXISTS latency(
  key TEXT PRIMARY KEY, target TEXT NOT NULL, nest TEXT NOT NULL, state TEXT NOT NULL,  -- claimed | measured | failed
  median_ms REAL, iqr_ms REAL, n INTEGER, measured INTEGER, disturbed INTEGER, why TEXT, seconds REAL, timing TEXT,
  owner TEXT, machine TEXT, at INTEGER NOT NULL DEFAULT (strftime('%s','now'))) WITHOUT ROWID;
)";

std::string new_owner() {
    static std::atomic<int> stores{0};
    return own_name() + " " + std::to_string(stores++);
}

}  // namespace

struct LatencyStore::Impl {
    explicit Impl(const std::filesystem::path& file) : db(file, "the latency store", version, schema) {}
    Database db;
    std::mutex mutex;
    const std::string owner = new_owner();
    std::set<std::string> held;          // keys that are claimed by this store

    // Says now and then that the holder of these claims lives. It begins with the first claim.
    std::thread heart;
    std::condition_variable stop;
    bool stopping = false;

    void beat() {
        std::unique_lock lock(mutex);
        while (!stop.wait_for(lock, std::chrono::duration<double>(beat_seconds), [&] { return stopping; })) {
            if (held.empty()) continue;
            try {
                Query(db, "UPDATE latency SET at=strftime('%s','now') WHERE owner=? AND state='claimed'").bind(owner).done();
            } catch (const UserError&) {   // a full disk: the claims are lost to others, who measure what we measure
            }
        }
    }
    void hold(const std::string& key) {
        held.insert(key);
        if (!heart.joinable()) heart = std::thread([this] { beat(); });
    }
};

LatencyStore::LatencyStore(const std::filesystem::path& file) : impl_(std::make_unique<Impl>(file)) {
    // Stores of earlier versions lack these columns; for all others the statements fail and change nothing.
    for (const char* sql : {"ALTER TABLE latency ADD COLUMN seconds REAL", "ALTER TABLE latency ADD COLUMN timing TEXT"}) impl_->db.try_run(sql);
}

LatencyStore::~LatencyStore() {
    {
        std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
        try {
            for (const std::string& key : impl_->held) Query(impl_->db, "DELETE FROM latency WHERE key=? AND state='claimed' AND owner=?").bind(key).bind(impl_->owner).done();
        } catch (const UserError&) {   // they end with their lease
        }
    }
    impl_->stop.notify_all();
    if (impl_->heart.joinable()) impl_->heart.join();
}

std::optional<Measured> LatencyStore::find(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    Query q(impl_->db, "SELECT state, median_ms, iqr_ms, n, measured, disturbed, why, target, seconds FROM latency WHERE key=? AND state<>'claimed'");
    if (!q.bind(key.hex()).row()) return {};
    Measured m;
    m.why = q.text(6), m.seconds = q.real(8);
    if (!(m.seconds >= 0 && m.seconds < 1e6)) m.seconds = 0;
    if (q.text(0) == "failed") {
        m.own = true;
        return m;
    }
    const Latency l{q.real(1), q.real(2), static_cast<int>(q.integer(3)), q.text(7), q.integer(4) != 0, q.integer(5) != 0};
    if (q.text(0) != "measured" || !is_a_time(l.median_ms, l.iqr_ms, l.n)) return {};
    m.latency = l;
    return m;
}

bool LatencyStore::claim(const Hash128& key, const std::string& target, const std::string& nest) {
    std::lock_guard lock(impl_->mutex);
    const std::string name = key.hex();
    Transaction all(impl_->db);
    std::string owner, state;
    {
        Query q(impl_->db, "SELECT owner, strftime('%s','now') - at, state, median_ms, iqr_ms, n FROM latency WHERE key=?");
        if (q.bind(name).row()) {
            owner = q.text(0), state = q.text(2);
            if (state == "claimed" && (owner == impl_->owner || owner_lives(owner, q.real(1)))) return false;
            if (state == "failed" || (state == "measured" && is_a_time(q.real(3), q.real(4), static_cast<int>(q.integer(5))))) return false;
        }
    }
    Query(impl_->db, "INSERT OR REPLACE INTO latency(key,target,nest,state,owner,machine) VALUES(?,?,?,'claimed',?,?)").bind(name).bind(target).bind(nest).bind(impl_->owner).bind(owner_words(impl_->owner)).done();
    all.commit();
    impl_->hold(name);
    return true;
}

void LatencyStore::seize(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    Query(impl_->db, "UPDATE latency SET owner=?, at=strftime('%s','now') WHERE key=? AND state='claimed'").bind(impl_->owner).bind(key.hex()).done();
    impl_->hold(key.hex());
}

std::string LatencyStore::holder(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    Query q(impl_->db, "SELECT owner FROM latency WHERE key=? AND state='claimed'");
    return q.bind(key.hex()).row() ? owner_words(q.text(0)) : "";
}

void LatencyStore::put(const Hash128& key, const std::string& target, const std::string& nest, const Measured& m, const std::string& timing) {
    if (!m.latency && !m.own) return release(key);
    if (m.latency && !is_a_time(m.latency->median_ms, m.latency->iqr_ms, m.latency->n)) return release(key);
    std::lock_guard lock(impl_->mutex);
    const Latency l = m.latency.value_or(Latency{});
    Query q(impl_->db,
            "INSERT OR REPLACE INTO latency(key,target,nest,state,median_ms,iqr_ms,n,measured,disturbed,why,seconds,timing,owner,machine) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    q.bind(key.hex()).bind(target).bind(nest).bind(std::string(m.latency ? "measured" : "failed")).bind(l.median_ms).bind(l.iqr_ms).bind(std::int64_t{l.n});
    q.bind(std::int64_t{l.measured}).bind(std::int64_t{l.disturbed}).bind(m.why).bind(m.seconds).bind(timing).bind(impl_->owner).bind(owner_words(impl_->owner)).done();
    impl_->held.erase(key.hex());
}

void LatencyStore::release(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    impl_->held.erase(key.hex());
    Query(impl_->db, "DELETE FROM latency WHERE key=? AND state='claimed' AND owner=?").bind(key.hex()).bind(impl_->owner).done();
}

LatencyStore::Counts LatencyStore::counts() {
    std::lock_guard lock(impl_->mutex);
    Counts c;
    Query q(impl_->db, "SELECT state, count(*) FROM latency GROUP BY state");
    while (q.row()) (q.text(0) == "measured" ? c.known : q.text(0) == "failed" ? c.failed : c.claimed) = q.integer(1);
    return c;
}

int latency_version() { return version; }
const char* latency_schema() { return schema; }

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
