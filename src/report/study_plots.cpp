#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "report/page_parts.hpp"
#include "report/study.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace {

// Stacked horizontal bars as a small static SVG, for texts that cannot run a script (docs/, a README).

struct Bar {
    std::string label;
    std::vector<double> parts;  // one per series
    std::string note;           // is after the bar
};

// Told apart by lightness too, so that they survive a grey print and most colour blindness.
const char* const colours[] = {"#0b7a6f", "#e0a040", "#3566b8", "#b3261e", "#7d8794", "#6a3d9a"};
constexpr int width = 860, left = 290, right = 130, row = 24, top = 62;

const char* colour(std::size_t i) { return colours[i % std::size(colours)]; }

std::string svg_bars(const std::string& title, const std::vector<std::string>& series, const std::vector<Bar>& bars) {
    double longest = 0;
    for (const Bar& b : bars) {
        double sum = 0;
        for (double p : b.parts) sum += p;
        longest = std::max(longest, sum);
    }
    const double scale = longest > 0 ? (width - left - right) / longest : 0;
    const int height = top + static_cast<int>(bars.size()) * row + 14;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-labelledby=\"t\" "
        "font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\">\n"
        "<title id=\"t\">{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n<text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\" "
        "fill=\"#16202c\">{2}</text>\n",
        width, height, escape_html(title));
    double x = 16;
    for (std::size_t i = 0; i < series.size(); ++i) {
        out +=
            fmt::format("<rect x=\"{:.0f}\" y=\"36\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/><text x=\"{:.0f}\" y=\"47\" fill=\"#16202c\">{}</text>\n",
                        x, colour(i), x + 17, escape_html(series[i]));
        x += 34 + 7.6 * static_cast<double>(series[i].size());
    }
    for (std::size_t b = 0; b < bars.size(); ++b) {
        const double y = top + static_cast<double>(b) * row;
        std::string label = bars[b].label.size() > 44 ? bars[b].label.substr(0, 43) + "…" : bars[b].label;
        out +=
            fmt::format("<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\" fill=\"#16202c\" font-size=\"12\">{}</text>\n", left - 8, y + 14, escape_html(label));
        double at = left;
        for (std::size_t i = 0; i < bars[b].parts.size(); ++i) {
            const double part = bars[b].parts[i] * scale;
            if (part <= 0) continue;
            out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\" fill=\"{}\"><title>{}: {} {}</title></rect>\n", at, y + 2, part,
                               colour(i), escape_html(bars[b].label), escape_html(i < series.size() ? series[i] : ""), bars[b].parts[i]);
            at += part;
        }
        out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" fill=\"#4d5a69\" font-size=\"12\">{}</text>\n", at + 6, y + 14, escape_html(bars[b].note));
    }
    return out + "</svg>\n";
}

}  // namespace

using nlohmann::json;
namespace {

constexpr std::size_t max_bars = 24;  // what a reader can take in at once; the CSV has all
const char* const depth_names[] = {"early third", "middle third", "late third"};

std::string bought(const SequenceCount& c) {
    return c.speedup ? fmt::format("{:.2f}×, {} of the MACs", *c.speedup, human_percent(c.macs_kept)) : "not computed";
}

json spec(const char* description, json values, int height, json encoding, const char* mark) {
    return {{"$schema", "https://vega.github.io/schema/vega-lite/v4.json"},
            {"description", description},
            {"width", "container"},
            {"height", height},
            {"autosize", {{"type", "fit-x"}, {"contains", "padding"}}},
            {"data", {{"name", "table"}, {"values", std::move(values)}}},
            {"mark", std::string(mark) == "point" ? json{{"type", "point"}, {"filled", true}, {"opacity", 0.9}} : json{{"type", mark}}},
            {"encoding", std::move(encoding)}};
}

json frequency_chart(const Study& study) {
    json values = json::array();
    std::size_t bars = 0;
    for (const SequenceCount& c : study.sequences) {
        if (c.fame == Fame::dense || bars == max_bars) continue;
        ++bars;
        for (const auto& [target, sites] : c.by_target) values.push_back({{"sequence", c.label}, {"target", target}, {"sites", sites}, {"bought", bought(c)}});
    }
    json tooltip = json::array();
    for (const char* name : {"sequence", "target", "sites", "bought"}) tooltip.push_back({{"field", name}, {"type", "nominal"}});
    return spec("How often each sequence was chosen, by target", values, static_cast<int>(std::max<std::size_t>(1, bars)) * 24,
                {{"y", {{"field", "sequence"}, {"type", "nominal"}, {"sort", nullptr}, {"title", nullptr}, {"axis", {{"labelLimit", 220}}}}},
                 {"x", {{"field", "sites"}, {"type", "quantitative"}, {"title", "sites"}}},
                 {"color",
                  {{"field", "target"},
                   {"type", "nominal"},
                   {"legend", {{"orient", "top"}, {"title", nullptr}}},
                   {"scale", {{"range", {"var(--after)", "var(--estimated)", "var(--second)", "var(--bad)", "var(--axis)", "var(--before)"}}}}}},
                 {"tooltip", tooltip}},
                "bar");
}

json depth_chart(const Study& study) {
    json values = json::array();
    std::size_t bars = 0;
    for (const SequenceCount& c : study.sequences) {
        if (bars++ == max_bars) break;
        for (std::size_t d = 0; d < 3; ++d) values.push_back({{"sequence", c.label}, {"depth", depth_names[d]}, {"third", d}, {"sites", c.by_depth[d]}});
    }
    return spec(
        "Where in the network each sequence was chosen", values, static_cast<int>(std::max<std::size_t>(1, std::min(bars, max_bars))) * 24,
        {{"y", {{"field", "sequence"}, {"type", "nominal"}, {"sort", nullptr}, {"title", nullptr}, {"axis", {{"labelLimit", 220}}}}},
         {"x", {{"field", "sites"}, {"type", "quantitative"}, {"title", "sites"}}},
         {"order", {{"field", "third"}, {"type", "quantitative"}}},
         {"color",
          {{"field", "depth"},
           {"type", "nominal"},
           {"sort", nullptr},
           {"legend", {{"orient", "top"}, {"title", nullptr}}},
           {"scale", {{"domain", {depth_names[0], depth_names[1], depth_names[2]}}, {"range", {"var(--second)", "var(--estimated)", "var(--after)"}}}}}},
         {"tooltip",
          {{{"field", "sequence"}, {"type", "nominal"}}, {{"field", "depth"}, {"type", "nominal"}}, {{"field", "sites"}, {"type", "quantitative"}}}}},
        "bar");
}

json bargain_chart(const Study& study) {
    json values = json::array();
    for (const SequenceCount& c : study.sequences)
        if (c.speedup && c.fame != Fame::dense)
            values.push_back({{"sequence", c.label}, {"fame", to_string(c.fame)}, {"speedup", *c.speedup}, {"macs_kept", c.macs_kept}, {"sites", c.sites}});
    return spec("What each sequence bought and cost: mean speed-up of a site against the mean share of its MACs that is kept", values, 300,
                {{"x", {{"field", "speedup"}, {"type", "quantitative"}, {"title", "speed-up of a site"}, {"scale", {{"zero", false}, {"padding", 14}}}}},
                 {"y", {{"field", "macs_kept"}, {"type", "quantitative"}, {"title", "MACs kept"}, {"scale", {{"zero", false}, {"padding", 14}}}}},
                 {"size", {{"field", "sites"}, {"type", "quantitative"}, {"legend", nullptr}, {"scale", {{"range", {60, 500}}}}}},
                 {"color",
                  {{"field", "fame"},
                   {"type", "nominal"},
                   {"legend", {{"orient", "top"}, {"title", nullptr}}},
                   {"scale", {{"domain", {"paper", "known", "unnamed"}}, {"range", {"var(--second)", "var(--estimated)", "var(--after)"}}}}}},
                 {"tooltip",
                  {{{"field", "sequence"}, {"type", "nominal"}},
                   {{"field", "sites"}, {"type", "quantitative"}},
                   {{"field", "speedup"}, {"type", "quantitative"}, {"format", ".2f"}},
                   {{"field", "macs_kept"}, {"type", "quantitative"}, {"format", ".3f"}}}}},
                "point");
}

std::string share(int part, int whole) { return whole ? human_percent(static_cast<double>(part) / whole) : "0%"; }

}  // namespace

std::string frequency_svg(const Study& study) {
    std::vector<Bar> bars;
    for (const SequenceCount& c : study.sequences) {
        if (c.fame == Fame::dense || bars.size() == max_bars) continue;
        Bar bar{c.label, {}, fmt::format("{} ({})", c.sites, bought(c))};
        for (const std::string& target : study.targets) bar.parts.push_back(c.by_target.contains(target) ? c.by_target.at(target) : 0);
        bars.push_back(std::move(bar));
    }
    return svg_bars(fmt::format("How often each sequence was chosen: {} over {}", plural(study.changed, "changed site"),
                                plural(static_cast<std::int64_t>(study.runs.size()), "run")),
                    study.targets, bars);
}

std::string depth_svg(const Study& study) {
    std::vector<Bar> bars;
    for (const SequenceCount& c : study.sequences) {
        if (bars.size() == max_bars) break;
        bars.push_back(
            {c.label, {static_cast<double>(c.by_depth[0]), static_cast<double>(c.by_depth[1]), static_cast<double>(c.by_depth[2])}, std::to_string(c.sites)});
    }
    return svg_bars("Where in the network each sequence was chosen", {depth_names[0], depth_names[1], depth_names[2]}, bars);
}

std::string study_page(const Study& study) {
    std::vector<std::vector<std::string>> sequences, steps, rules;
    for (const SequenceCount& c : study.sequences)
        sequences.push_back({c.label, to_string(c.fame), std::to_string(c.sites), fmt::format("{}/{}/{}", c.by_depth[0], c.by_depth[1], c.by_depth[2]),
                             c.speedup ? fmt::format("{:.2f}×", *c.speedup) : "not computed", human_ms(std::max(0.0, c.saved_ms)), human_percent(c.macs_kept),
                             c.estimated ? fmt::format("{} estimated", c.estimated) : "measured"});
    for (const StepCount& c : study.steps) {
        if (steps.size() == 200) break;
        steps.push_back({c.rule, c.parameters, c.kind, std::to_string(c.times), fmt::format("{}/{}/{}", c.by_depth[0], c.by_depth[1], c.by_depth[2])});
    }
    for (const auto& [rule, times] : study.rules_fired) rules.push_back({rule, with_commas(times)});
    std::string lead = fmt::format(
        "{} of {} sites were changed: {} by one of the paper's three sequences, {} by an operator people know, {} by a sequence that no one has named.",
        study.changed, study.sites.size(), share(study.paper, study.changed), share(study.known, study.changed), share(study.unnamed, study.changed));
    auto section = [](const char* id, const char* title, const std::string& body) {
        return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, title, body);
    };
    std::string never =
        study.never_fired.empty() ? "Every rule fired somewhere." : "Never fired in any run: " + escape_html(join(study.never_fired, ", ")) + ".";
    std::string body = fmt::format("<h1>{} of {} on {}</h1>\n<p class=\"lead\">{}</p>\n", plural(static_cast<std::int64_t>(study.runs.size()), "run"),
                                   plural(static_cast<std::int64_t>(study.models.size()), "network"), escape_html(join(study.targets, ", ")), lead);
    body += section("frequency", "How often each sequence was chosen",
                    figure("frequency", "Sites by sequence and target",
                           table({"sequence", "name", "#sites", "#early/middle/late", "#speed-up", "#saved", "#MACs kept", ""}, sequences)));
    body += section("depth", "Where in the network", figure("depth", "Sites by sequence and depth", ""));
    body += section("bargain", "What each bought and cost", figure("bargain", "Speed-up against MACs, larger dots are more sites", ""));
    body += section("steps", "Steps and their parameters",
                    "<div class=\"panel\">" + table({"rule", "parameters", "kind", "#times", "#early/middle/late"}, steps) + "</div>");
    body += section("rules", "Rules", "<div class=\"panel\"><p>" + never + "</p>" + table({"rule", "#fired"}, rules) + "</div>");
    return whole_page("Sequences over " + plural(static_cast<std::int64_t>(study.runs.size()), "run"), join(study.models, " · "), study.sample, body,
                      {{"frequency", frequency_chart(study)}, {"depth", depth_chart(study)}, {"bargain", bargain_chart(study)}});
}

}  // namespace loopegg
