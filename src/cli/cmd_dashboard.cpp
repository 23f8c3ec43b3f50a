// 'loopegg dashboard': one HTML page about a batch and the boards, as they are now.
#include <chrono>
#include <ctime>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "batch/queue.hpp"
#include "batch/slurm.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "report/dashboard.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace cmd_dashboard {

struct Arguments {
    std::string folder, page;
    double every = 0;
};

std::string now_words() {
    char text[40];
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

DashboardJob job_row(const JobRecord& r, const std::string& result) {
    DashboardJob j{r.name, to_string(r.state)};
    j.where = r.owner, j.error = r.error, j.seconds = r.state == JobState::running ? r.running_for : r.seconds;
    const nlohmann::json figures = nlohmann::json::parse(result, nullptr, false);
    if (r.state != JobState::done || !figures.is_object()) return j;
    auto number = [&](const char* key) {
        const auto found = figures.find(key);
        return found != figures.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    };
    j.speedup = number("speedup"), j.before_ms = number("original_ms"), j.after_ms = number("optimized_ms"), j.capacity = number("capacity");
    if (const auto m = figures.find("measured"); m != figures.end() && m->is_boolean()) j.measured = m->get<bool>();
    return j;
}

Dashboard ask(const Arguments& a) {
    Dashboard d;
    d.date = now_words(), d.refresh_seconds = a.every, d.boards = board_health(default_store());
    if (a.folder.empty()) return d;
    d.batch = fs::path(a.folder).lexically_normal().string();
    if (!has_queue(a.folder))
        throw UserError(Diagnostic{fmt::format("there is no batch at '{}'", a.folder), {}, "start one: loopegg batch JOBS --out " + a.folder});
    for (const auto& [record, result] : open_queue(a.folder)->everything()) d.jobs.push_back(job_row(record, result));
    if (d.jobs.empty())
        throw UserError(
            Diagnostic{fmt::format("there is no batch at '{}': its queue is empty", a.folder), {}, "start one: loopegg batch JOBS --out " + a.folder});
    d.slurm = array_tasks(a.folder);
    return d;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("DIR", a->folder, "the folder of a batch (default: show only the boards)");
    app.add_option("-o,--out", a->page, "the page to write (default: DIR/dashboard.html)");
    app.add_option("--every", a->every, "rewrite the page at this interval in seconds until all jobs have ended (0: write it once)")
        ->check(CLI::Range(0.0, 86400.0));
    add_store_option(app);
    return [a](Session& session) {
        if (a->folder.empty() && a->page.empty()) throw UsageError("expected the folder of a batch, or -o PAGE for a page about boards alone");
        const fs::path page = a->page.empty() ? fs::path(a->folder) / "dashboard.html" : fs::path(a->page);
        for (;;) {
            Dashboard d = ask(*a);
            const int open = d.count("running") + d.count("waiting");
            const bool again = a->every > 0 && (a->folder.empty() || open > 0);
            if (!again) d.refresh_seconds = 0;  // the last page stays as it is
            write_file(page, dashboard_page(d));
            if (again) {
                session.progress.note(dashboard_headline(d));
                std::this_thread::sleep_for(std::chrono::duration<double>(a->every));
                continue;
            }
            const DashboardJob* best = d.best();
            if (session.json)
                session.answer(
                    {{"page", page.string()},
                     {"headline", dashboard_headline(d)},
                     {"done", d.count("done")},
                     {"running", d.count("running")},
                     {"failed", d.count("failed")},
                     {"waiting", d.count("waiting")},
                     {"boards", d.boards.size()},
                     {"best", best ? nlohmann::json{{"name", best->name}, {"speedup", *best->speedup}, {"measured", best->measured}} : nlohmann::json()}});
            else
                fmt::print("{}\n{}\n", dashboard_headline(d), page.string());
            return 0;
        }
    };
}

}  // namespace cmd_dashboard

const Command dashboard_command{"dashboard", "write a self-contained HTML page about a batch and the boards", "loopegg dashboard batch/ --every 10",
                                cmd_dashboard::setup};

}  // namespace loopegg
