// The program that loopegg copies to a board. It checks and times candidates that come over its standard input, and needs nothing on the board but Linux.
//
// Its first message shows what the board is. Each candidate runs in a process of its own, which may do nothing but compute. All workers on a board together
// time one candidate at a time: they take turns at a lock on their folder, and a worker that waits says 'state busy' now and then.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "backends/board/board_trial.hpp"
#include "backends/measure/sensors.hpp"
#include "backends/target/machine_facts.hpp"
#include "base/clock.hpp"
#include "base/confine.hpp"

using namespace loopegg;

namespace {

// The process that started us may be gone without a word when a cable is pulled. So a worker that is asked nothing for a while ends.
constexpr int idle_ms = 120'000, busy_ms = 3000;
constexpr std::int64_t max_bytes = std::int64_t{2} << 30;

bool write_all(int to, const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t n = write(to, text.data() + at, text.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += static_cast<std::size_t>(n);
    }
    return true;
}

void say(const BoardMessage& m) {
    if (!write_all(STDOUT_FILENO, m.encode())) _exit(0);  // nobody listens
}

BoardMessage about(const std::string& id, const char* state, const std::string& why) {
    BoardMessage m;
    m.add("id", id).add("state", std::string(state));
    if (!why.empty()) m.add("why", why);
    return m;
}

void greet() {
    const MachineFacts f = machine_facts();
    const Sensors sensors;
    BoardMessage m;
    m.add("state", std::string("ready")).add("architecture", f.architecture).add("cpu", f.cpu).add("part", f.part).add("flags", f.flags);
    m.add_count("cores", f.cores).add("ghz", f.ghz).add("l1_kb", f.l1_kb).add("l2_kb", f.l2_kb).add("l3_kb", f.l3_kb).add("memory_mb", f.memory_mb);
    if (const std::string governor = sensors.governor(); !governor.empty()) m.add("governor", governor);
    if (const auto celsius = sensors.temperature()) m.add("celsius", *celsius);
    say(m);
}

// Makes the workers of this folder take turns. The lock is on the folder itself, so a full disk cannot prevent it.
class Turn {
public:
    Turn(int folder, const std::string& id) : folder_(folder) {
        double said = monotonic_seconds();
        while (flock(folder_, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR) return;
            usleep(20'000);
            if (monotonic_seconds() - said < busy_ms / 1000.0) continue;
            said = monotonic_seconds();
            say(about(id, "busy", "another loopegg is timing something on this board"));
        }
    }
    ~Turn() { flock(folder_, LOCK_UN); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    int folder_;
};

[[noreturn]] void be_the_candidate(const BoardMessage& request, int reply) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    Confinement c;
    c.memory_mb = static_cast<long>(request.count("memory", 1 << 24)), c.programs = false;
    confine(c);
    write_all(reply, run_trial(request).encode());
    _exit(0);
}

// How the candidate ended. One that has answered and stays is ended here.
int ended(pid_t child) {
    constexpr double closing_seconds = 5;
    int status = 0;
    for (const double deadline = monotonic_seconds() + closing_seconds; waitpid(child, &status, WNOHANG) == 0;) {
        if (monotonic_seconds() > deadline) kill(child, SIGKILL);
        usleep(2'000);
    }
    return status;
}

std::string ending(int status) {
    if (!WIFSIGNALED(status)) return "the candidate ended without an answer";
    const int signal = WTERMSIG(status);
    const std::string words = "killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    return signal == SIGILL ? words + ": this board lacks instructions that its target's code uses" : words;
}

BoardMessage trial(const BoardMessage& request, int folder) {
    const std::string id = request.text("id");
    const double seconds = request.number("seconds", 60);
    const Turn turn(folder, id);
    int reply[2];
    if (pipe2(reply, O_CLOEXEC) != 0) return about(id, "failed", "the board has no pipe left");
    const pid_t child = fork();
    if (child < 0) return close(reply[0]), close(reply[1]), about(id, "failed", "the board starts no more processes");
    if (child == 0) be_the_candidate(request, reply[1]);
    close(reply[1]);
    const double deadline = monotonic_seconds() + seconds;
    MessageReader reader(1 << 20);
    std::optional<BoardMessage> got;
    bool late = false, alone = false;
    for (;;) {
        const double left = deadline - monotonic_seconds();
        if ((late = left <= 0)) break;
        pollfd both[]{{reply[0], POLLIN, 0}, {STDIN_FILENO, 0, 0}};
        if (poll(both, 2, static_cast<int>(left * 1000) + 1) < 0 && errno != EINTR) break;
        if ((alone = both[1].revents & (POLLHUP | POLLERR))) break;
        if (!(both[0].revents & (POLLIN | POLLHUP))) continue;
        char buffer[65536];
        const ssize_t n = read(reply[0], buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        reader.take({buffer, static_cast<std::size_t>(n)});
    }
    close(reply[0]);
    if (late || alone) kill(child, SIGKILL);
    const int status = ended(child);
    if (alone) _exit(0);
    if (late) return about(id, "late", "ran past its limit of " + std::to_string(static_cast<int>(seconds)) + " s");
    try {
        got = reader.next();
    } catch (const BadMessage&) {
    }
    if (!got || status != 0) return about(id, "died", ending(status));
    got->lines.insert(got->lines.begin(), {"id", id});
    return *got;
}

int serve() {
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        if (char* slash = strrchr(self, '/')) *slash = 0;
    const int folder = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    greet();
    MessageReader reader(max_bytes);
    for (std::string buffer(1 << 18, 0);;) {
        while (const auto request = reader.next()) {
            const std::string fault = request->text("fault");
            if (fault == "reboot") return 1;  // for tests: what a board without power looks like from outside
            if (fault == "freeze")
                for (;;) sleep(1);
            if (fault == "garbage") write_all(STDOUT_FILENO, "\x01\xff no message\n\n");
            say(trial(*request, folder));
        }
        pollfd in{STDIN_FILENO, POLLIN, 0};
        const int ready = poll(&in, 1, idle_ms);
        if (ready == 0) return 0;
        if (ready < 0) continue;
        const ssize_t n = read(STDIN_FILENO, buffer.data(), buffer.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        reader.take({buffer.data(), static_cast<std::size_t>(n)});
    }
}

}  // namespace

int main() {
    signal(SIGPIPE, SIG_IGN);
    try {
        return serve();
    } catch (const std::exception& e) {
        fprintf(stderr, "loopegg's worker on this board ends: %s\n", e.what());
        return 1;
    }
}
