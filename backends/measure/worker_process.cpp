#include "backends/measure/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/system_words.hpp"

extern char** environ;

namespace loopegg {
namespace {

// Whether a worker ended in a way in which no kernel ends it: with an exit code, or by a signal of the system when memory is short, of a person, or of a
// batch system.
bool from_outside(int status) {
    return WIFEXITED(status) || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT ||
                                                         WTERMSIG(status) == SIGHUP || WTERMSIG(status) == SIGXCPU));
}

const char* word(WorkerRole role) {
    switch (role) {
        case WorkerRole::candidates: return "candidates";
        case WorkerRole::network: return "network";
        case WorkerRole::board: return "board";
    }
    return "";
}

// Whether a reply has times and counts as a worker gives them. The kernel inside the worker could write to the pipe as well.
bool sound(const nlohmann::json& reply) {
    const std::function<bool(const nlohmann::json&)> times = [&](const nlohmann::json& j) {
        return j.is_array() ? std::all_of(j.begin(), j.end(), times) : j.is_number() && j.get<double>() >= 0 && j.get<double>() < 1e9;
    };
    if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean()) return false;
    if (reply.contains("why") && !reply["why"].is_string()) return false;
    for (const char* flag : {"own", "died", "outside"})
        if (reply.contains(flag) && !reply[flag].is_boolean()) return false;
    for (const char* count : {"clean", "batch", "peak_kb"})
        if (reply.contains(count) && !reply[count].is_number_integer()) return false;
    return !reply.contains("ms") || (reply["ms"].is_array() && times(reply["ms"]));
}

constexpr double closing_seconds = 5;  // that a worker may take to end after it has closed its end of the pipe

// Whether the process ends in time. It is left to be waited for, so that its number stays its own.
bool ends_within(pid_t pid, double seconds) {
    for (const double deadline = monotonic_seconds() + seconds;;) {
        siginfo_t info{};
        if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) != 0 || info.si_pid == pid) return true;
        if (monotonic_seconds() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

// Kills the leader and all that it started, and gives how the leader ended.
std::optional<int> end_group(pid_t leader) {
    siginfo_t info{};
    kill(-leader, SIGKILL);  // before the leader is waited for: its number may be another's afterwards
    while (waitid(P_PID, static_cast<id_t>(leader), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    kill(-leader, SIGKILL);  // what it started in its last moment
    int status = 0;
    return waitpid(leader, &status, 0) == leader ? std::optional(status) : std::nullopt;
}

std::string ending(int status) {
    if (WIFSIGNALED(status)) return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WIFEXITED(status)) return fmt::format("ended with code {}", WEXITSTATUS(status));
    return "ended";
}

}  // namespace

std::filesystem::path loopegg_program() {
    if (const char* program = std::getenv("LOOPEGG_PROGRAM")) return program;
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    if (self.filename() == "loopegg") return self;
    for (auto folder = self.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
        if (std::filesystem::exists(folder / "src" / "cli" / "loopegg")) return folder / "src" / "cli" / "loopegg";
    throw UserError(Diagnostic{"cannot find the loopegg program to start workers with", {}, "set LOOPEGG_PROGRAM to its path"});
}

WorkerLimits network_limits() {
    const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    return {120, static_cast<long>(pages / (1 << 20)) + 8192, WorkerRole::network, {}};  // the address space of libraries comes on top
}

void WorkerProcess::start() {
    if (fault_here(FaultPlace::worker)) throw UserError("cannot start a worker: Resource temporarily unavailable");
    signal(SIGPIPE, SIG_IGN);  // the write fails where a worker dies while it is written to
    int request[2], reply[2];
    if (pipe2(request, O_CLOEXEC) != 0) fail_system("make a pipe to", program_, errno);
    if (pipe2(reply, O_CLOEXEC) != 0) {
        const int error = errno;
        close(request[0]), close(request[1]);
        fail_system("make a pipe to", program_, error);
    }
    fcntl(request[1], F_SETFL, O_NONBLOCK);  // a write does not wait for a worker that does not read
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, request[0], 0);
    posix_spawn_file_actions_adddup2(&actions, reply[1], 3);
    std::string program = program_.string(), memory = std::to_string(limits_.memory_mb);
    std::vector<std::string> words{program, "worker", "--memory", memory, "--role", word(limits_.role)};
    if (!limits_.writes.empty()) words.insert(words.end(), {"--writes", limits_.writes.string()});
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawnattr_t apart;  // a group of its own: what the worker starts ends with it
    posix_spawnattr_init(&apart);
    posix_spawnattr_setflags(&apart, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&apart, 0);
    const int error = posix_spawn(&pid_, program.c_str(), &actions, &apart, argv.data(), environ);
    posix_spawnattr_destroy(&apart);
    posix_spawn_file_actions_destroy(&actions);
    close(request[0]), close(reply[1]);
    to_ = request[1], from_ = reply[0];
    pending_.clear();
    ++generation_;
    if (error) {
        pid_ = -1;
        stop();
        fail_system("start the worker", program, error);
    }
}

void WorkerProcess::stop() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    if (pid_ > 0) end_group(pid_);
    pid_ = -1;
}

nlohmann::json WorkerProcess::died(const std::string& why, bool outside) {
    stop();
    return {{"ok", false}, {"why", why}, {"died", true}, {"outside", outside}};
}

bool WorkerProcess::send(const std::string& line, double deadline) {
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t n = write(to_, line.data() + at, line.size() - at);
        if (n > 0) {
            at += static_cast<std::size_t>(n);
            continue;
        }
        if (n < 0 && errno == EAGAIN && monotonic_seconds() < deadline) {
            pollfd p{to_, POLLOUT, 0};
            poll(&p, 1, 1000);
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        return false;
    }
    return true;
}

nlohmann::json WorkerProcess::ask(const nlohmann::json& request) {
    try {
        if (!running()) start();
    } catch (const UserError& e) {
        return died(e.what(), true);
    }
    const double deadline = monotonic_seconds() + limits_.seconds;
    if (fault_here(FaultPlace::measure)) kill(pid_, SIGKILL);  // while it works
    if (!send(request.dump() + "\n", deadline)) return died("the worker ended before the request", true);
    for (;;) {
        if (auto end = pending_.find('\n'); end != pending_.npos) {
            const std::string text = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            try {
                nlohmann::json reply = nlohmann::json::parse(text);
                if (sound(reply) && reply.value("id", std::int64_t{-1}) == request.at("id").get<std::int64_t>()) return reply;
            } catch (const nlohmann::json::exception&) {
            }
            return died("the worker answered garbage");
        }
        const double left = deadline - monotonic_seconds();
        if (left <= 0) return died(fmt::format("ran past its limit of {:.0f} s", limits_.seconds));
        pollfd p{from_, POLLIN, 0};
        const int ready = poll(&p, 1, static_cast<int>(std::min(left, 1.0) * 1000) + 1);
        if (ready < 0 && errno != EINTR) return died("lost the worker", true);
        if (ready < 0 || (ready == 0 && !ends_within(pid_, 0))) continue;  // a worker that has ended may have left somebody at its end of the pipe
        char buffer[65536];
        const ssize_t n = ready > 0 ? read(from_, buffer, sizeof buffer) : 0;
        if (n > 0) {
            pending_.append(buffer, static_cast<std::size_t>(n));
            if (pending_.size() > (1 << 24)) return died("the worker answered garbage");
            continue;
        }
        if (!ends_within(pid_, closing_seconds)) return died("the worker answers no more");
        const std::optional<int> status = end_group(std::exchange(pid_, -1));
        return died(status ? ending(*status) : "lost the worker", !status || from_outside(*status));
    }
}

}  // namespace loopegg
