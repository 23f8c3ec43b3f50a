// 'loopegg store': looks after the stores of latencies and evidence.
#include <fmt/format.h>

#include "backends/measure/latency_store.hpp"
#include "base/error.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"
#include "fisher/evidence.hpp"
#include "optimize/audit/store_care.hpp"

namespace loopegg {
namespace cmd_store {

std::vector<StoreAddress> stores(const std::vector<std::string>& named) {
    std::vector<StoreAddress> all;
    for (const std::string& name : named) all.push_back(typed_address(name));
    if (!all.empty()) return all;
    all = {default_store(), default_evidence()};
    if (all[0].words() == all[1].words()) all.pop_back();
    return all;
}

nlohmann::json as_json(const StoreReport& r) {
    return {{"file", r.address.words()}, {"kind", r.kind},   {"there", r.there}, {"rows", r.rows},    {"failed", r.failed},
            {"claimed", r.claimed},      {"stale", r.stale}, {"saved", r.saved}, {"faults", r.faults}};
}

std::string words(const StoreReport& r) {
    if (!r.there) return "there is none yet";
    std::string text = fmt::format("{} {} of {}", r.rows, r.rows == 1 ? "row" : "rows", r.kind.empty() ? "anything" : r.kind);
    if (r.kind.find("latencies") != std::string::npos)
        text += fmt::format(", {} of them failures, {} claimed now, {} claims left by processes that are gone", r.failed, r.claimed - r.stale, r.stale);
    for (const std::string& f : r.faults) text += "\n  NOT VALID: " + f;
    return text;
}

int check(const std::vector<std::string>& files, Session& session) {
    nlohmann::json all = nlohmann::json::array();
    bool fine = true;
    for (const StoreAddress& store : stores(files)) {
        const StoreReport r = check_store(store);
        fine = fine && r.faults.empty();
        all.push_back(as_json(r));
        if (!session.json) fmt::print("{}: {}\n", store.words(), words(r));
    }
    if (session.json)
        session.answer({{"ok", fine}, {"stores", all}});
    else if (!fine)
        fmt::print("'loopegg store repair' keeps what can be read\n");
    return fine ? 0 : 1;
}

int repair(const std::vector<std::string>& files, Session& session) {
    nlohmann::json all = nlohmann::json::array();
    for (const StoreAddress& store : stores(files)) {
        if (files.empty() && !store.exists()) continue;
        const StoreReport r = repair_store(store);
        all.push_back(as_json(r));
        if (session.json) continue;
        if (r.faults.empty() && r.stale == 0)
            fmt::print("{}: nothing is wrong with it\n", store.words());
        else if (store.on_server())
            fmt::print("{}: {} rows are kept\n", store.words(), r.saved);
        else
            fmt::print("{}: {} rows are kept; the file as it was is {}.damaged\n", store.words(), r.saved, store.words());
    }
    if (session.json) session.answer({{"ok", true}, {"stores", all}});
    return 0;
}

int copy(const std::vector<std::string>& files, Session& session) {
    if (files.size() < 2) throw UsageError("copy takes the stores to copy from, then the one to copy to");
    const std::vector<StoreAddress> named = stores(files);
    std::map<std::string, std::int64_t> all;
    for (std::size_t i = 0; i + 1 < named.size(); ++i)
        for (const auto& [table, rows] : copy_store(named[i], named.back())) all[table] += rows;
    if (session.json) {
        session.answer({{"to", named.back().words()}, {"rows", all}});
        return 0;
    }
    for (const auto& [table, rows] : all) fmt::print("{:<16} {} rows\n", table, rows);
    return 0;
}

Action setup(CLI::App& app) {
    struct Options {
        std::string action;
        std::vector<std::string> files;
        Forgotten what;
    };
    auto o = std::make_shared<Options>();
    app.add_option("ACTION", o->action,
                   "check: report contents and faults; repair: keep everything readable; forget: delete latencies; copy FROM... TO: add the rows that TO lacks")
        ->required()
        ->check(CLI::IsMember({"check", "repair", "forget", "copy"}));
    app.add_option("STORE", o->files, "files or postgresql:// addresses (default: LOOPEGG_STORE and LOOPEGG_EVIDENCE, or the cache folder)");
    app.add_flag("--failures", o->what.failures, "forget failures");
    app.add_flag("--claims", o->what.claims, "forget claims");
    app.add_flag("--times", o->what.times, "forget measured times");
    app.add_option("--target", o->what.target, "forget only rows of this target");
    app.add_option("--nest", o->what.nest, "forget only nests that match this glob")->capture_default_str();
    return [o](Session& session) {
        if (o->action == "check") return check(o->files, session);
        if (o->action == "repair") return repair(o->files, session);
        if (o->action == "copy") return copy(o->files, session);
        const bool bounded = o->what.failures || o->what.claims || o->what.times || !o->what.target.empty() || o->what.nest != "*";
        if (!bounded) throw UsageError("say what to forget: --failures, --claims, --times, --target T or --nest GLOB");
        if (o->files.size() > 1) throw UsageError("forget takes one store");
        const StoreAddress store = stores(o->files)[0];
        if (!store.exists()) throw UserError("there is no store at '" + store.words() + "'");
        const std::int64_t gone = forget(store, o->what);
        if (session.json)
            session.answer({{"forgotten", gone}, {"file", store.words()}});
        else
            fmt::print("{} rows forgotten\n", gone);
        return 0;
    };
}

}  // namespace cmd_store

const Command store_command{"store", "check, repair, copy or delete stored measurements", "loopegg store forget --failures", cmd_store::setup};

}  // namespace loopegg
