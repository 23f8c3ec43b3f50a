#include "backends/measure/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"

extern char** environ;

namespace loopegg {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

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

void WorkerProcess::start() {
    signal(SIGPIPE, SIG_IGN);   // a worker that dies while it is written to is noticed by the write
    int request[2], reply[2];
    if (pipe2(request, O_CLOEXEC) != 0 || pipe2(reply, O_CLOEXEC) != 0) throw UserError(std::string("no pipe for a worker: ") + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, request[0], 0);
    posix_spawn_file_actions_adddup2(&actions, reply[1], 3);
    std::string program = program_.string(), memory = std::to_string(limits_.memory_mb);
    std::string command = "worker", option = "--memory";
    char* argv[] = {program.data(), command.data(), option.data(), memory.data(), nullptr};
    const int error = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(request[0]), close(reply[1]);
    to_ = request[1], from_ = reply[0];
    pending_.clear();
    ++generation_;
    if (error) {
        pid_ = -1;
        throw UserError(fmt::format("cannot start a worker ({}): {}", program, std::strerror(error)));
    }
}

void WorkerProcess::stop() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    to_ = from_ = -1;
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

nlohmann::json WorkerProcess::died(const std::string& why) {
    stop();
    return {{"ok", false}, {"why", why}, {"died", true}};
}

nlohmann::json WorkerProcess::ask(const nlohmann::json& request) {
    if (!running()) start();
    const std::string line = request.dump() + "\n";
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t n = write(to_, line.data() + at, line.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return died("the worker ended before it was asked");
        at += static_cast<std::size_t>(n);
    }
    const double deadline = now() + limits_.seconds;
    for (;;) {
        if (auto end = pending_.find('\n'); end != pending_.npos) {
            const std::string text = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            try {
                nlohmann::json reply = nlohmann::json::parse(text);
                if (reply.is_object() && reply.value("id", std::int64_t{-1}) == request.at("id").get<std::int64_t>() && reply.contains("ok")) return reply;
            } catch (const nlohmann::json::exception&) {
            }
            return died("the worker answered garbage");
        }
        const double left = deadline - now();
        if (left <= 0) return died(fmt::format("ran past its limit of {:.0f} s", limits_.seconds));
        pollfd p{from_, POLLIN, 0};
        const int ready = poll(&p, 1, static_cast<int>(left * 1000) + 1);
        if (ready < 0 && errno != EINTR) return died("lost the worker");
        if (ready <= 0) continue;
        char buffer[65536];
        const ssize_t n = read(from_, buffer, sizeof buffer);
        if (n > 0) {
            pending_.append(buffer, static_cast<std::size_t>(n));
            if (pending_.size() > (1 << 24)) return died("the worker answered garbage");
            continue;
        }
        int status = 0;
        const pid_t ended = waitpid(pid_, &status, 0);
        pid_ = -1;
        return died(ended > 0 ? ending(status) : "lost the worker");
    }
}

}  // namespace loopegg
