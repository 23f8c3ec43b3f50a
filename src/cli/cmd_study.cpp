// 'loopegg study': which sequences many runs chose, where, and what they bought.
#include <fmt/format.h>

#include "base/files.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "report/study.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace cmd_study {

// A folder is a run when it has a result.json of a run; a folder of runs (as 'batch' makes) represents all runs inside it.
void find_runs(const fs::path& folder, std::vector<fs::path>& found) {
    std::vector<fs::path> inside;
    if (fs::is_directory(folder))
        for (const auto& entry : fs::directory_iterator(folder))
            if (entry.is_directory()) inside.push_back(entry.path());
    std::sort(inside.begin(), inside.end());
    const std::size_t before = found.size();
    for (const fs::path& p : inside)
        if (fs::exists(p / "result.json"))
            found.push_back(p);
        else if (p.filename() == "runs")
            find_runs(p, found);
    if (found.size() == before) found.push_back(folder);  // a run itself, or nothing: read_run says which
}

void print_summary(const Study& study) {
    fmt::print("{} over {}, {} changed: {} by S1 to S3, {} by known operators, {} by sequences without a name\n\n",
               plural(static_cast<std::int64_t>(study.sites.size()), "site"), plural(static_cast<std::int64_t>(study.runs.size()), "run"), study.changed,
               study.paper, study.known, study.unnamed);
    fmt::print("{:<46} {:>6} {:>9} {:>10} {:>9}\n", "sequence", "sites", "speed-up", "saved ms", "MACs kept");
    for (const SequenceCount& c : study.sequences)
        fmt::print("{:<46} {:>6} {:>9} {:>10.3f} {:>9.3f}\n", c.label, c.sites, c.speedup ? fmt::format("{:.2f}x", *c.speedup) : "", c.saved_ms, c.macs_kept);
    if (!study.never_fired.empty()) fmt::print("\nrules that never fired: {}\n", join(study.never_fired, ", "));
}

Action setup(CLI::App& app) {
    auto folders = std::make_shared<std::vector<std::string>>();
    auto out = std::make_shared<std::string>("study");
    app.add_option("DIR", *folders, "folders of runs, or folders that contain such folders")->required();
    app.add_option("-o,--out", *out, "the folder for tables and plots")->capture_default_str();
    return [folders, out](Session& session) {
        std::vector<fs::path> paths;
        for (const std::string& f : *folders) find_runs(f, paths);
        std::vector<FinishedRun> runs;
        session.progress.stage("reading runs", static_cast<std::int64_t>(paths.size()));
        for (const fs::path& p : paths) runs.push_back(read_run(p)), session.progress.advance(static_cast<std::int64_t>(runs.size()), p.string());
        session.progress.finish();
        Study study = study_runs(runs);
        const fs::path to = *out;
        fs::create_directories(to);
        write_file(to / "study.json", to_json(study).dump(1) + "\n");
        write_file(to / "sites.csv", sites_csv(study));
        write_file(to / "sequences.csv", sequences_csv(study));
        write_file(to / "steps.csv", steps_csv(study));
        write_file(to / "variants.csv", variants_csv(runs));
        write_file(to / "frequency.svg", frequency_svg(study));
        write_file(to / "depth.svg", depth_svg(study));
        write_file(to / "study.html", study_page(study));
        if (session.json)
            session.answer(to_json(study));
        else {
            print_summary(study);
            fmt::print("\n{}\n", (to / "study.html").string());
        }
        return 0;
    };
}

}  // namespace cmd_study

const Command study_command{"study", "count which rule sequences many runs chose, where, and what they gain", "loopegg study out/ other-out/ --out study/",
                            cmd_study::setup};

}  // namespace loopegg
