// 'loopegg targets': what nests can be compiled for, how a time can be had there, and how the boards are.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "backends/board/board_connection.hpp"
#include "backends/board/build_worker.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "base/team.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "store/board_health.hpp"

namespace loopegg {
namespace cmd_targets {

std::string how(const Target& t) {
    switch (t.reach) {
        case Reach::here: return "measured here";
        case Reach::rpc: return "measured over RPC at " + t.address;
        case Reach::ssh: return "measured over ssh on " + t.address;
        case Reach::bundle: return "measured by bundle; estimated until then";
        case Reach::compile: return "compiled only; times are estimates";
    }
    return "";
}

struct Arguments {
    std::string action, name, rpc, key, like;
    std::vector<std::string> ssh;
};

// What one board answers now: it is greeted, and its worker is copied there where it lacks it.
struct Greeting {
    BoardAddress address;
    std::optional<BoardHello> hello{};
    std::optional<Diagnostic> trouble{};
};

std::vector<Greeting> greet(const std::vector<BoardAddress>& boards, const std::string& architecture, const std::filesystem::path& worker) {
    std::vector<Greeting> all;
    for (const BoardAddress& b : boards) all.push_back({b});
    run_together(all.size(), [&](std::size_t i) {
        try {
            BoardConnection connection(all[i].address);
            all[i].hello = connection.open(architecture, worker);
        } catch (const UserError& e) {
            all[i].trouble = e.diagnostics().front();
        }
    });
    return all;
}

void remember(const std::string& target, const Greeting& g) {
    const std::string cpu = g.hello ? g.hello->facts.cpu : "", conditions = g.hello ? g.hello->conditions : "";
    tell_board_health(default_store(), target, g.address.words(), {g.hello.has_value(), g.trouble ? g.trouble->message : "", cpu, conditions, 0, 0});
}

std::string words(const MachineFacts& f) { return fmt::format("{}, {} cores, {}", f.cpu, f.cores, f.architecture); }

void print_hello(const Greeting& g) {
    fmt::print("{}: {}{}{}\n", g.address.words(), words(g.hello->facts), g.hello->conditions.empty() ? "" : ", ", g.hello->conditions);
}

nlohmann::json as_json(const Greeting& g) {
    nlohmann::json j{{"address", g.address.words()}, {"up", g.hello.has_value()}};
    if (g.trouble) j["why"] = g.trouble->message, j["hint"] = g.trouble->hint;
    if (g.hello)
        j["cpu"] = g.hello->facts.cpu, j["cores"] = g.hello->facts.cores, j["architecture"] = g.hello->facts.architecture,
        j["conditions"] = g.hello->conditions;
    return j;
}

// Boards of one target are equal: what one measured is true for all.
MachineFacts common_facts(const std::vector<Greeting>& all) {
    std::vector<Diagnostic> troubles;
    for (const Greeting& g : all)
        if (g.trouble) troubles.push_back(*g.trouble);
    if (!troubles.empty()) throw UserError(troubles);
    const MachineFacts& first = all.front().hello->facts;
    for (const Greeting& g : all)
        if (const MachineFacts& f = g.hello->facts; f.cpu != first.cpu || f.cores != first.cores)
            throw UserError(Diagnostic{fmt::format("the boards of one target are equal, and these differ: {} is {}; {} is {}", all.front().address.words(),
                                                   words(first), g.address.words(), words(f)),
                                       {},
                                       "add a target for each kind of board"});
    return first;
}

std::vector<BoardAddress> addresses(const std::vector<std::string>& typed) {
    std::vector<BoardAddress> all;
    for (const std::string& text : typed) {
        const auto address = parse_board_address(text);
        if (!address)
            throw UsageError(fmt::format("--ssh '{}' is not [USER@]HOST[:PORT]; passwords are never typed: ssh uses keys", text.substr(0, text.find(':'))));
        all.push_back(*address);
    }
    return all;
}

// Returns the file.
std::string write_target(const nlohmann::json& j, const std::string& name) {
    const auto file = user_targets_folder() / (name + ".json");
    check_target(file.string(), j.dump(2) + "\n");  // what is written can be read
    std::filesystem::create_directories(user_targets_folder());
    write_file(file, j.dump(2) + "\n");
    fmt::print(stderr, "wrote {}\n", file.string());
    return file.string();
}

// A board behind TVM's RPC: code for what 'like' names, times from the address.
int add_rpc(const Arguments& a, Session& session) {
    const std::string like = a.like.empty() ? "host" : a.like;
    nlohmann::json j = nlohmann::json::parse(read_file(find_target(like).file));
    j["name"] = a.name, j["reach"] = "rpc", j["address"] = a.key.empty() ? a.rpc : a.rpc + "/" + a.key, j["summary"] = "like " + like + ", over RPC";
    const std::string file = write_target(j, a.name);
    if (session.json) session.answer({{"file", file}});
    return 0;
}

// Boards behind ssh: code for what 'like' names, or for what the boards say that they are.
int add_ssh(const Arguments& a, Session& session) {
    const std::vector<BoardAddress> boards = addresses(a.ssh);
    nlohmann::json j{{"name", a.name}, {"reach", "ssh"}};
    std::string architecture;
    if (!a.like.empty()) {
        const Target like = find_target(a.like);
        if (like.gpu()) throw UsageError("--like '" + a.like + "' is a GPU, and boards over ssh run code for processors");
        const nlohmann::json text = nlohmann::json::parse(read_file(like.file));
        j["tvm"] = text.at("tvm"), j["summary"] = "like " + a.like + ", over ssh";
        if (text.contains("machine")) j["machine"] = text["machine"];
        architecture = like.architecture();
    } else {
        architecture = BoardConnection(boards.front()).architecture();
        MachineFacts asked;
        asked.architecture = architecture;
        target_of_board(asked);  // refuses what no code is compiled for
    }
    session.progress.note(fmt::format("copying the worker to {} and asking what {}", boards.size() == 1 ? "the board" : fmt::format("{} boards", boards.size()),
                                      boards.size() == 1 ? "it is" : "they are"));
    const std::vector<Greeting> all = greet(boards, architecture, board_worker_program(architecture));
    const MachineFacts facts = common_facts(all);
    if (a.like.empty()) j.update(target_of_board(facts)), j["summary"] = facts.cpu + ", over ssh";
    for (const BoardAddress& b : boards) j["boards"].push_back(b.words());
    const std::string file = write_target(j, a.name);
    nlohmann::json list = nlohmann::json::array();
    for (const Greeting& g : all) {
        remember(a.name, g);
        list.push_back(as_json(g));
        if (!session.json) print_hello(g);
    }
    if (session.json) session.answer({{"file", file}, {"boards", list}});
    return 0;
}

int add(const Arguments& a, Session& session) {
    if (a.name.empty() || a.rpc.empty() == a.ssh.empty())
        throw UsageError("expected: loopegg targets add NAME --ssh [USER@]HOST[:PORT]... [--like TARGET], or NAME --rpc HOST:PORT [--key KEY] [--like TARGET]");
    if (!is_file_name(a.name)) throw UsageError("'" + a.name + "' is not a valid target name: expected letters, digits, '_', '-', '.'");
    return a.ssh.empty() ? add_rpc(a, session) : add_ssh(a, session);
}

// Every board of a target, asked now.
int check(const Arguments& a, Session& session) {
    if (a.name.empty()) throw UsageError("expected: loopegg targets check NAME");
    const Target target = find_target(a.name);
    if (target.reach != Reach::ssh) throw UserError(fmt::format("target '{}' has no boards that ssh reaches: it is {}", a.name, how(target)));
    const std::vector<Greeting> all = greet(target.boards, target.architecture(), board_worker_program(target.architecture()));
    nlohmann::json list = nlohmann::json::array();
    bool fine = true;
    for (const Greeting& g : all) {
        remember(a.name, g);
        list.push_back(as_json(g));
        fine = fine && g.hello;
        if (session.json) continue;
        if (g.hello)
            print_hello(g);
        else
            fmt::print("{}: {}{}\n", g.address.words(), g.trouble->message, g.trouble->hint.empty() ? "" : "; " + g.trouble->hint);
    }
    if (session.json) session.answer({{"target", a.name}, {"boards", list}});
    return fine ? 0 : 1;
}

// What the store knows of boards, by target. A store that cannot be read costs this alone.
std::map<std::string, std::vector<BoardHealth>> known_health(const std::vector<Target>& targets) {
    std::map<std::string, std::vector<BoardHealth>> all;
    if (std::none_of(targets.begin(), targets.end(), [](const Target& t) { return t.reach == Reach::ssh; })) return all;
    try {
        for (BoardHealth& h : board_health(default_store())) all[h.target].push_back(std::move(h));
    } catch (const UserError& e) {
        fmt::print(stderr, "{}\n", e.what());
    }
    return all;
}

nlohmann::json boards_json(const Target& t, const std::vector<BoardHealth>& known) {
    nlohmann::json all = nlohmann::json::array();
    for (const BoardAddress& b : t.boards) {
        nlohmann::json j{{"address", b.words()}};
        for (const BoardHealth& h : known)
            if (h.address == b.words())
                j.update({{"up", h.up},
                          {"why", h.why},
                          {"cpu", h.cpu},
                          {"conditions", h.conditions},
                          {"measured", h.measured},
                          {"lost", h.lost},
                          {"seen_seconds", h.seen_seconds}});
        all.push_back(std::move(j));
    }
    return all;
}

void print_boards(const Target& t, const std::vector<BoardHealth>& known) {
    for (const BoardAddress& b : t.boards) {
        const auto h = std::find_if(known.begin(), known.end(), [&](const BoardHealth& one) { return one.address == b.words(); });
        fmt::print("  {:<28} {}\n", b.words(), h == known.end() ? "not queried yet" : health_words(*h));
    }
}

int list(Session& session) {
    nlohmann::json all = nlohmann::json::array();
    std::vector<std::string> broken;
    const std::vector<Target> targets = all_targets(&broken);
    auto health = known_health(targets);
    for (const Target& t : targets) {
        if (session.json)
            all.push_back({{"name", t.name},
                           {"summary", t.summary},
                           {"reach", to_string(t.reach)},
                           {"address", t.address},
                           {"boards", boards_json(t, health[t.name])},
                           {"architecture", t.architecture()},
                           {"gpu", t.gpu()},
                           {"peak_gflops", t.machine.peak_gflops()},
                           {"memory_gbs", t.machine.memory_gbs},
                           {"file", t.file.string()}});
        else {
            fmt::print("{:<10} {:<8} {:<58} {}\n", t.name, t.architecture(), t.summary, how(t));
            print_boards(t, health[t.name]);
        }
    }
    if (session.json) session.answer({{"targets", all}, {"broken", broken}});
    for (const std::string& why : broken) fmt::print(stderr, "{}\n", why);
    return broken.empty() ? 0 : 1;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("ACTION", a->action, "'add' writes a target; 'check' queries all boards of a target; without an action, all targets are listed");
    app.add_option("NAME", a->name, "the name of the target to add or to check");
    app.add_option("--ssh", a->ssh, "[USER@]HOST[:PORT] of a board (repeatable for identical boards)");
    app.add_option("--rpc", a->rpc, "HOST:PORT of a TVM RPC server or, with --key, of a tracker");
    app.add_option("--key", a->key, "the key under which the board is registered at the tracker");
    app.add_option("--like", a->like, "an existing target whose code runs there (default: detected with --ssh, host with --rpc)");
    add_store_option(app);
    return [a](Session& session) {
        if (a->action == "add") return add(*a, session);
        if (a->action == "check") return check(*a, session);
        if (!a->action.empty()) throw UsageError("'" + a->action + "' is not an action of 'targets'; there are 'add' and 'check'");
        return list(session);
    };
}

}  // namespace cmd_targets

const Command targets_command{"targets", "list the target machines, add one, or check its boards",
                              "loopegg targets add pi4 --ssh pi@192.168.1.20 --ssh pi@192.168.1.21", cmd_targets::setup};

}  // namespace loopegg
