// 'loopegg manual': the manual page in roff, written from the command tree so that it cannot fall behind it.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "version.hpp"

namespace loopegg {
namespace cmd_manual {

// Roff reads a leading '.' or ''' as a request, '\' as an escape, and a bare '-' as a hyphen that cannot be copied.
std::string roff(std::string_view text) {
    std::string out;
    for (char c : text) {
        if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

std::string options_text(const std::vector<const CLI::Option*>& options) {
    std::string out;
    for (const CLI::Option* o : options) {
        std::string names = o->get_positional() ? o->get_name(true) : join(spellings(*o), ", ");
        if (!o->get_positional() && o->get_items_expected_max() > 0 && o->get_type_size_max() > 0 && !o->get_type_name().empty())
            names += " " + o->get_type_name();
        out += fmt::format(".TP\n.B {}\n{}\n", roff(names), roff(o->get_description()));
    }
    return out;
}

std::string command_text(const CLI::App& app, const std::string& path, const std::string& footer) {
    std::string out = fmt::format(".SS {}\n{}.\n", roff(path), roff(app.get_description()));
    out += options_text(positionals_of(app));
    std::vector<const CLI::Option*> own;
    for (const CLI::Option* o : options_of(app))
        if (o != app.get_help_ptr() && o != app.get_help_all_ptr() && !o->check_lname("json") && !o->check_lname("quiet")) own.push_back(o);
    out += options_text(own);
    if (!footer.empty()) out += ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
    for (const CLI::App* below : commands_of(app)) out += command_text(*below, path + " " + below->get_name(), "");
    return out;
}

std::string manual_page() {
    Parsed unused;
    auto app = make_app(unused);
    std::string out =
        fmt::format(".TH LOOPEGG 1 \"\" \"loopegg {}\" \"User Commands\"\n.SH NAME\nloopegg \\- makes neural networks faster by rewriting them\n", version);
    out +=
        ".SH SYNOPSIS\n.B loopegg\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n"
        "loopegg reads a neural network, grows an e\\-graph of its loop nests by exact rules and by rules that change the network but must be shown to keep "
        "its "
        "capacity, measures the candidates on a real machine, and gives back the fastest network that rules and guards allow.\n"
        ".SH \"OPTIONS OF EVERY COMMAND\"\n.TP\n.B \\-\\-json\nAnswer with one JSON object on standard output.\n"
        ".TP\n.B \\-q, \\-\\-quiet\nShow no progress.\n.TP\n.B \\-h, \\-\\-help\nTell about the command, with an example.\n.SH COMMANDS\n";
    for (const CommandGroup& group : command_groups())
        for (const Command& c : group.commands) out += command_text(*app->get_subcommand(c.name), c.name, std::string("Example: ") + c.example);
    out +=
        ".SH \"EXIT STATUS\"\n.TP\n.B 0\nDone.\n.TP\n.B 1\nCould not do it, and said why.\n.TP\n.B 2\nWrong use, and said what was expected.\n.TP\n.B 70\nA "
        "fault of loopegg itself.\n";
    return out;
}

Action setup(CLI::App&) {
    return [](Session& session) {
        if (session.json)
            session.answer({{"manual", manual_page()}});
        else
            fmt::print("{}", manual_page());
        return 0;
    };
}

}  // namespace cmd_manual

const Command manual_command{"manual", "print the manual page", "loopegg manual | man -l -", cmd_manual::setup};

}  // namespace loopegg
