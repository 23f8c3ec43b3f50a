// Running other programs from a test, and a temporary folder that is removed with its object.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace loopegg::test {

struct Ran {
    int code = -1;
    std::string out;
};

// Standard output of a shell command; standard error goes to the test's own.
inline Ran shell(const std::string& command) {
    Ran ran;
    FILE* pipe = ::popen(command.c_str(), "r");
    if (!pipe) return ran;
    char buffer[1 << 16];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) ran.out.append(buffer, n);
    int status = ::pclose(pipe);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ran;
}

inline std::string quoted(const std::string& text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "loopegg-test-XXXXXX").string();
        if (::mkdtemp(name.data())) path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

// Run folders filled with seeded numbers (tests/data/runs), made once per process.
inline const std::filesystem::path& sample_runs() {
    static TemporaryFolder folder;
    static const bool made = shell("python3 " + quoted(LOOPEGG_SOURCE "/tests/data/runs/make_samples.py") + " " + quoted(folder.path().string())).code == 0;
    if (!made) std::fprintf(stderr, "make_samples.py failed\n");
    return folder.path();
}

}  // namespace loopegg::test
