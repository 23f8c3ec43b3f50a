// The program: finds the command, runs it, and turns every way it can end into an exit code.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/embedded.hpp"
#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/quote.hpp"
#include "base/system_words.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"

namespace loopegg {
namespace {

// Keeps the program's output free of control characters, so that no stranger's name moves a terminal's cursor, hides a line or forges one.

// C1 controls are two bytes of UTF-8, 0xC2 and one from 0x80 to 0x9F; the first may have come with the write before.
std::string plain(std::string_view text, bool& after_c2) {
    std::string out;
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f)
            out += fmt::format("\\x{:02x}", byte);
        else if (after_c2 && byte >= 0x80 && byte <= 0x9f)
            out += static_cast<char>(0xa4);  // a currency sign represents it
        else
            out += c;
        after_c2 = byte == 0xc2;
    }
    return out;
}

ssize_t write_plain(void*, const char* bytes, std::size_t count) {
    static bool after_c2 = false;
    const std::string text = plain({bytes, count}, after_c2);
    for (std::string_view left = text; !left.empty();) {
        const ssize_t n = ::write(STDOUT_FILENO, left.data(), left.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return 0;  // what fopencookie takes for an error
        left.remove_prefix(static_cast<std::size_t>(n));
    }
    return static_cast<ssize_t>(count);
}

// From now on everything that is printed to `stdout` has its control characters (but line breaks and tabs) spelt out.
void make_output_plain() {
    cookie_io_functions_t functions{};
    functions.write = write_plain;
    std::FILE* stream = ::fopencookie(nullptr, "w", functions);
    if (!stream) return;  // no memory: what follows will say so
    if (::isatty(STDOUT_FILENO)) std::setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
    stdout = stream;
}

constexpr const char* our_fault = "\n  loopegg is at fault, not you: please report this line with the command that you typed";

int code(ExitCode c) { return static_cast<int>(c); }

// Words may quote a stranger's file: what moves a terminal's cursor or colours is spelt out.
std::string lines_for_terminal(const std::string& text) {
    std::vector<std::string> lines = split(text, '\n');
    for (std::string& line : lines) line = terminal_text(line);
    return join(lines, "\n");
}

// Errors are words on standard error; with --json they are also the one object on standard output.
int fail(ExitCode c, const std::string& text, bool json, const std::vector<Diagnostic>& all = {}) {
    fmt::print(stderr, "{}\n", lines_for_terminal(text));
    if (json) {
        nlohmann::json errors = nlohmann::json::array();
        for (const Diagnostic& d : all) errors.push_back(as_json(d));
        if (errors.empty()) errors.push_back({{"message", text}});
        fmt::print("{}\n", nlohmann::json{{"ok", false}, {"errors", errors}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    return code(c);
}

// OpenMP threads that spin at their barriers starve each other when the machine is busy: guards then take ten times as long. libgomp
// reads its policy when it is loaded, which is before main, so it can only be set for a program that is started again.
void wait_passively(char** argv) {
    if (std::getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "PASSIVE", 0) != 0) return;
    ::execv("/proc/self/exe", argv);  // comes back only if it fails; then things are merely slower
}

int run(int argc, char** argv) {
    Parsed parsed;
    auto app = make_app(parsed);
    try {
        app->parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app->exit(e);  // --help, --version
        std::vector<std::string> words(argv + 1, argv + argc);
        bool json = std::find(words.begin(), words.end(), "--json") != words.end();
        Diagnostic wrong = misuse(*app, words, e.what());
        return fail(ExitCode::usage, describe(wrong), json, {wrong});
    } catch (const UserError& e) {  // an argument that means nothing: --store
        return fail(ExitCode::usage, e.what(), parsed.json, e.diagnostics());
    }
    if (!parsed.action) {
        fmt::print("{}", app->help());
        return code(ExitCode::done);
    }
    for (const CLI::App* command : app->get_subcommands()) name_process_for_faults(command->get_name());
    try {
        Progress progress(Progress::detect(parsed.quiet));
        Session session{parsed.json, progress};
        return parsed.action(session);
    } catch (const UsageError& e) {
        return fail(ExitCode::usage, e.what(), parsed.json, e.diagnostics());
    } catch (const UserError& e) {
        return fail(ExitCode::failed, e.what(), parsed.json, e.diagnostics());
    } catch (const InternalFault& e) {
        return fail(ExitCode::fault, std::string(e.what()) + our_fault, parsed.json);
    } catch (const std::bad_alloc&) {
        const Diagnostic said{"there is not enough memory", {}, "a smaller --batch, or fewer jobs side by side, take less"};
        return fail(ExitCode::failed, describe(said), parsed.json, {said});
    } catch (const std::system_error& e) {  // the file system, threads, clocks: the machine's, not ours
        const UserError said = as_user_error(e);
        return fail(ExitCode::failed, said.what(), parsed.json, said.diagnostics());
    } catch (const std::exception& e) {
        return fail(ExitCode::fault, std::string("internal fault: ") + e.what() + our_fault, parsed.json);
    }
}

// What was printed may still be on its way: a full disk shows itself here.
int delivered() {
    if (std::fflush(nullptr) == 0 && std::ferror(stdout) == 0) return code(ExitCode::done);
    return fail(ExitCode::failed, describe(system_diagnostic("write", "standard output", errno)), false);
}

}  // namespace

}  // namespace loopegg

int main(int argc, char** argv) {
    loopegg::wait_passively(argv);
    loopegg::make_output_plain();
    ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is an error of its write, with a path and a remedy
    const int ended = loopegg::run(argc, argv);
    return ended == 0 ? loopegg::delivered() : ended;
}
