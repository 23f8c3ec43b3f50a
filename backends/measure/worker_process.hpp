// A worker as its parent sees it. The parent starts the worker, asks it, kills it when it is late, and replaces it when it dies.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace loopegg {

// What a worker is for, and so what it may do (base/confine.hpp): compile and time candidates (the worker may start a linker), run a compiled network
// (and do nothing else), or talk to a board (the worker may use the network).
enum class WorkerRole { candidates, network, board };

struct WorkerLimits {
    double seconds = 60;    // for one request
    long memory_mb = 8192;  // of address space
    WorkerRole role = WorkerRole::candidates;
    std::filesystem::path writes{};  // a folder that the worker may write to, besides the folder for temporary files
};
WorkerLimits network_limits();  // for a network of any size that this machine can hold

class WorkerProcess {
public:
    WorkerProcess(std::filesystem::path program, WorkerLimits limits) : program_(std::move(program)), limits_(limits) {}
    ~WorkerProcess() { stop(); }
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    // The worker's answer, or {"ok":false,"why":...,"died":true} when the worker crashed, hung or answered garbage. The worker is then gone, and the
    // next request starts another worker, which knows nothing of earlier builds. "outside":true says that something other than the request ended the
    // worker: the worker could not be started, or somebody killed it.
    nlohmann::json ask(const nlohmann::json& request);
    bool running() const { return pid_ > 0; }
    int generation() const { return generation_; }  // grows with every start
    void stop();

private:
    void start();
    nlohmann::json died(const std::string& why, bool outside = false);
    bool send(const std::string& line, double deadline);

    std::filesystem::path program_;
    WorkerLimits limits_;
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1, generation_ = 0;
    std::string pending_;
};

// The loopegg program: the running program, LOOPEGG_PROGRAM, or the program of this build.
std::filesystem::path loopegg_program();

}  // namespace loopegg
