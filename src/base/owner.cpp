#include "base/owner.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace loopegg {
namespace {

std::string first_line(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line.empty() ? "-" : line;
}

std::string process_namespace() {
    char name[64] = {};
    const ssize_t n = ::readlink("/proc/self/ns/pid", name, sizeof name - 1);
    return n > 0 ? std::string(name, static_cast<std::size_t>(n)) : "-";
}

std::string host() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return *name ? name : "-";
}

// In clock ticks since boot; "" for no process, or one that is dead and only not yet waited for.
std::string start_of(long pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t after_name = text.rfind(')');
    if (after_name == std::string::npos) return "";
    std::istringstream fields(text.substr(after_name + 1));
    std::string field;
    for (int i = 3; i <= 22 && fields >> field; ++i)
        if (i == 3 && field == "Z") return "";
    return field;
}

struct Name {
    std::string boot, space, start, host;
    long pid = 0;
    explicit Name(const std::string& text) {
        std::istringstream in(text);
        in >> boot >> space >> pid >> start >> host;
    }
    bool whole() const { return pid > 0 && !start.empty(); }
};

}  // namespace

const std::string& own_name() {
    static const std::string name =
        fmt::format("{} {} {} {} {}", first_line("/proc/sys/kernel/random/boot_id"), process_namespace(), ::getpid(), start_of(::getpid()), host());
    return name;
}

bool is_owner_alive(const std::string& text, double silent_seconds) {
    const Name it(text), me(own_name());
    if (!it.whole()) return false;
    if (it.boot == me.boot && it.space == me.space) return start_of(it.pid) == it.start;
    return silent_seconds < lease_seconds;
}

std::string owner_words(const std::string& text) {
    const Name it(text);
    return it.whole() ? fmt::format("process {} on {}", it.pid, it.host.empty() ? "another machine" : it.host) : "another process";
}

}  // namespace loopegg
