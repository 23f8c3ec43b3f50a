// A command that runs alongside this process and ends with it, however this process ends.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loopegg {

struct CommandLine {
    std::vector<std::string> words;                                // of the program and its arguments
    std::vector<std::pair<std::string, std::string>> variables{};  // of its environment, in addition to those of this process
};

// A command for the shell in which every {} is replaced with a folder, as one word.
std::string with_folder(std::string command, const std::filesystem::path& folder);

// What became of a command. `words` are empty where it ended well, and otherwise say why it did not, with the end of its log.
struct CommandEnd {
    std::string words;
    bool is_cancelled = false;  // somebody else (a cluster, a person) ended the command by a signal, so it did not fail
};

// All processes that the command starts are one group, which ends when this process does.
class ChildProcess {
public:
    // Standard output goes to `output`, and standard error to `log`, which may be the same file. Throws UserError where no process can be started.
    ChildProcess(const CommandLine& command, const std::filesystem::path& output, std::filesystem::path log);
    ~ChildProcess() { stop(); }
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;

    std::optional<CommandEnd> ended();  // none while the command runs
    void stop();                        // asks the group to end, waits, and then kills what is left of it

private:
    pid_t pid_ = -1;
    std::filesystem::path log_;
};

}  // namespace loopegg
