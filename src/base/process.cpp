#include "base/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"

extern char** environ;

namespace loopegg {

bool program_exists(const std::string& name) {
    const char* path = std::getenv("PATH");
    for (const std::string& folder : split(path ? path : "", ':'))
        if (!folder.empty() && access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
    return false;
}

std::string run_or_throw(const std::vector<std::string>& words, const std::string& doing) {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) throw UserError(doing + ": no pipe: " + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    std::vector<std::string> copy = words;
    std::vector<char*> argv;
    for (std::string& w : copy) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
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

}  // namespace loopegg
