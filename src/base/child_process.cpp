#include "base/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"

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

pid_t guarded = -1;  // the program, in the process that guards it
void kill_group(int) { ::kill(0, SIGKILL); }
void pass_on(int signal) {
    if (guarded > 0) ::kill(guarded, signal);
}

// Of a status of waitpid(), the exit code by which a guardian passes it on.
int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Replaces this process by the program.
[[noreturn]] void become(const CommandLine& command, int output, int log) {
    const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(in, 0), ::dup2(output, 1), ::dup2(log, 2);
    for (const auto& [name, value] : command.variables) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (const std::string& w : command.words) argv.push_back(const_cast<char*>(w.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::dprintf(2, "error: cannot run '%s': %s\n", argv[0], std::strerror(errno));
    ::_exit(127);
}

// The first process of the group. When its parent dies, the kernel sends it SIGUSR1, and it kills the group, itself included.
[[noreturn]] void guard(const CommandLine& command, pid_t parent, int output, int log) {
    ::setpgid(0, 0);  // Ctrl-C reaches the parent, which stops the group in order
    ::signal(SIGUSR1, kill_group);
    ::prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (::getppid() != parent) ::_exit(1);  // the parent died before that call
    guarded = ::fork();
    if (guarded < 0) ::_exit(1);
    if (guarded == 0) {
        ::signal(SIGUSR1, SIG_DFL);
        become(command, output, log);
    }
    ::signal(SIGINT, SIG_IGN);  // stop() sends it to the whole group
    ::signal(SIGTERM, pass_on), ::signal(SIGHUP, pass_on);
    int status = 0;
    while (::waitpid(guarded, &status, 0) < 0 && errno == EINTR) {
    }
    ::_exit(code_of(status));
}

}  // namespace

std::string with_folder(std::string command, const fs::path& folder) {
    const std::string word = shell_word(fs::absolute(folder).lexically_normal().string());
    for (std::size_t at = command.find("{}"); at != command.npos; at = command.find("{}", at + word.size())) command.replace(at, 2, word);
    return command;
}

ChildProcess::ChildProcess(const CommandLine& command, const fs::path& output, fs::path log) : log_(std::move(log)) {
    const pid_t parent = ::getpid();
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    const int err = output == log_ ? ::dup(out) : ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    pid_ = out < 0 || err < 0 ? -1 : fault_here(FaultPlace::worker) ? (errno = EAGAIN, -1) : ::fork();
    const int failed = errno;
    if (pid_ == 0) guard(command, parent, out, err);
    if (out >= 0) ::close(out);
    if (err >= 0) ::close(err);
    if (pid_ < 0) throw UserError(fmt::format("cannot start '{}': {}", command.words.front(), std::strerror(failed)));
    ::setpgid(pid_, pid_);  // as the child does itself: whoever is first
}

std::optional<CommandEnd> ChildProcess::ended() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) == 0) return std::nullopt;
    ::kill(-pid_, SIGKILL);  // what the program left behind
    pid_ = -1;
    const int code = code_of(status);
    if (code == 0) return CommandEnd{};
    std::string words = last_words(log_);
    if (code <= 128) return CommandEnd{words.empty() ? fmt::format("ended with exit code {}", code) : words};
    const int signal = code - 128;
    return CommandEnd{fmt::format("ended by signal {} ({}){}{}", signal, ::strsignal(signal), words.empty() ? "" : ": ", words),
                      signal == SIGTERM || signal == SIGINT || signal == SIGHUP};
}

void ChildProcess::stop() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGINT);  // a program may keep what it has
    for (int i = 0; i < 100 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

}  // namespace loopegg
