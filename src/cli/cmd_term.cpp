// 'loopegg term': reads terms and prints them back in their one form, to see how loopegg reads a text.
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace cmd_term {

Action setup(CLI::App& app) {
    auto file = std::make_shared<std::string>();
    app.add_option("FILE", *file, "a file of terms")->required();
    return [file](Session& session) {
        nlohmann::json terms = nlohmann::json::array();
        for (const SExpr& e : read_sexprs(read_source(*file))) terms.push_back(to_string(to_term(e)));
        if (session.json)
            session.answer({{"terms", terms}});
        else
            for (const auto& t : terms) fmt::print("{}\n", t.get<std::string>());
        return 0;
    };
}

}  // namespace cmd_term

const Command term_command{"term", "read terms and print them in canonical form", "loopegg term terms.txt", cmd_term::setup};

}  // namespace loopegg
