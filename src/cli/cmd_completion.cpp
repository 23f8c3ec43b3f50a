// 'loopegg completion': prints the script that lets a shell complete loopegg's words.
#include <fmt/format.h>

#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/completion.hpp"

namespace loopegg {
namespace {

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

}  // namespace

const Command completion_command{"completion", "print a script for your shell that completes commands and options", "source <(loopegg completion bash)", setup};

}  // namespace loopegg
