// 'loopegg worker': compiles, checks and times candidates for another loopegg process.
#include "backends/measure/worker.hpp"
#include "base/confine.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace cmd_worker {

Action setup(CLI::App& app) {
    struct Options {
        long memory = 8192;
        int reply = 3;
        std::string role = "candidates", writes;
    };
    auto o = std::make_shared<Options>();
    app.add_option("--memory", o->memory, "the most megabytes of address space (0: no limit)")->check(CLI::NonNegativeNumber);
    app.add_option("--reply", o->reply, "the file descriptor that answers go to")->check(CLI::NonNegativeNumber);
    app.add_option("--role", o->role, "what it is for, and so what it may do: candidates, network, board (docs/reference/trust.md)")
        ->check(CLI::IsMember({"candidates", "network", "board"}));
    app.add_option("--writes", o->writes, "a folder that it may write to, in addition to that for temporary files");
    return [o](Session&) {
        Confinement c;
        c.memory_mb = o->memory, c.network = o->role == "board", c.programs = o->role != "network";
        if (!o->writes.empty()) c.writes.push_back(o->writes);
        return run_worker(o->reply, c);
    };
}

}  // namespace cmd_worker

const Command worker_command{"worker", "compile and time candidates for another loopegg (started by it)", "loopegg worker --memory 4096 3>answers < requests",
                             cmd_worker::setup};

}  // namespace loopegg
