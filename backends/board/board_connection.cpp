#include "backends/board/board_connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/process.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr double greeting_seconds = 30, copying_seconds = 120;
constexpr std::int64_t max_answer = 1 << 20;

// ssh asks no question (BatchMode), accepts no unknown host, and notices a dead connection after a quarter of a minute. The connection is our own, because a
// shared one may hang with a board that is gone.
std::vector<std::string> ssh_words(const BoardAddress& a, const std::string& command) {
    std::vector<std::string> words{"ssh", "-T", "-x", "-a"};
    if (const char* config = std::getenv("LOOPEGG_SSH_CONFIG")) words.insert(words.end(), {"-F", config});
    for (const char* option : {"BatchMode=yes", "StrictHostKeyChecking=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3",
                               "ControlPath=none", "ClearAllForwardings=yes", "PermitLocalCommand=no", "LogLevel=ERROR"})
        words.insert(words.end(), {"-o", option});
    if (a.port) words.insert(words.end(), {"-p", std::to_string(a.port)});
    if (!a.user.empty()) words.insert(words.end(), {"-l", a.user});
    words.insert(words.end(), {"--", a.host, command});
    return words;
}

// One line of sh for the board. It starts the worker that the board has. Where there is none, it reads the worker from standard input into the first folder
// that belongs to the user and has room. A worker that a power cut left incomplete is recognised by its size.
std::string starting_command(const std::string& architecture, const std::string& name, std::size_t size, bool copy) {
    const std::string script = fmt::format(
        "m=$(uname -m); [ \"$m\" = {0} ] || {{ echo \"loopegg: other $m\"; exit 0; }}; "
        "set -- \"${{XDG_CACHE_HOME:-$HOME/.cache}}/loopegg\" \"/dev/shm/loopegg-$(id -u)\" \"/tmp/loopegg-$(id -u)\"; "
        "[ {3} = 1 ] || for d in \"$@\"; do f=\"$d/{1}\"; "
        "if [ -O \"$d\" ] && [ -x \"$f\" ] && [ \"$(wc -c < \"$f\")\" -eq {2} ]; then echo \"loopegg: have\"; exec \"$f\"; fi; done; "
        "for d in \"$@\"; do f=\"$d/{1}\"; t=\"$f.$$\"; mkdir -p \"$d\" 2>/dev/null; [ -O \"$d\" ] || continue; "
        "if head -c {2} /dev/zero > \"$t\" 2>/dev/null; then echo \"loopegg: need\"; "
        "if head -c {2} > \"$t\" && chmod 700 \"$t\" && mv -f \"$t\" \"$f\"; then exec \"$f\"; fi; rm -f \"$t\"; exit 1; fi; rm -f \"$t\"; done; "
        "echo \"loopegg: full\"",
        architecture, name, size, copy ? 1 : 0);
    return "exec sh -c " + shell_word(script);
}

// Turns ssh's words into what they mean to the person who typed the command.
std::optional<BoardAway> known_trouble(const std::string& said, const BoardAddress& a) {
    const std::string port = a.port ? fmt::format(" -p {}", a.port) : "", who = (a.user.empty() ? "" : a.user + "@") + a.host;
    auto has = [&](const char* words) { return said.find(words) != said.npos; };
    if (has("REMOTE HOST IDENTIFICATION HAS CHANGED"))
        return BoardAway(
            {fmt::format("the key of board {} is another than the one that ssh knows", a.words()),
             {},
             "if the board was reinstalled, remove the old key (ssh-keygen -R HOST) and add the new one; otherwise the connection may be intercepted"},
            true);
    if (has("Host key verification failed") || has("host key is known for"))
        return BoardAway({fmt::format("ssh does not know the key of board {}, so the board is refused", a.words()),
                          {},
                          fmt::format("connect once by hand and compare the fingerprint: ssh{} {}", port, who)},
                         true);
    if (has("Permission denied"))
        return BoardAway({fmt::format("board {} does not let us in: no key of ours is accepted, and passwords are not used", a.words()),
                          {},
                          fmt::format("give the board your key: ssh-copy-id{} {}", port, who)},
                         true);
    if (has("Could not resolve hostname")) return BoardAway({fmt::format("the host name of board {} cannot be resolved", a.words())}, true);
    return {};
}

}  // namespace

std::string conditions_of(const BoardMessage& m) {
    std::string words;
    if (const std::string governor = m.text("governor"); !governor.empty()) words = "governor " + terminal_text(governor.substr(0, 100));
    if (const double celsius = m.number("celsius", -1000); celsius > -1000) words += fmt::format("{}{:.1f} °C", words.empty() ? "" : ", ", celsius);
    return words;
}

void BoardConnection::start(const std::string& command) {
    close();
    signal(SIGPIPE, SIG_IGN);
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0) throw BoardAway({std::string("no pipe to ssh: ") + std::strerror(errno)}, false);
    if (pipe2(out, O_CLOEXEC) != 0) {
        ::close(in[0]), ::close(in[1]);
        throw BoardAway({std::string("no pipe to ssh: ") + std::strerror(errno)}, false);
    }
    if (pipe2(err, O_CLOEXEC) != 0) {
        ::close(in[0]), ::close(in[1]), ::close(out[0]), ::close(out[1]);
        throw BoardAway({std::string("no pipe to ssh: ") + std::strerror(errno)}, false);
    }
    const int error = spawn_program(ssh_words(address_, command), {{in[0], 0}, {out[1], 1}, {err[1], 2}}, pid_);
    ::close(in[0]), ::close(out[1]), ::close(err[1]);
    to_ = in[1], from_ = out[0], errors_ = err[0];
    for (int fd : {to_, from_, errors_}) fcntl(fd, F_SETFL, O_NONBLOCK);
    pending_.clear(), said_.clear();
    if (!error) return;
    pid_ = -1;
    close();
    throw BoardAway({std::string("cannot run 'ssh': ") + std::strerror(error), {}, "apt install openssh-client"}, true);
}

void BoardConnection::close() {
    for (int* fd : {&to_, &from_, &errors_}) {
        if (*fd >= 0) ::close(*fd);
        *fd = -1;
    }
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
}

void BoardConnection::lost(const std::string& why) {
    // ssh's error messages may come a moment after the end of its output.
    for (const double until = monotonic_seconds() + 0.5; errors_ >= 0 && monotonic_seconds() < until;) {
        char buffer[4096];
        const ssize_t n = read(errors_, buffer, sizeof buffer);
        if (n > 0)
            said_.append(buffer, static_cast<std::size_t>(n));
        else if (n == 0)
            break;
        else
            usleep(10'000);
    }
    close();
    const std::string said = said_.size() > 4000 ? said_.substr(said_.size() - 4000) : said_;
    if (auto trouble = known_trouble(said, address_)) throw *trouble;
    std::vector<std::string> lines = split(said, '\n');
    for (std::string& l : lines) std::erase(l, '\r');
    std::erase(lines, "");
    const std::string last = lines.empty() ? "" : ": " + terminal_text(lines.back().substr(0, 300));
    throw BoardAway({fmt::format("board {} {}{}", address_.words(), why, last)}, false);
}

bool BoardConnection::receive(double deadline) {
    for (;;) {
        pollfd both[]{{from_, POLLIN, 0}, {errors_, POLLIN, 0}};
        const double left = deadline - monotonic_seconds();
        if (left <= 0) lost("does not answer");
        if (over_ && *over_) lost("is not needed any more");
        if (poll(both, said_.size() > (1 << 16) || errors_ < 0 ? 1 : 2, static_cast<int>(std::min(left, 0.2) * 1000) + 1) < 0 && errno != EINTR) return false;
        char buffer[65536];
        if (both[1].revents) {
            const ssize_t n = read(errors_, buffer, sizeof buffer);
            if (n > 0)
                said_.append(buffer, static_cast<std::size_t>(n));
            else if (n == 0)
                ::close(errors_), errors_ = -1;
        }
        if (!both[0].revents) continue;
        const ssize_t n = read(from_, buffer, sizeof buffer);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return false;
        pending_.append(buffer, static_cast<std::size_t>(n));
        return true;
    }
}

void BoardConnection::send(std::string_view bytes, double deadline) {
    while (!bytes.empty()) {
        const ssize_t n = write(to_, bytes.data(), bytes.size());
        if (n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            if (monotonic_seconds() > deadline) lost("does not take what it is sent");
            pollfd p{to_, POLLOUT, 0};
            poll(&p, 1, 1000);
            continue;
        }
        lost("is gone");
    }
}

std::string BoardConnection::line(double deadline) {
    for (;;) {
        if (const std::size_t end = pending_.find('\n'); end != pending_.npos) {
            const std::string text = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            if (text.starts_with("loopegg: ")) return text.substr(9);  // a login script may print other lines before it
            continue;
        }
        if (pending_.size() > (1 << 16) || !receive(deadline)) lost("cannot be reached");
    }
}

std::string BoardConnection::architecture() {
    start("echo \"loopegg: $(uname -m)\"");
    const std::string name = line(monotonic_seconds() + greeting_seconds);
    close();
    return terminal_text(name.substr(0, 40));
}

BoardHello BoardConnection::open(const std::string& architecture, const std::filesystem::path& worker, const std::atomic<bool>* over) {
    over_ = over;
    const std::unique_ptr<BoardConnection, void (*)(BoardConnection*)> patient(this, [](BoardConnection* c) { c->over_ = nullptr; });
    const std::string bytes = read_file(worker);
    bool copied = false;
    try {
        return greeted(architecture, worker.filename().string(), bytes, copied);
    } catch (const BoardAway& e) {
        if (copied || e.lasting() || (over_ && *over_)) throw;
    }
    // The copy on the board does not start, for example after a power cut, so the worker is copied again.
    copied = true;
    return greeted(architecture, worker.filename().string(), bytes, copied);
}

BoardHello BoardConnection::greeted(const std::string& architecture, const std::string& name, const std::string& bytes, bool& copied) {
    start(starting_command(architecture, name, bytes.size(), copied));
    const bool again = std::exchange(copied, true);  // until the board says that it has a copy
    const std::string word = line(monotonic_seconds() + greeting_seconds);
    if (word.starts_with("other "))
        close(), throw BoardAway(
                     {fmt::format("board {} has an {} processor, and its target is for {}", address_.words(), terminal_text(word.substr(6, 40)), architecture),
                      {},
                      "'loopegg targets add NAME --ssh ...' without --like detects the board's hardware"},
                     true);
    if (word == "full") close(), throw BoardAway({fmt::format("board {} has no space for the worker ({} bytes)", address_.words(), bytes.size())}, false);
    if (word == "need") send(bytes, monotonic_seconds() + copying_seconds);
    copied = again || word == "need";
    MessageReader reader(max_answer);
    try {
        for (const double deadline = monotonic_seconds() + greeting_seconds;;) {
            reader.take(std::exchange(pending_, {}));
            if (const auto m = reader.next()) {
                BoardHello hello;
                MachineFacts& f = hello.facts;
                f.architecture = m->text("architecture"), f.cpu = terminal_text(m->text("cpu").substr(0, 100)), f.part = m->text("part");
                f.flags = m->text("flags"), f.cores = static_cast<int>(m->count("cores", 100000)), f.ghz = m->number("ghz", 0);
                f.l1_kb = m->number("l1_kb", 0), f.l2_kb = m->number("l2_kb", 0), f.l3_kb = m->number("l3_kb", 0), f.memory_mb = m->number("memory_mb", 0);
                hello.conditions = conditions_of(*m);
                return hello;
            }
            if (!receive(deadline)) lost("does not start the worker");
        }
    } catch (const BadMessage& e) {
        lost(std::string("greets us with what is no greeting: ") + terminal_text(e.what()));
    }
}

BoardMessage BoardConnection::ask(const std::string& message, const std::string& id, double seconds, const std::function<void()>& busy) {
    double deadline = monotonic_seconds() + seconds;
    send(message, deadline);
    MessageReader reader(max_answer);
    try {
        for (;;) {
            reader.take(std::exchange(pending_, {}));
            while (auto m = reader.next()) {
                if (m->text("id") != id) throw BadMessage("an answer to something else");
                if (m->text("state") != "busy") return *m;
                deadline = monotonic_seconds() + seconds;
                if (busy) busy();
            }
            if (!receive(deadline)) lost("went away");
        }
    } catch (const BadMessage& e) {
        lost(std::string("answers what is no answer: ") + terminal_text(e.what()));
    }
}

namespace {

// Arm's numbers of its own processors, by LLVM's names.
constexpr std::array<std::pair<const char*, const char*>, 17> arm_parts{{{"0xd03", "cortex-a53"},
                                                                         {"0xd04", "cortex-a35"},
                                                                         {"0xd05", "cortex-a55"},
                                                                         {"0xd07", "cortex-a57"},
                                                                         {"0xd08", "cortex-a72"},
                                                                         {"0xd09", "cortex-a73"},
                                                                         {"0xd0a", "cortex-a75"},
                                                                         {"0xd0b", "cortex-a76"},
                                                                         {"0xd0c", "neoverse-n1"},
                                                                         {"0xd0d", "cortex-a77"},
                                                                         {"0xd40", "neoverse-v1"},
                                                                         {"0xd41", "cortex-a78"},
                                                                         {"0xd42", "cortex-a78"},
                                                                         {"0xd44", "cortex-x1"},
                                                                         {"0xd46", "cortex-a510"},
                                                                         {"0xd47", "cortex-a710"},
                                                                         {"0xd49", "neoverse-n2"}}};

std::string arm_name(const std::string& part) {
    const auto found = std::find_if(arm_parts.begin(), arm_parts.end(), [&](const auto& row) { return part == row.first; });
    return found == arm_parts.end() ? "generic" : found->second;
}

// The levels of x86 that compilers agree on: the highest level all of whose features the processor has.
int x86_level(const std::string& text) {
    const std::vector<std::string> flags = split(text, ' ');
    auto has = [&](std::initializer_list<const char*> wanted) {
        return std::all_of(wanted.begin(), wanted.end(), [&](const char* w) { return std::find(flags.begin(), flags.end(), w) != flags.end(); });
    };
    if (!has({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})) return 1;
    if (!has({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})) return 2;
    return has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? 4 : 3;
}

}  // namespace

nlohmann::json target_of_board(const MachineFacts& f) {
    nlohmann::json tvm{{"kind", "llvm"}, {"mtriple", f.architecture + "-linux-gnu"}, {"num-cores", f.cores}};
    int lanes = 4, fma = 1;
    if (f.architecture == "aarch64") {
        tvm["mcpu"] = arm_name(f.part), tvm["mattr"] = {"+neon"};
    } else if (f.architecture == "x86_64") {
        const int level = x86_level(f.flags);
        tvm["mcpu"] = level == 1 ? std::string("x86-64") : fmt::format("x86-64-v{}", level);
        if (level == 4) tvm["vector-width"] = 512;
        lanes = level == 4 ? 16 : level == 3 ? 8 : 4, fma = level >= 3 ? 2 : 1;
    } else {
        throw UserError(fmt::format("the board's processor is an '{}', and loopegg compiles for x86_64 and aarch64", f.architecture));
    }
    nlohmann::json machine{{"cores", f.cores}, {"lanes", lanes}, {"fma_per_cycle", fma}, {"launch_us", 5}};
    for (const auto& [key, value] : {std::pair{"ghz", f.ghz}, {"l1_kb", f.l1_kb}, {"l2_kb", f.l2_kb}, {"l3_kb", f.l3_kb}})
        if (value > 0) machine[key] = value;
    return {{"tvm", tvm}, {"machine", machine}};
}

}  // namespace loopegg
