// 'loopegg store': looks after the stores of latencies and evidence.
#include <fmt/format.h>

#include "backends/measure/latency_store.hpp"
#include "base/error.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"
#include "fisher/evidence.hpp"
#include "optimize/store_care.hpp"

namespace loopegg {
namespace {

std::vector<std::filesystem::path> stores(const std::vector<std::string>& named) {
    if (named.empty()) return {default_store_file(), default_evidence_file()};
    return {named.begin(), named.end()};
}

nlohmann::json as_json(const StoreReport& r) {
    return {{"file", r.file.string()}, {"kind", r.kind}, {"there", r.there}, {"rows", r.rows}, {"failed", r.failed}, {"claimed", r.claimed}, {"stale", r.stale}, {"saved", r.saved}, {"faults", r.faults}};
}

std::string words(const StoreReport& r) {
    if (!r.there) return "there is none yet";
    std::string text = fmt::format("{} rows of {}", r.rows, r.kind.empty() ? "something" : r.kind);
    if (r.kind == "latencies") text += fmt::format(", {} of them failures, {} claimed now, {} claims left by processes that are gone", r.failed, r.claimed - r.stale, r.stale);
    for (const std::string& f : r.faults) text += "\n  NOT VALID: " + f;
    return text;
}

int check(const std::vector<std::string>& files, Session& session) {
    nlohmann::json all = nlohmann::json::array();
    bool fine = true;
    for (const auto& file : stores(files)) {
        const StoreReport r = check_store(file);
        fine = fine && r.faults.empty();
        all.push_back(as_json(r));
        if (!session.json) fmt::print("{}: {}\n", file.string(), words(r));
    }
    if (session.json) session.answer({{"ok", fine}, {"stores", all}});
    else if (!fine) fmt::print("'loopegg store repair' keeps what can be read\n");
    return fine ? 0 : 1;
}

int repair(const std::vector<std::string>& files, Session& session) {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& file : stores(files)) {
        if (files.empty() && !std::filesystem::exists(file)) continue;
        const StoreReport r = repair_store(file);
        all.push_back(as_json(r));
        if (session.json) continue;
        if (r.faults.empty() && r.stale == 0) fmt::print("{}: nothing is wrong with it\n", file.string());
        else fmt::print("{}: {} rows are kept; the file as it was is {}.damaged\n", file.string(), r.saved, file.string());
    }
    if (session.json) session.answer({{"ok", true}, {"stores", all}});
    return 0;
}

Action setup(CLI::App& app) {
    struct Options { std::string action; std::vector<std::string> files; Forgotten what; };
    auto o = std::make_shared<Options>();
    app.add_option("ACTION", o->action, "check: what is in the stores and what is wrong; repair: keep what can be read; forget: delete latencies")->required()->check(CLI::IsMember({"check", "repair", "forget"}));
    app.add_option("FILE", o->files, "the stores meant (default: LOOPEGG_STORE and LOOPEGG_EVIDENCE, or those in the cache folder)");
    app.add_flag("--failures", o->what.failures, "forget what failed");
    app.add_flag("--claims", o->what.claims, "forget who is measuring what");
    app.add_flag("--times", o->what.times, "forget what was measured");
    app.add_option("--target", o->what.target, "forget only what is of this target");
    app.add_option("--nest", o->what.nest, "forget only nests that match this glob")->capture_default_str();
    return [o](Session& session) {
        if (o->action == "check") return check(o->files, session);
        if (o->action == "repair") return repair(o->files, session);
        const bool bounded = o->what.failures || o->what.claims || o->what.times || !o->what.target.empty() || o->what.nest != "*";
        if (!bounded) throw UsageError("say what to forget: --failures, --claims, --times, --target T or --nest GLOB");
        if (o->files.size() > 1) throw UsageError("forget takes one store");
        const std::filesystem::path file = o->files.empty() ? default_store_file() : std::filesystem::path(o->files[0]);
        if (!std::filesystem::exists(file)) throw UserError("there is no store at '" + file.string() + "'");
        const std::int64_t gone = forget(file, o->what);
        if (session.json) session.answer({{"forgotten", gone}, {"file", file.string()}});
        else fmt::print("{} rows forgotten\n", gone);
        return 0;
    };
}

}  // namespace

const Command store_command{"store", "look after what was measured: check, repair, forget", "loopegg store forget --failures", setup};

}  // namespace loopegg
