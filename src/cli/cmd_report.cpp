// 'loopegg report': one HTML page about one run.
#include <fmt/format.h>

#include "base/atomic_directory.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"
#include "report/page.hpp"

namespace loopegg {
namespace cmd_report {

Action setup(CLI::App& app) {
    auto folder = std::make_shared<std::string>();
    auto out = std::make_shared<std::string>();
    app.add_option("DIR", *folder, "the folder of a run ('loopegg optimize --out DIR')")->required();
    app.add_option("-o,--out", *out, "the page to write (default: DIR/report.html)");
    return [folder, out](Session& session) {
        finish_update(*folder);
        if (std::filesystem::exists(std::filesystem::path(*folder) / "manifest.json"))
            require_whole(*folder, "loopegg optimize MODEL --out " + shell_word(*folder), "report.html");
        else
            session.progress.note("this folder has no manifest.json, so whether its files belong together is unknown");
        FinishedRun run = read_run(*folder);
        std::filesystem::path path = out->empty() ? std::filesystem::path(*folder) / "report.html" : std::filesystem::path(*out);
        std::string page = report_page(run);
        if (out->empty())
            write_into(*folder, "report.html", page);
        else
            write_file(path, page);
        if (session.json)
            session.answer({{"page", path.string()}, {"bytes", page.size()}, {"headline", headline(run)}});
        else
            fmt::print("{}\n{}\n", headline(run), path.string());
        return 0;
    };
}

}  // namespace cmd_report

const Command report_command{"report", "write a self-contained HTML page about a run", "loopegg report out/", cmd_report::setup};

}  // namespace loopegg
