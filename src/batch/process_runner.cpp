#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "batch/runner.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

// The lines that say why, out of a log that may be long: from the last 'error' on, else the last line.
std::string last_words(const fs::path& log) {
    std::string text;
    try {
        text = read_file(log);
    } catch (const UserError&) {
        return "";
    }
    std::vector<std::string> lines;
    for (std::string& line : split(text, '\n'))
        if (!line.empty()) lines.push_back(std::move(line));
    if (lines.empty()) return "";
    std::size_t from = lines.size() - 1;
    for (std::size_t i = lines.size(); i-- > 0 && lines.size() - i <= 40;)
        if (lines[i].find("error") != std::string::npos || lines[i].find("internal fault") != std::string::npos) from = i;
    std::string out;
    for (std::size_t i = from; i < lines.size() && i < from + 6; ++i) out += (out.empty() ? "" : "\n") + lines[i];
    return out.substr(0, 2000);
}

class ChildProcess : public RunningJob {
public:
    ChildProcess(pid_t pid, fs::path log) : pid_(pid), log_(std::move(log)) {}
    ~ChildProcess() override { stop(); }

    std::optional<std::string> ended() override {
        int status = 0;
        if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) == 0) return std::nullopt;
        pid_ = -1;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
        std::string words = last_words(log_);
        told_to_end_ = WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGHUP);
        if (WIFSIGNALED(status))
            return fmt::format("ended by signal {} ({}){}{}", WTERMSIG(status), ::strsignal(WTERMSIG(status)), words.empty() ? "" : ": ", words);
        return words.empty() ? fmt::format("ended with exit code {}", WEXITSTATUS(status)) : words;
    }

    bool told_to_end() const override { return told_to_end_; }

    void stop() override {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGINT);  // it keeps what it measured
        for (int i = 0; i < 100; ++i) {
            if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
                pid_ = -1;
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

private:
    pid_t pid_;
    bool told_to_end_ = false;
    fs::path log_;
};

class ProcessRunner : public JobRunner {
public:
    explicit ProcessRunner(fs::path program) : program_(std::move(program)) {}

    std::unique_ptr<RunningJob> start(const Job& job, const fs::path& folder) override {
        std::error_code ignored;
        fs::remove_all(folder, ignored);  // what a killed attempt left; measured times are in the store, not here
        fs::create_directories(folder);
        const fs::path log = folder / "log.txt";
        std::vector<std::string> words = job.arguments(folder);
        words.insert(words.begin(), program_.string());
        std::vector<char*> argv;
        for (std::string& w : words) argv.push_back(w.data());
        argv.push_back(nullptr);
        const pid_t parent = ::getpid();
        const pid_t pid = fault_here(FaultPlace::worker) ? (errno = EAGAIN, -1) : ::fork();
        if (pid < 0) throw UserError(fmt::format("cannot start a process for '{}': {}", job.name, std::strerror(errno)));
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1);  // the parent died before that call
            const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
            ::dup2(in, 0), ::dup2(out, 1), ::dup2(out, 2);
            ::setpgid(0, 0);  // Ctrl-C reaches the batch, which stops its jobs in order
            ::execv(argv[0], argv.data());
            ::dprintf(2, "error: cannot run '%s': %s\n", argv[0], std::strerror(errno));
            ::_exit(127);
        }
        return std::make_unique<ChildProcess>(pid, log);
    }

private:
    fs::path program_;
};

}  // namespace

std::unique_ptr<JobRunner> process_runner(fs::path program) { return std::make_unique<ProcessRunner>(std::move(program)); }

}  // namespace loopegg
