// 'loopegg completion': prints the script that lets a shell complete loopegg's words.
#include <functional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace cmd_completion {

// Scripts that let a shell complete loopegg's commands and options, written from the command tree.

std::string escaped(std::string_view text, std::string_view special, std::string_view with) {
    std::string out;
    for (char c : text) {
        if (special.find(c) != special.npos) out += with;
        out += c;
    }
    return out;
}

// In single quotes of a POSIX shell.
std::string in_quotes(std::string_view text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

bool takes_value(const CLI::Option& o) { return o.get_items_expected_max() > 0 && o.get_type_size_max() > 0; }

// The words that may follow an option, when its type lists them: "TEXT:{tree,ilp}".
std::vector<std::string> values_of(const CLI::Option& o) {
    std::string type = o.get_type_name(), word;
    std::vector<std::string> values;
    size_t open = type.find('{'), close = type.find('}');
    if (open == type.npos || close == type.npos || close < open) return values;
    for (char c : type.substr(open + 1, close - open - 1) + ",") {
        if (c != ',')
            word += c;
        else if (!word.empty())
            values.push_back(std::exchange(word, ""));
    }
    return values;
}

using Visit = std::function<void(const CLI::App& app, const std::vector<std::string>& path)>;
void each_command(const CLI::App& app, const Visit& visit, std::vector<std::string> path = {}) {
    visit(app, path);
    for (const CLI::App* below : commands_of(app)) {
        std::vector<std::string> deeper = path;
        deeper.push_back(below->get_name());
        each_command(*below, visit, deeper);
    }
}

// A command takes the options of the commands above it too, down from the first.
std::vector<const CLI::Option*> all_options(const CLI::App& app) {
    std::vector<const CLI::Option*> all = options_of(app);
    for (const CLI::App* up = app.get_parent(); up && up->get_parent(); up = up->get_parent())
        for (const CLI::Option* o : options_of(*up))
            if (o != up->get_help_ptr() && o != up->get_help_all_ptr()) all.push_back(o);
    return all;
}

std::vector<std::string> names_below(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* c : commands_of(app)) names.push_back(c->get_name());
    return names;
}

// The path of commands typed so far selects what may follow; where nothing is known to follow, bash offers files.
std::string bash_completion(const CLI::App& app) {
    std::string below, options, values;
    each_command(app, [&](const CLI::App& c, const std::vector<std::string>& path) {
        std::string key = join(path, " ");
        if (auto names = names_below(c); !names.empty()) below += fmt::format("        {}) echo {} ;;\n", in_quotes(key), in_quotes(join(names, " ")));
        std::vector<std::string> words;
        for (const CLI::Option* o : all_options(c)) {
            for (const std::string& s : spellings(*o)) words.push_back(s);
            if (auto v = values_of(*o); !v.empty())
                for (const std::string& s : spellings(*o)) values += fmt::format("        {}) echo {} ;;\n", in_quotes(key + " " + s), in_quotes(join(v, " ")));
        }
        options += fmt::format("        {}) echo {} ;;\n", in_quotes(key), in_quotes(join(words, " ")));
    });
    return "# bash completion for loopegg; put it where bash-completion looks, or: source <(loopegg completion bash)\n"
           "_loopegg_commands() {\n    case \"$1\" in\n" +
           below +
           "    esac\n}\n"
           "_loopegg_options() {\n    case \"$1\" in\n" +
           options +
           "    esac\n}\n"
           "_loopegg_values() {\n    case \"$1\" in\n" +
           values + "        *) ;;\n    esac\n}\n" +
           R"sh(_loopegg() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path='' i values
    for ((i = 1; i < COMP_CWORD; i++)); do
        case " $(_loopegg_commands "$path") " in *" ${COMP_WORDS[i]} "*) path="${path:+$path }${COMP_WORDS[i]}" ;; esac
    done
    values=$(_loopegg_values "$path $previous")
    if [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$word"))
    elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$(_loopegg_options "$path")" -- "$word"))
    else COMPREPLY=($(compgen -W "$(_loopegg_commands "$path")" -- "$word"))
    fi
}
complete -o default -F _loopegg loopegg ./loopegg
)sh";
}

std::string zsh_completion(const CLI::App& app) {
    std::string functions;
    each_command(app, [&](const CLI::App& c, const std::vector<std::string>& path) {
        std::string name = fmt::format("_loopegg{}{}", path.empty() ? "" : "_", join(path, "_"));
        functions += fmt::format("(( $+functions[{0}] )) || {0}() {{\n    _arguments -s -S \\\n", name);
        for (const CLI::Option* o : all_options(c)) {
            std::string value;
            if (takes_value(*o)) {
                auto v = values_of(*o);
                value = v.empty() ? ":value:_files" : fmt::format(":value:({})", join(v, " "));
            }
            for (const std::string& s : spellings(*o))
                functions += fmt::format("        {} \\\n", in_quotes(fmt::format("{}[{}]{}", s, escaped(o->get_description(), "[]:", "\\"), value)));
        }
        if (commands_of(c).empty()) {
            functions += "        '*:file:_files'\n}\n";
            return;
        }
        std::string listed;
        for (const CLI::App* b : commands_of(c)) listed += fmt::format(" {}\\:\"{}\"", b->get_name(), escaped(b->get_description(), "\"\\:()", "\\"));
        functions += fmt::format("        {} \\\n        '*::argument:->below'\n    [[ $state == below ]] && case $words[1] in\n",
                                 in_quotes("1:command:((" + listed.substr(1) + "))"));
        for (const std::string& b : names_below(c)) functions += fmt::format("        {}) {}_{} ;;\n", b, name, b);
        functions += "    esac\n}\n";
    });
    return "#compdef loopegg\n# zsh completion for loopegg; put it on your fpath as _loopegg\n" + functions + "_loopegg \"$@\"\n";
}

std::string fish_completion(const CLI::App& app) {
    std::string out = "# fish completion for loopegg; put it in ~/.config/fish/completions/loopegg.fish\n";
    each_command(app, [&](const CLI::App& c, const std::vector<std::string>& path) {
        std::string when = "__fish_use_subcommand";
        for (size_t i = 0; i < path.size(); ++i) when = (i ? when + "; and " : "") + "__fish_seen_subcommand_from " + path[i];
        std::string here =
            path.empty() || commands_of(c).empty() ? when : fmt::format("{}; and not __fish_seen_subcommand_from {}", when, join(names_below(c), " "));
        for (const CLI::App* b : commands_of(c))
            out += fmt::format("complete -c loopegg {}-n {} -a {} -d {}\n", path.empty() ? "-f " : "", in_quotes(here), b->get_name(),
                               in_quotes(escaped(b->get_description(), "\\", "\\")));
        for (const CLI::Option* o : options_of(c)) {
            std::string names;
            for (const std::string& s : o->get_snames()) names += " -s " + s;
            for (const std::string& l : o->get_lnames()) names += " -l " + l;
            auto v = values_of(*o);
            std::string value = !takes_value(*o) ? "" : v.empty() ? " -r" : fmt::format(" -x -a {}", in_quotes(join(v, " ")));
            out += fmt::format("complete -c loopegg -n {}{}{} -d {}\n", in_quotes(when), names, value, in_quotes(o->get_description()));
        }
    });
    return out;
}

Action setup(CLI::App& app) {
    auto shell = std::make_shared<std::string>();
    app.add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    return [shell](Session& session) {
        Parsed unused;
        auto whole = make_app(unused);
        std::string script = *shell == "bash" ? bash_completion(*whole) : *shell == "zsh" ? zsh_completion(*whole) : fish_completion(*whole);
        if (session.json)
            session.answer({{"shell", *shell}, {"script", script}});
        else
            fmt::print("{}", script);
        return 0;
    };
}

}  // namespace cmd_completion

const Command completion_command{"completion", "print a script for your shell that completes commands and options", "source <(loopegg completion bash)",
                                 cmd_completion::setup};

}  // namespace loopegg
