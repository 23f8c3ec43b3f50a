// 'loopegg worker': compiles, checks and times candidates for another loopegg process.
#include "backends/measure/worker.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace {

Action setup(CLI::App& app) {
    auto memory = std::make_shared<long>(8192);
    auto reply = std::make_shared<int>(3);
    app.add_option("--memory", *memory, "the most megabytes of address space (0: no limit)");
    app.add_option("--reply", *reply, "the file descriptor that answers go to");
    return [memory, reply](Session&) { return run_worker(*reply, *memory); };
}

}  // namespace

const Command worker_command{"worker", "compile and time candidates for another loopegg (started by it)", "loopegg worker --memory 4096 3>answers < requests", setup};

}  // namespace loopegg
