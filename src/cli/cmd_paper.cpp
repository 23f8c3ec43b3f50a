// 'loopegg paper': the experiments of the paper that loopegg follows. experiments/paper does them, with this program.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "base/places.hpp"
#include "cli/commands.hpp"

namespace loopegg {
namespace cmd_paper {

struct Options {
    std::vector<std::string> figures;
    std::string out = "paper";
    bool quick = false, resume = false;
};

[[noreturn]] void become(std::vector<std::string> words) {
    ::setenv("LOOPEGG", std::filesystem::read_symlink("/proc/self/exe").c_str(), 1);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    throw UserError("'" + words[0] + "' cannot be started: " + std::strerror(errno));
}

Action setup(CLI::App& app) {
    auto o = std::make_shared<Options>();
    app.add_option("FIGURE", o->figures, "the figures, for example fig3 fig6 (default: all)");
    app.add_flag("--quick", o->quick, "use fewer trials and samples");
    app.add_option("-o,--out", o->out, "the folder for the data, the plots and the pages")->capture_default_str();
    app.add_flag("--resume", o->resume, "keep what an earlier command measured in that folder");
    return [o](Session& session) {
        const std::filesystem::path script = shipped("experiments/paper/paper.py");
        if (!std::filesystem::exists(script))
            throw UserError(Diagnostic{"the experiments are not installed with the program", {}, "run './loopegg paper' in a clone of the source"});
        std::vector<std::string> words{"/usr/bin/python3", "-I", script.string(), "--out", o->out};
        if (o->quick) words.emplace_back("--quick");
        if (o->resume) words.emplace_back("--resume");
        if (session.json) words.emplace_back("--json");
        words.insert(words.end(), o->figures.begin(), o->figures.end());
        become(std::move(words));
        return 0;
    };
}

}  // namespace cmd_paper

const Command paper_command{"paper", "reproduce the figures of the ASPLOS 2021 paper", "loopegg paper fig6 --quick --out paper/", cmd_paper::setup};

}  // namespace loopegg
