// 'loopegg targets': what nests can be compiled for, and how a time can be had there.
#include <fmt/format.h>

#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace {

std::string how(const Target& t) {
    switch (t.reach) {
        case Reach::here: return "measured here";
        case Reach::rpc: return "measured over RPC at " + t.address;
        case Reach::bundle: return "measured by bundle; estimated until then";
        case Reach::compile: return "compiled only; times are estimates";
    }
    return "";
}

struct Arguments {
    std::string action, name, rpc, key, like = "host";
};

// A board behind TVM's RPC: code for what 'like' names, times from the address.
int add(const Arguments& a) {
    if (a.name.empty() || a.rpc.empty()) throw UsageError("expected: loopegg targets add NAME --rpc HOST:PORT [--key KEY] [--like TARGET]");
    if (!is_file_name(a.name)) throw UsageError("'" + a.name + "' is no name of a target: expected letters, digits, '_', '-', '.'");
    nlohmann::json j = nlohmann::json::parse(read_file(find_target(a.like).file));
    j["name"] = a.name, j["reach"] = "rpc", j["address"] = a.key.empty() ? a.rpc : a.rpc + "/" + a.key, j["summary"] = "like " + a.like + ", over RPC";
    const auto file = user_targets_folder() / (a.name + ".json");
    check_target(file.string(), j.dump(2) + "\n");   // what is written can be read
    std::filesystem::create_directories(user_targets_folder());
    write_file(file, j.dump(2) + "\n");
    fmt::print(stderr, "wrote {}\n", file.string());
    return 0;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("ACTION", a->action, "'add' writes a target of your own; nothing lists all");
    app.add_option("NAME", a->name, "the name of the target to add");
    app.add_option("--rpc", a->rpc, "HOST:PORT of a TVM RPC server, or, with --key, of a tracker");
    app.add_option("--key", a->key, "the key that the board registered under at the tracker");
    app.add_option("--like", a->like, "the target whose code runs there");
    return [a](Session& session) {
        if (a->action == "add") return add(*a);
        if (!a->action.empty()) throw UsageError("'" + a->action + "' is not an action of 'targets'; there is 'add'");
        nlohmann::json all = nlohmann::json::array();
        std::vector<std::string> broken;
        for (const Target& t : all_targets(&broken)) {
            if (session.json)
                all.push_back({{"name", t.name},
                               {"summary", t.summary},
                               {"reach", to_string(t.reach)},
                               {"address", t.address},
                               {"architecture", t.architecture()},
                               {"gpu", t.gpu()},
                               {"peak_gflops", t.machine.peak_gflops()},
                               {"memory_gbs", t.machine.memory_gbs},
                               {"file", t.file.string()}});
            else fmt::print("{:<10} {:<8} {:<58} {}\n", t.name, t.architecture(), t.summary, how(t));
        }
        if (session.json) session.answer({{"targets", all}, {"broken", broken}});
        for (const std::string& why : broken) fmt::print(stderr, "{}\n", why);
        return broken.empty() ? 0 : 1;
    };
}

}  // namespace

const Command targets_command{"targets", "list the machines that nests are compiled for, or add one",
                              "loopegg targets add board --rpc 192.168.1.20:9090 --like a57", setup};

}  // namespace loopegg
