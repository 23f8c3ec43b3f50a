#include "base/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/text.hpp"

extern char** environ;

namespace loopegg {

bool program_exists(const std::string& name) {
    const char* path = std::getenv("PATH");
    for (const std::string& folder : split(path ? path : "", ':'))
        if (!folder.empty() && access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
    return false;
}

int spawn_program(std::vector<std::string> words, std::initializer_list<std::pair<int, int>> ends, pid_t& child) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const auto& [here, there] : ends) posix_spawn_file_actions_adddup2(&actions, here, there);
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const int error = fault_here(FaultPlace::worker) ? EAGAIN : posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

std::string run_or_throw(const std::vector<std::string>& words, const std::string& doing) {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) throw UserError(doing + ": no pipe: " + std::strerror(errno));
    pid_t child = 0;
    const int error = spawn_program(words, {{out[1], 1}, {out[1], 2}}, child);
    close(out[1]);
    if (error) {
        close(out[0]);
        throw UserError(doing + ": cannot run '" + words[0] + "': " + std::strerror(error));
    }
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = read(out[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
    close(out[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) throw UserError(doing + " failed: " + said.substr(said.size() > 800 ? said.size() - 800 : 0));
    return said;
}

namespace {

constexpr double idle_factor = 20;  // on a machine that others use, a program waits for its turn

// A file in memory: nobody waits for the other end of a pipe, and nobody dies of one that is closed.
class MemoryFile {
public:
    explicit MemoryFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {}
    ~MemoryFile() {
        if (fd_ >= 0) close(fd_);
    }
    MemoryFile(const MemoryFile&) = delete;
    int fd() const { return fd_; }
    bool fill(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t n = write(fd_, bytes.data(), bytes.size());
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return lseek(fd_, 0, SEEK_SET) == 0;
    }
    std::string content() const {
        std::string all;
        if (lseek(fd_, 0, SEEK_SET) != 0) return all;
        char buffer[1 << 16];
        for (ssize_t n; (n = read(fd_, buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<std::size_t>(n));
        return all;
    }

private:
    int fd_;
};

}  // namespace

Filtered run_filter(const std::vector<std::string>& words, std::string_view input, double seconds) {
    const MemoryFile in("in"), out("out"), err("err");
    if (in.fd() < 0 || out.fd() < 0 || err.fd() < 0 || !in.fill(input)) return {-1, false, "", std::string("no file in memory: ") + std::strerror(errno)};
    pid_t child = 0;
    const int error = spawn_program(words, {{in.fd(), 0}, {out.fd(), 1}, {err.fd(), 2}}, child);
    if (error) return {-1, false, "", std::strerror(error)};
    clockid_t clock{};
    const bool clocked = clock_getcpuclockid(child, &clock) == 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(clocked ? idle_factor * seconds : seconds);
    int status = 0;
    bool too_long = false;
    for (auto pause = std::chrono::microseconds(200); waitpid(child, &status, WNOHANG) == 0; pause = std::min(pause * 2, std::chrono::microseconds(10000))) {
        timespec used{};
        if (clocked) clock_gettime(clock, &used);
        if (!too_long && (static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec) > seconds || std::chrono::steady_clock::now() > end))
            kill(child, SIGKILL), too_long = true;
        std::this_thread::sleep_for(pause);
    }
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), too_long, out.content(), err.content()};
}

}  // namespace loopegg
