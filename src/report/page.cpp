#include "report/page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/progress.hpp"
#include "base/text.hpp"
#include "report/assets.hpp"
#include "report/charts.hpp"
#include "report/page_parts.hpp"
#include "report/words.hpp"

namespace loopegg {
using nlohmann::json;

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
    std::string out = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table><thead><tr>";
    auto numeric = [&](std::size_t i) { return i < head.size() && head[i].starts_with('#'); };
    for (std::size_t i = 0; i < head.size(); ++i)
        out += fmt::format("<th scope=\"col\"{}>{}</th>", numeric(i) ? " class=\"n\"" : "", escape_html(numeric(i) ? head[i].substr(1) : head[i]));
    out += "</tr></thead><tbody>";
    for (const auto& row : rows) {
        out += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) out += fmt::format("<td{}>{}</td>", numeric(i) ? " class=\"n\"" : "", escape_html(row[i]));
        out += "</tr>";
    }
    return out + "</tbody></table></div>";
}

std::string figure(const std::string& name, const std::string& caption, const std::string& table) {
    return fmt::format("<figure class=\"panel\" data-chart=\"{}\"><figcaption>{}</figcaption><div class=\"plot\"></div>{}</figure>\n", name,
                       escape_html(caption), table.empty() ? "" : "<details class=\"table\"><summary>The same as a table</summary>" + table + "</details>");
}

namespace {

std::string safe_json(const json& j) {
    std::string text = j.dump(-1, ' ', false, json::error_handler_t::replace), out;
    for (char c : text) c == '<' ? out += "\\u003c" : out += c;
    return out;
}

}  // namespace

std::string whole_page(const std::string& title, const std::string& facts, bool sample, const std::string& body, const json& charts, double refresh_seconds) {
    std::string out =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n";
    if (refresh_seconds > 0) out += fmt::format("<meta http-equiv=\"refresh\" content=\"{:.0f}\">\n", std::max(1.0, refresh_seconds));
    out += fmt::format("<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n",
                       escape_html(title), report_css);
    out += fmt::format(
        "<header><div class=\"top\"><span class=\"brand\">loopegg</span><span class=\"facts\">{}</span><button id=\"theme\" "
        "type=\"button\">Dark</button></div>\n",
        escape_html(facts));
    if (sample) out += "<p class=\"notice\">Sample data made for tests: nothing on this page was measured.</p>\n";
    out += "</header>\n<main id=\"main\">\n" + body +
           "</main>\n<noscript><p style=\"padding:0 20px\">Charts need JavaScript; every number is in the tables.</p></noscript>\n";
    out += "<script type=\"application/json\" id=\"charts\">" + safe_json(charts) + "</script>\n" +
           (charts.empty() ? "" : "<script>" + vega_script() + "</script>\n") + "<script>\n" + inside_script(std::string(report_js)) +
           "</script>\n</body>\n</html>\n";
    return out;
}

namespace {

std::string section(const char* id, const char* title, const std::string& lead, const std::string& body) {
    return fmt::format("<section id=\"{}\"><h2>{}</h2><p>{}</p>\n{}</section>\n", id, title, lead, body);
}

bool has_networks(const FinishedRun& run) { return run.result.contains("networks") && !run.result["networks"].empty(); }

// "0.42 (0.10 to 0.74)"
std::string loss_words(const nlohmann::json& loss) {
    const double points = loss.at("points"), low = loss.value("low", points), high = loss.value("high", points);
    return fmt::format("{:.2f}{}", points, low < high ? fmt::format(" ({:.2f} to {:.2f})", low, high) : "");
}

// Those that have a time. What training runs reached is next to what had been predicted.
std::string networks_table(const FinishedRun& run) {
    const bool trained = run.result.contains("training");
    std::vector<std::string> head{"network", "#latency", "#points lost", "allowed", "#MACs", "#parameters"};
    if (trained) head.insert(head.end(), {"#accuracy", "#training runs", "#points lost in training", "#predicted"});
    std::vector<std::vector<std::string>> rows;
    for (const auto& n : run.result["networks"]) {
        if (!n.at("latency_ms").is_number()) continue;
        rows.push_back({n.value("finalist", "network") + (n.value("chosen", false) ? " (chosen)" : ""),
                        human_ms(n.at("latency_ms").get<double>()) + (n.value("measured", false) ? "" : " (estimated)"), loss_words(n.at("loss")),
                        n.value("allowed", false) ? "yes" : "no", human_count(n.at("macs").get<double>()), human_count(n.at("parameters").get<double>())});
        if (trained && n.contains("accuracies"))
            rows.back().insert(rows.back().end(), {fmt::format("{:.2f}%", n.at("accuracy").get<double>()), std::to_string(n.at("accuracies").size()),
                                                   fmt::format("{:.2f}", n.at("lost").get<double>()), loss_words(n.at("predicted"))});
        else if (trained)
            rows.back().insert(rows.back().end(), {"", "0", "", ""});
    }
    return table(head, rows);
}

// Extraction keeps one of several networks that are nearly alike.
std::string front_gap(const FinishedRun& run) {
    const auto gap = run.result.find("front_gap");
    return gap == run.result.end() || !gap->is_number() ? "" : fmt::format(", by more than {:.2f} points", gap->get<double>());
}

std::string pareto_table(const FinishedRun& run) {
    std::vector<std::vector<std::string>> rows;
    for (const ParetoPoint& p : run.pareto)
        rows.push_back({human_ms(p.latency_ms), fmt::format("{:.2f}", p.points), p.allowed ? "yes" : "no", human_count(static_cast<double>(p.parameters)),
                        human_count(static_cast<double>(p.macs)), p.chosen ? "chosen" : "", p.measured ? "measured" : "predicted"});
    return table({"#latency", "#points lost", "allowed", "#parameters", "#MACs", "", ""}, rows);
}

std::string intervals_table(const FinishedRun& run) {
    std::vector<std::vector<std::string>> rows;
    auto add = [&](const std::string& name, const GuardResult& g) {
        rows.push_back(
            {name, fmt::format("{:.3f}", g.ratio), fmt::format("{:.3f}", g.low), fmt::format("{:.3f}", g.high), g.allowed ? "admitted" : "rejected"});
    };
    add("whole network", run.guard);
    for (const NetworkChange& s : run.steps)
        if (s.guard) add(s.title(), *s.guard);
    return table({"step", "#score", "#low", "#high", "verdict"}, rows);
}

std::string verdicts_table(const FinishedRun& run) {
    std::vector<std::vector<std::string>> rows;
    for (const Evidence& e : run.evidence) {
        if (rows.size() == 300) break;
        rows.push_back({e.site, fmt::format("{:.3f}", e.ratio), fmt::format("{:.3f} to {:.3f}", e.low, e.high), e.allowed ? "admitted" : "rejected", e.why});
    }
    return table({"site", "#score", "#interval", "verdict", "why"}, rows);
}

std::string stages_table(const FinishedRun& run) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [stage, seconds] : run.stages)
        rows.push_back({stage, fmt::format("{:.2f}", seconds), run.total_seconds > 0 ? human_percent(seconds / run.total_seconds) : ""});
    return table({"stage", "#seconds", "#share"}, rows);
}

std::string guard_section(const FinishedRun& run) {
    std::string body = figure("intervals", "The whole network, and each step by itself", intervals_table(run));
    if (!run.evidence.empty()) {
        std::string more = run.evidence.size() > 300 ? "<p>The first 300 of them; evidence.jsonl holds all.</p>" : "";
        body +=
            figure("verdicts", fmt::format("All {} of the run", plural(static_cast<std::int64_t>(run.evidence.size()), "verdict")), verdicts_table(run) + more);
    }
    std::string lead = fmt::format("<strong>{}</strong> judged each step over the network by itself, and the whole network{}.", escape_html(run.guard.name),
                                   run.guard.why.empty() ? "" : ": " + escape_html(run.guard.why));
    return section("guard", "Evidence of the guard", lead, body);
}

std::string or_unknown(const json& metrics, const char* key, double scale, const char* unit) {
    if (!metrics.contains(key) || !metrics[key].is_number()) return "not reported by this machine";
    double value = metrics[key].get<double>() * scale;
    return fmt::format("{:.{}f}{}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2, unit);
}

std::string run_section(const FinishedRun& run) {
    json metrics = run.result.value("metrics", json::object()), kernels = run.result.value("kernels", json::object());
    std::vector<std::vector<std::string>> rows{{"throughput", or_unknown(metrics, "throughput_per_s", 1, " inputs a second")},
                                               {"latency, median", or_unknown(metrics, "p50_ms", 1, " ms")},
                                               {"latency, 99th percentile", or_unknown(metrics, "p99_ms", 1, " ms")},
                                               {"peak memory", or_unknown(metrics, "peak_memory_mb", 1, " MB")},
                                               {"activations", or_unknown(metrics, "activations_mb", 1, " MB")},
                                               {"weights", or_unknown(metrics, "weights_mb", 1, " MB")},
                                               {"compiling this network", or_unknown(metrics, "compile_seconds", 1, " s")},
                                               {"energy", or_unknown(metrics, "energy_j", 1, " J an inference")},
                                               {"temperature", or_unknown(metrics, "temperature_c", 1, " °C")}};
    for (auto [key, words] : {std::pair{"tried", "schedules tried"}, {"failed", "schedules that failed"}})
        if (kernels.contains(key) && kernels[key].is_number()) rows.push_back({words, with_commas(kernels[key].get<std::int64_t>())});
    const json growth = run.result.value("growth", json::object());
    for (auto [key, words] : {std::pair{"nodes", "e-nodes"}, {"classes", "e-classes"}, {"edges", "edges of neural rules"}})
        if (growth.contains(key) && growth[key].get<std::int64_t>() > 0) rows.push_back({words, with_commas(growth[key].get<std::int64_t>())});
    std::vector<std::vector<std::string>> fired, never;
    for (const auto& [rule, count] : run.rules_fired) (count ? fired : never).push_back({rule, with_commas(count)});
    std::sort(fired.begin(), fired.end(), [&](auto& a, auto& b) { return run.rules_fired.at(a[0]) > run.rules_fired.at(b[0]); });
    fired.insert(fired.end(), never.begin(), never.end());
    std::string rules = fired.empty() ? ""
                                      : "<div class=\"panel\"><h3 style=\"margin:0 0 6px;font-size:15px\">How often each rule fired</h3>" +
                                            table({"rule", "#times"}, fired) + "</div>";
    return section("time", "Where the time went", fmt::format("The whole run took {}.", human_seconds(run.total_seconds)),
                   "<div class=\"two\"><div>" + figure("stages", "Seconds by stage", stages_table(run)) + rules + "</div><div class=\"panel\">" +
                       table({"metric", "value"}, rows) + "</div></div>");
}

std::string estimated_section(const FinishedRun& run) {
    std::vector<std::string> points;
    auto estimated_sites =
        std::count_if(run.sites.begin(), run.sites.end(), [](const SiteResult& s) { return !s.latency.measured || !s.original_latency.measured; });
    auto disturbed = std::count_if(run.sites.begin(), run.sites.end(), [](const SiteResult& s) { return s.latency.disturbed || s.original_latency.disturbed; });
    auto estimated_points = std::count_if(run.pareto.begin(), run.pareto.end(), [](const ParetoPoint& p) { return !p.measured; });
    const Latency &a = run.original.latency, &b = run.optimized.latency;
    points.push_back(a.measured && b.measured
                         ? fmt::format("The network's own times are <strong>measured</strong> on {}: {} before, {} after.", escape_html(run.target),
                                       describe(a), describe(b))
                         : fmt::format("The network's own times are <strong>estimated</strong>: no {} is connected.", escape_html(run.target)));
    points.push_back(estimated_sites ? fmt::format("{} of {} site times are estimated.", estimated_sites, run.sites.size())
                                     : std::string("Every site time is measured."));
    if (disturbed)
        points.push_back(fmt::format("{} taken while the machine was busy with something else, and marked 'disturbed'.",
                                     disturbed == 1 ? "One site time was" : fmt::format("{} site times were", disturbed)));
    if (estimated_points)
        points.push_back(fmt::format("{} of {} points of the front are predicted by the latency model; the chosen one was {}.", estimated_points,
                                     run.pareto.size(), b.measured ? "measured as a whole" : "not measured either"));
    points.push_back("Capacity is a score of an untrained or given network on a minibatch, not an accuracy.");
    std::string list;
    for (const std::string& p : points) list += "<li>" + p + "</li>";
    return section("estimated", "What was measured and what was estimated", "Every figure on this page that was not measured is marked as an estimate.",
                   "<div class=\"panel\"><ul style=\"margin:0;padding-left:20px\">" + list + "</ul></div>");
}

}  // namespace

std::string report_page(const FinishedRun& run) {
    json charts{{"latency", latency_chart(run)},
                {"capacity", capacity_chart(run)},
                {"sites", sites_chart(run)},
                {"intervals", intervals_chart(run)},
                {"stages", stages_chart(run)}};
    if (!run.pareto.empty()) charts["pareto"] = pareto_chart(run);
    if (has_networks(run)) charts["networks"] = networks_chart(run);
    if (!run.evidence.empty()) charts["verdicts"] = verdicts_chart(run);
    const json machine = run.result.value("machine", json::object());
    std::vector<std::string> facts{run.target.empty() ? "" : "target " + run.target,
                                   fmt::format("batch {}", run.batch),
                                   run.architecture.empty() ? "" : run.architecture + " network",
                                   machine.value("cpu", ""),
                                   machine.contains("cores") ? fmt::format("{} cores", machine["cores"].dump()) : "",
                                   run.date.substr(0, 10)};
    std::erase_if(facts, [](const std::string& f) { return f.empty(); });

    std::string out = answers_part(run);
    out +=
        "<nav class=\"toc\" aria-label=\"On this page\"><a href=\"#bars\">Site by site</a><a href=\"#sites\">Layers</a><a href=\"#pareto\">Other choices</a><a "
        "href=\"#guard\">Guard</a><a href=\"#time\">Time</a><a href=\"#estimated\">Measured or estimated</a></nav>\n";
    out += section("bars", "Site by site", "Each site is one operator with its own loop nest, in the order of the network.",
                   figure("sites", "Latency before and after", ""));
    out += section("sites", "Layer by layer", "Open a row for its steps and for its loop nest before and after.", sites_part(run));
    if (has_networks(run))
        out +=
            section("networks", "Whole networks",
                    "Every point is a network of the front, extracted from the e-graph by the latency model, tuned, and timed interleaved with the original.",
                    figure("networks", "Latency against expected loss", networks_table(run)));
    if (!run.pareto.empty())
        out += section(
            "pareto", "Other choices",
            "Every point is a network of the front of the last extraction: by the latency model, no other network is both faster and expected to lose less" +
                front_gap(run) + ".",
            figure("pareto", "Latency against expected loss", pareto_table(run)));
    out += guard_section(run) + run_section(run) + estimated_section(run);
    out += fmt::format("<footer><p>Made by loopegg {} from {}, seed {}, rules {}. This page loads nothing over the network.</p></footer>\n",
                       escape_html(run.version), escape_html(run.folder.string()), run.seed, escape_html(run.rules));
    return whole_page(headline(run), join(facts, " · "), run.sample, out, charts);
}

std::string report_page(const std::filesystem::path& files, const std::filesystem::path& folder) {
    FinishedRun run = read_run(files);
    run.folder = folder;
    return report_page(run);
}

}  // namespace loopegg
