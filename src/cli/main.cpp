// The program: finds the command, runs it, and turns every way it can end into an exit code.
#include <cstdio>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "cli/command.hpp"
#include "version.hpp"

namespace loopegg {
namespace {

int code(ExitCode c) { return static_cast<int>(c); }

// Errors are words on standard error; with --json they are also the one object on standard output.
int fail(ExitCode c, const std::string& text, bool json, const std::vector<Diagnostic>& all = {}) {
    fmt::print(stderr, "{}\n", text);
    if (json) {
        nlohmann::json errors = nlohmann::json::array();
        for (const Diagnostic& d : all) {
            nlohmann::json e{{"message", d.message}};
            if (d.where.known()) e["file"] = d.where.source->name, e["line"] = d.where.line(), e["column"] = d.where.column();
            if (!d.hint.empty()) e["hint"] = d.hint;
            errors.push_back(std::move(e));
        }
        if (errors.empty()) errors.push_back({{"message", text}});
        fmt::print("{}\n", nlohmann::json{{"ok", false}, {"errors", errors}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    return code(c);
}

struct Parsed {
    bool json = false, quiet = false;
    Action action;
};

std::unique_ptr<CLI::App> build(Parsed& parsed) {
    auto app = std::make_unique<CLI::App>("Makes neural networks faster by rewriting them.", "loopegg");
    app->set_version_flag("--version", std::string(version));
    app->require_subcommand(1);
    app->failure_message(CLI::FailureMessage::simple);
    app->get_formatter()->column_width(26);
    for (const Command& c : commands()) {
        CLI::App* sub = app->add_subcommand(c.name, c.summary);
        sub->add_flag("--json", parsed.json, "answer with one JSON object on standard output");
        sub->add_flag("-q,--quiet", parsed.quiet, "show no progress");
        sub->footer(std::string("Example:\n  ") + c.example);
        Action action = c.setup(*sub);
        sub->final_callback([&parsed, action] { parsed.action = action; });
    }
    return app;
}

std::string suggestion(int argc, char** argv) {
    std::vector<std::string> names;
    for (const Command& c : commands()) names.emplace_back(c.name);
    for (int i = 1; i < argc; ++i)
        if (argv[i][0] != '-') return std::find(names.begin(), names.end(), argv[i]) == names.end() ? did_you_mean(argv[i], names) : "";
    return "";
}

int run(int argc, char** argv) {
    Parsed parsed;
    auto app = build(parsed);
    try {
        app->parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app->exit(e);   // --help, --version
        std::string text = std::string("error: ") + e.what();
        if (std::string hint = suggestion(argc, argv); !hint.empty()) text += "\n  " + hint;
        text += "\n  see 'loopegg --help' or 'loopegg COMMAND --help'";
        return fail(ExitCode::usage, text, parsed.json);
    }
    try {
        Progress progress(Progress::detect(parsed.quiet));
        Session session{parsed.json, progress};
        return parsed.action(session);
    } catch (const UsageError& e) {
        return fail(ExitCode::usage, e.what(), parsed.json, e.diagnostics());
    } catch (const UserError& e) {
        return fail(ExitCode::failed, e.what(), parsed.json, e.diagnostics());
    } catch (const InternalFault& e) {
        return fail(ExitCode::fault, e.what(), parsed.json);
    } catch (const std::bad_alloc&) {
        return fail(ExitCode::failed, "error: out of memory", parsed.json);
    } catch (const std::exception& e) {
        return fail(ExitCode::fault, std::string("internal fault: ") + e.what(), parsed.json);
    }
}

}  // namespace

void Session::answer(const nlohmann::json& object) const {
    std::string text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (fmt::print("{}\n", text); std::fflush(stdout) != 0) throw UserError("cannot write the answer to standard output");
}

}  // namespace loopegg

int main(int argc, char** argv) { return loopegg::run(argc, argv); }
