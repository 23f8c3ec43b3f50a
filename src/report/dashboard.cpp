#include "report/dashboard.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/progress.hpp"
#include "report/page_parts.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_rows = 200;

std::string card(const char* id, const char* title, const std::string& figure, const std::string& small, const std::string& more) {
    return fmt::format("<article class=\"card\" id=\"{}\"><h2>{}</h2><p class=\"figure\">{} <small>{}</small></p>{}</article>\n", id, title, figure, small,
                       more);
}

std::string panel_section(const char* id, const char* title, const std::string& lead, const std::string& body) {
    return fmt::format("<section id=\"{}\"><h2>{}</h2><p>{}</p>\n<div class=\"panel\">{}</div></section>\n", id, title, lead, body);
}

// Rows of one state, and how many more there are.
std::string rows_of(const Dashboard& d, const std::string& state, const std::vector<std::string>& head,
                    const std::function<std::vector<std::string>(const DashboardJob&)>& cells) {
    std::vector<std::vector<std::string>> rows;
    int left = 0;
    for (const DashboardJob& j : d.jobs)
        if (j.state == state) rows.size() < max_rows ? rows.push_back(cells(j)) : void(++left);
    return table(head, rows) + (left ? fmt::format("<p>And {} more; <code>loopegg batch JOBS --out DIR --status</code> lists all.</p>", left) : "");
}

std::string jobs_cards(const Dashboard& d) {
    std::string shares;
    const double all = std::max<double>(1, static_cast<double>(d.jobs.size()));
    for (const auto& [state, colour] : {std::pair{"done", "--after"}, {"running", "--second"}, {"failed", "--bad"}, {"waiting", "--grid"}})
        if (const int n = d.count(state)) shares += fmt::format("<span style=\"width:{:.3f}%;background:var({})\"></span>", 100 * n / all, colour);
    std::string chips = fmt::format(
        "<p><span class=\"chip good\">{} done</span> <span class=\"chip\">{} running</span> <span class=\"chip {}\">{} failed</span> "
        "<span class=\"chip\">{} waiting</span></p>",
        d.count("done"), d.count("running"), d.count("failed") ? "bad" : "", d.count("failed"), d.count("waiting"));
    for (const auto& [state, n] : d.slurm) chips += fmt::format("<p>Slurm has {} {}.</p>", plural(n, "task"), escape_html(state));
    std::string out = card("jobs", "How far is it?", fmt::format("{} of {}", d.count("done"), d.jobs.size()), "jobs are done",
                           "<div class=\"share\" role=\"img\" aria-label=\"the share of jobs in each state\">" + shares + "</div>" + chips);
    if (const DashboardJob* best = d.best())
        return out + card("best", "What is the best so far?", times(*best->speedup), best->measured ? "faster" : "faster, estimated",
                          fmt::format("<p>{}: {} instead of {}.</p>", escape_html(best->name), human_ms(best->after_ms.value_or(0)),
                                      human_ms(best->before_ms.value_or(0))));
    return out + card("best", "What is the best so far?", "Nothing", "is done yet", "");
}

std::string boards_card(const Dashboard& d) {
    const auto up = std::count_if(d.boards.begin(), d.boards.end(), [](const BoardHealth& b) { return b.up; });
    return card("boards-up", "How are the boards?", fmt::format("{} of {}", up, d.boards.size()), "answered the last query", "");
}

std::string boards_section(const Dashboard& d) {
    std::vector<std::vector<std::string>> rows;
    for (const BoardHealth& b : d.boards)
        rows.push_back({b.target, b.address, b.up ? "up" : "away", b.up ? b.conditions : b.why, human_seconds(b.up ? b.seen_seconds : b.since_seconds) + " ago",
                        std::to_string(b.measured), std::to_string(b.lost), b.cpu});
    return panel_section("boards", "Boards", "A board that is away is tried again now and then. Its candidate is measured on another board, so none is lost.",
                         table({"target", "board", "state", "conditions, or why it is away", "since", "#timed", "#lost with it", "processor"}, rows));
}

}  // namespace

int Dashboard::count(const std::string& state) const {
    return static_cast<int>(std::count_if(jobs.begin(), jobs.end(), [&](const DashboardJob& j) { return j.state == state; }));
}

const DashboardJob* Dashboard::best() const {
    const DashboardJob* found = nullptr;
    for (const DashboardJob& j : jobs)
        if (j.speedup && (!found || std::pair(j.measured, *j.speedup) > std::pair(found->measured, *found->speedup))) found = &j;
    return found;
}

std::string dashboard_headline(const Dashboard& d) {
    if (d.batch.empty()) {
        const auto up = std::count_if(d.boards.begin(), d.boards.end(), [](const BoardHealth& b) { return b.up; });
        return fmt::format("{} of {} up", up, d.boards.size() == 1 ? "1 board is" : fmt::format("{} boards are", d.boards.size()));
    }
    const int failed = d.count("failed");
    return fmt::format("{} of {} done{}", d.count("done"), d.jobs.size() == 1 ? "1 job is" : fmt::format("{} jobs are", d.jobs.size()),
                       failed ? fmt::format(", and {} failed", failed) : "");
}

std::string dashboard_page(const Dashboard& d) {
    std::string out = fmt::format("<h1>{}</h1>\n<p class=\"lead\">As of {}{}.</p>\n<div class=\"answers\">\n", escape_html(dashboard_headline(d)),
                                  escape_html(d.date), d.refresh_seconds > 0 ? fmt::format("; this page looks again every {:.0f} s", d.refresh_seconds) : "");
    if (!d.batch.empty()) out += jobs_cards(d);
    if (!d.boards.empty()) out += boards_card(d);
    out += "</div>\n";
    if (d.count("failed"))
        out += panel_section("failed", "Failed", "Each with its last words. <code>loopegg batch JOBS --out DIR --retry</code> runs them again.",
                             rows_of(d, "failed", {"job", "why"}, [](const DashboardJob& j) {
                                 return std::vector{j.name, j.error};
                             }));
    if (d.count("running"))
        out += panel_section("running", "Running", "Who works on what, and for how long.",
                             rows_of(d, "running", {"job", "where", "#for"}, [](const DashboardJob& j) {
                                 return std::vector{j.name, j.where, human_seconds(j.seconds)};
                             }));
    if (!d.boards.empty()) out += boards_section(d);
    if (d.count("done"))
        out += panel_section("done", "Done", "What each job came to.",
                             rows_of(d, "done", {"job", "#speed-up", "#before", "#after", "#capacity", "", "#took"}, [](const DashboardJob& j) {
                                 auto ms = [](const std::optional<double>& v) { return v ? human_ms(*v) : std::string(); };
                                 return std::vector{j.name,
                                                    j.speedup ? times(*j.speedup) : "",
                                                    ms(j.before_ms),
                                                    ms(j.after_ms),
                                                    j.capacity ? fmt::format("{:.3f}", *j.capacity) : "",
                                                    std::string(!j.speedup   ? ""
                                                                : j.measured ? "measured"
                                                                             : "estimated"),
                                                    human_seconds(j.seconds)};
                             }));
    out += "<footer><p>Made by loopegg. This page loads nothing over the network.</p></footer>\n";
    return whole_page(dashboard_headline(d), d.batch.empty() ? "boards" : "batch " + d.batch, false, out, nlohmann::json::object(), d.refresh_seconds);
}

}  // namespace loopegg
