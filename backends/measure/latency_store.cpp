#include "backends/measure/latency_store.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/owner.hpp"
#include "nest/term/grammar.hpp"
#include "store/database.hpp"
#include "tvm_paths.hpp"

namespace loopegg {
namespace {

// Raise this number after a change of lowering, of the runtime or of how times are taken. Older figures are then not found any more.
constexpr int lowering_version = 8;

// What is_valid_latency (extract/measurer.hpp) says, of a stored row.
constexpr const char* row_has_a_time =
    "latency.state='measured' AND coalesce(latency.median_ms > 0 AND latency.median_ms < 1e9 AND latency.iqr_ms >= 0 AND latency.iqr_ms < 1e9 AND "
    "latency.n >= 0, false)";

std::string new_owner() {
    static std::atomic<int> stores{0};
    return own_name() + " " + std::to_string(stores++);
}

}  // namespace

struct LatencyStore::Impl {
    explicit Impl(const StoreAddress& address) : db(address, "the latency store") {}
    Database db;
    std::mutex mutex;
    const std::string owner = new_owner();
    std::set<std::string> held;  // keys that are claimed by this store

    // This thread says now and then that the holder of these claims lives. It starts with the first claim.
    std::thread heart;
    std::condition_variable stop;
    bool stopping = false;

    void beat() {
        std::unique_lock lock(mutex);
        while (!stop.wait_for(lock, std::chrono::duration<double>(beat_seconds), [&] { return stopping; })) {
            if (held.empty()) continue;
            try {
                StoreQuery(db, "UPDATE latency SET at=unixepoch() WHERE owner=? AND state='claimed'").bind(owner).done();
            } catch (const UserError&) {  // the disk is full: our claims run out, and other processes measure the same keys
            }
        }
    }
    void hold(const std::string& key) {
        held.insert(key);
        if (heart.joinable()) return;
        try {
            heart = std::thread([this] { beat(); });
        } catch (const std::system_error&) {  // no more threads: processes that cannot see this one take the key over when the lease ends
        }
    }
};

LatencyStore::LatencyStore(const StoreAddress& address) : impl_(std::make_unique<Impl>(address)) {}

LatencyStore::~LatencyStore() {
    {
        std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
        try {
            for (const std::string& key : impl_->held)
                StoreQuery(impl_->db, "DELETE FROM latency WHERE key=? AND state='claimed' AND owner=?").bind(key).bind(impl_->owner).done();
        } catch (const UserError&) {  // the claims end with their lease
        }
    }
    impl_->stop.notify_all();
    if (impl_->heart.joinable()) impl_->heart.join();
}

std::optional<Measured> LatencyStore::find(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    StoreQuery q(impl_->db,
                 "SELECT state, median_ms, iqr_ms, n, measured, disturbed, why, target, seconds, machine FROM latency WHERE key=? AND state<>'claimed'");
    if (!q.bind(key.hex()).row()) return {};
    Measured m;
    m.why = q.text(6), m.seconds = q.real(8);
    if (!(m.seconds >= 0 && m.seconds < 1e6)) m.seconds = 0;
    if (q.text(0) == "failed") {
        m.own = true;
        return m;
    }
    const Latency l{q.real(1), q.real(2), static_cast<int>(q.integer(3)), q.text(7), q.integer(4) != 0, q.integer(5) != 0};
    if (q.text(0) != "measured" || !is_valid_latency(l.median_ms, l.iqr_ms, l.n)) return {};
    m.latency = l;
    if (const std::string machine = q.text(9); machine.starts_with("board ")) m.machine = machine;
    return m;
}

bool LatencyStore::claim(const Hash128& key, const std::string& target, const std::string& nest) {
    std::lock_guard lock(impl_->mutex);
    const std::string name = key.hex();
    // A row is replaced only if it is still as it was seen. So of two processes that see the same row, one gets it.
    std::string owner, state;
    std::int64_t at = 0;
    {
        StoreQuery q(impl_->db, "SELECT owner, unixepoch() - at, state, median_ms, iqr_ms, n, at FROM latency WHERE key=?");
        if (q.bind(name).row()) {
            owner = q.text(0), state = q.text(2), at = q.integer(6);
            const bool ours = owner == impl_->owner && !impl_->held.contains(name);  // our statement claimed the key, but a restarting server lost its answer
            if (state == "claimed" && !ours && (owner == impl_->owner || is_owner_alive(owner, q.real(1)))) return false;
            if (state == "failed" || (state == "measured" && is_valid_latency(q.real(3), q.real(4), static_cast<int>(q.integer(5))))) return false;
        }
    }
    StoreQuery(impl_->db,
               "INSERT INTO latency(key,target,nest,state,owner,machine,at) VALUES(?,?,?,'claimed',?,?,unixepoch()) ON CONFLICT(key) DO UPDATE SET "
               "target=excluded.target, nest=excluded.nest, state='claimed', "
               "owner=excluded.owner, machine=excluded.machine, at=excluded.at WHERE latency.state=? AND coalesce(latency.owner,'')=? AND latency.at=?")
        .bind(name)
        .bind(target)
        .bind(nest)
        .bind(impl_->owner)
        .bind(owner_words(impl_->owner))
        .bind(state)
        .bind(owner)
        .bind(at)
        .done();
    if (impl_->db.changes() == 0) return false;
    impl_->hold(name);
    return true;
}

void LatencyStore::seize(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    StoreQuery(impl_->db, "UPDATE latency SET owner=?, at=unixepoch() WHERE key=? AND state='claimed'").bind(impl_->owner).bind(key.hex()).done();
    impl_->hold(key.hex());
}

std::string LatencyStore::holder(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    StoreQuery q(impl_->db, "SELECT owner FROM latency WHERE key=? AND state='claimed'");
    return q.bind(key.hex()).row() ? owner_words(q.text(0)) : "";
}

void LatencyStore::put(const Hash128& key, const std::string& target, const std::string& nest, const Measured& m, const std::string& timing) {
    if (!m.latency && !m.own) return release(key);
    if (m.latency && !is_valid_latency(m.latency->median_ms, m.latency->iqr_ms, m.latency->n)) return release(key);
    std::lock_guard lock(impl_->mutex);
    const Latency l = m.latency.value_or(Latency{});
    StoreQuery q(impl_->db,
                 "INSERT INTO latency(key,target,nest,state,median_ms,iqr_ms,n,measured,disturbed,why,seconds,timing,owner,machine,at) "
                 "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,unixepoch()) ON CONFLICT(key) DO UPDATE SET "
                 "target=excluded.target, nest=excluded.nest, state=excluded.state, median_ms=excluded.median_ms, iqr_ms=excluded.iqr_ms, n=excluded.n, "
                 "measured=excluded.measured, disturbed=excluded.disturbed, "
                 "why=excluded.why, seconds=excluded.seconds, timing=excluded.timing, owner=excluded.owner, machine=excluded.machine, at=excluded.at "
                 "WHERE NOT (" +
                     std::string(row_has_a_time) + ")");
    q.bind(key.hex()).bind(target).bind(nest).bind(std::string(m.latency ? "measured" : "failed")).bind(l.median_ms).bind(l.iqr_ms).bind(std::int64_t{l.n});
    q.bind(std::int64_t{l.measured})
        .bind(std::int64_t{l.disturbed})
        .bind(m.why)
        .bind(m.seconds)
        .bind(timing)
        .bind(impl_->owner)
        .bind(m.machine.empty() ? owner_words(impl_->owner) : m.machine)
        .done();
    impl_->held.erase(key.hex());
}

Measured LatencyStore::put_or_find(const Hash128& key, const std::string& target, const std::string& nest, const Measured& m, const std::string& timing) {
    put(key, target, nest, m, timing);
    return find(key).value_or(m);
}

void LatencyStore::release(const Hash128& key) {
    std::lock_guard lock(impl_->mutex);
    impl_->held.erase(key.hex());
    StoreQuery(impl_->db, "DELETE FROM latency WHERE key=? AND state='claimed' AND owner=?").bind(key.hex()).bind(impl_->owner).done();
}

LatencyStore::Counts LatencyStore::counts() {
    std::lock_guard lock(impl_->mutex);
    Counts c;
    StoreQuery q(impl_->db, "SELECT state, count(*) FROM latency GROUP BY state");
    while (q.row()) (q.text(0) == "measured" ? c.known : q.text(0) == "failed" ? c.failed : c.claimed) = q.integer(1);
    return c;
}

Hash128 latency_key(const Target& target, const Term& nest, const std::string& timing) {
    Hasher key;
    key.add(target.fingerprint()).add(to_string(nest)).add(std::string_view(tvm_version)).add(lowering_version).add(timing);
    if (target.gpu()) key.add("several steps a graph");  // see backends/runtime/bundle_runner.cpp; graphs of one step have other times
    return key.finish();
}

KnownSchedules known_schedules(const Graph& graph, const Target& target, std::size_t of_each, const StoreAddress& address) {
    KnownSchedules known;
    LatencyStore store(address);
    std::unordered_set<Term> seen;
    const auto rules = schedule_rules(target);
    for (const auto& [site, nest] : fused_nests(graph, {}, target)) {
        double least = std::numeric_limits<double>::infinity();
        for (const Term& t : rules->schedules(nest, of_each)) {
            const auto measured = store.find(latency_key(target, complete(t)));
            if (!measured && seen.insert(t).second) known.unmeasured.push_back(t);
            if (measured && measured->latency && measured->latency->measured && measured->latency->median_ms < least)
                least = measured->latency->median_ms, known.fastest[site] = t;
        }
    }
    return known;
}

}  // namespace loopegg
