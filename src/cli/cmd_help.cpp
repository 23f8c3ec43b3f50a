// 'loopegg help': the help of the program, or of one command, as '--help' prints it.
#include <algorithm>

#include <fmt/format.h>

#include "cli/app.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace cmd_help {

Action setup(CLI::App& app) {
    auto words = std::make_shared<std::vector<std::string>>();
    app.add_option("COMMAND", *words, "the command to describe, such as 'rules check'")->expected(1, 3);
    return [words](Session& session) {
        Parsed unused;
        auto whole = make_app(unused);
        const CLI::App* at = whole.get();
        for (const std::string& word : *words) {
            std::vector<CLI::App*> below = commands_of(*at);
            auto named = std::find_if(below.begin(), below.end(), [&](const CLI::App* c) { return c->get_name() == word; });
            if (named == below.end()) throw UsageError(misuse(*whole, *words, ""));
            at = *named;
        }
        if (session.json)
            session.answer({{"help", at->help()}});
        else
            fmt::print("{}", at->help());
        return 0;
    };
}

}  // namespace cmd_help

const Command help_command{"help", "describe the program or one command", "loopegg help show", cmd_help::setup};

}  // namespace loopegg
