#include "report/charts.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/progress.hpp"
#include "report/words.hpp"

namespace loopegg {
using nlohmann::json;
namespace {

// Colours are the page's own variables, so a chart follows dark mode and print without being drawn again.
json colour_by(const char* field, std::vector<std::string> domain, std::vector<std::string> range, const char* legend_orient = "top") {
    return {{"field", field},
            {"type", "nominal"},
            {"scale", {{"domain", domain}, {"range", range}}},
            {"legend", legend_orient ? json{{"orient", legend_orient}, {"title", nullptr}} : json(nullptr)}};
}

json field(const char* name, const char* type, json extra = json::object()) {
    json j{{"field", name}, {"type", type}};
    j.update(extra);
    return j;
}

json tooltip(std::vector<std::pair<const char*, const char*>> fields) {
    json out = json::array();
    for (auto [name, title] : fields) out.push_back({{"field", name}, {"type", "nominal"}, {"title", title}});
    return out;
}

json chart(const char* description, json values, json body) {
    json j{{"$schema", "https://vega.github.io/schema/vega-lite/v4.json"},
           {"description", description},
           {"width", "container"},
           {"autosize", {{"type", "fit-x"}, {"contains", "padding"}}},
           {"data", {{"name", "table"}, {"values", std::move(values)}}}};
    j.update(body);
    return j;
}

// Bounds of an axis that shows all these ratios with some air.
std::pair<double, double> bounds(const std::vector<double>& values) {
    auto [low, high] = std::minmax_element(values.begin(), values.end());
    double air = std::max(0.02, (*high - *low) * 0.08);
    return {std::floor((*low - air) * 50) / 50, std::ceil((*high + air) * 50) / 50};
}

// Whole heights: Vega-Lite fits a width only next to a height that is a number.
std::int64_t rows(std::size_t count, int each) { return static_cast<std::int64_t>(std::max<std::size_t>(1, count)) * each; }

std::string interval(double low, double high) { return fmt::format("{:.3f} to {:.3f}", low, high); }

json limits_layer(const std::vector<double>& limits, bool vertical) {
    if (limits.empty()) return nullptr;
    const double top = limits.size() > 1 ? limits[1] : 1;  // a guard that asks for a least share: up to the original's own
    json encoding = vertical ? json{{"y", {{"datum", limits[0]}, {"type", "quantitative"}, {"scale", {{"zero", false}}}}}, {"y2", {{"datum", top}}}}
                             : json{{"x", {{"datum", limits[0]}, {"type", "quantitative"}, {"scale", {{"zero", false}}}}}, {"x2", {{"datum", top}}}};
    return {{"data", {{"values", {json::object()}}}}, {"mark", {{"type", "rect"}, {"color", "var(--band)"}, {"aria", false}}}, {"encoding", encoding}};
}

json one_line(bool vertical) {
    return {{"data", {{"values", {json::object()}}}},
            {"mark", {{"type", "rule"}, {"color", "var(--axis)"}, {"strokeDash", {3, 3}}, {"aria", false}}},
            {"encoding", {{vertical ? "y" : "x", {{"datum", 1}, {"type", "quantitative"}, {"scale", {{"zero", false}}}}}}}};
}

json layers(std::vector<json> all) {
    json out = json::array();
    for (json& l : all)
        if (!l.is_null()) out.push_back(std::move(l));
    return out;
}

}  // namespace

json latency_chart(const FinishedRun& run) {
    json values = json::array();
    auto add = [&](const char* which, const Latency& l) {
        values.push_back({{"which", which},
                          {"ms", l.median_ms},
                          {"low", std::max(0.0, l.median_ms - l.iqr_ms / 2)},
                          {"high", l.median_ms + l.iqr_ms / 2},
                          {"text", human_ms(l.median_ms)},
                          {"about", describe(l)}});
    };
    add("before", run.original.latency);
    add("after", run.optimized.latency);
    json y = field("which", "nominal",
                   {{"sort", nullptr}, {"title", nullptr}, {"axis", {{"labelFontSize", 13}, {"domain", false}, {"ticks", false}, {"labelPadding", 6}}}});
    json x = field("ms", "quantitative",
                   {{"title", nullptr},
                    {"axis", nullptr},
                    {"scale", {{"domainMin", 0}, {"domainMax", std::max(run.original.latency.median_ms, run.optimized.latency.median_ms) * 1.3}}}});
    json tips = tooltip({{"which", "network"}, {"about", "latency"}});
    return chart(
        "Latency of the whole network before and after, with the distance between the quartiles", values,
        {{"height", 60},
         {"layer",
          {{{"mark", {{"type", "bar"}, {"cornerRadiusEnd", 3}, {"height", 20}}},
            {"encoding",
             {{"x", x}, {"y", y}, {"tooltip", tips}, {"color", colour_by("which", {"before", "after"}, {"var(--before)", "var(--after)"}, nullptr)}}}},
           {{"mark", {{"type", "rule"}, {"color", "var(--ink)"}, {"strokeWidth", 2}, {"aria", false}}},
            {"encoding", {{"x", field("low", "quantitative")}, {"x2", {{"field", "high"}}}, {"y", y}}}},
           {{"mark", {{"type", "text"}, {"align", "left"}, {"dx", 10}, {"fontSize", 13}, {"fontWeight", 600}, {"color", "var(--ink)"}, {"aria", false}}},
            {"encoding", {{"x", field("high", "quantitative")}, {"y", y}, {"text", field("text", "nominal")}}}}}}});
}

json capacity_chart(const FinishedRun& run) {
    const GuardResult& g = run.guard;
    std::vector<double> all{g.low, g.high, g.ratio, 1.0};
    all.insert(all.end(), g.threshold.begin(), g.threshold.end());
    auto [from, to] = bounds(all);
    json values{
        {{"ratio", g.ratio}, {"low", g.low}, {"high", g.high}, {"about", fmt::format("{:.3f} of the original ({})", g.ratio, interval(g.low, g.high))}}};
    json x =
        field("ratio", "quantitative",
              {{"title", nullptr}, {"scale", {{"domain", {from, to}}, {"nice", false}}}, {"axis", {{"tickCount", 5}, {"grid", false}, {"format", ".2f"}}}});
    json tips = tooltip({{"about", "score"}});
    json low = field("low", "quantitative", {{"scale", x["scale"]}});
    return chart("The guard's score of the whole network relative to the original, with its interval, inside the limits it must keep", values,
                 {{"height", 34},
                  {"layer", layers({limits_layer(g.threshold, false),
                                    one_line(false),
                                    {{"mark", {{"type", "rule"}, {"strokeWidth", 4}, {"strokeCap", "round"}, {"color", "var(--after)"}}},
                                     {"encoding", {{"x", low}, {"x2", {{"field", "high"}}}, {"tooltip", tips}}}},
                                    {{"mark",
                                      {{"type", "point"},
                                       {"filled", true},
                                       {"size", 130},
                                       {"opacity", 1},
                                       {"color", "var(--after)"},
                                       {"stroke", "var(--card)"},
                                       {"strokeWidth", 2}}},
                                     {"encoding", {{"x", x}, {"tooltip", tips}}}}})}});
}

json sites_chart(const FinishedRun& run) {
    json values = json::array();
    for (const SiteResult& s : run.sites)
        values.push_back({{"site", s.name},
                          {"before", s.original_latency.median_ms},
                          {"after", s.latency.median_ms},
                          {"sequence", s.sequence},
                          {"before_about", describe(s.original_latency)},
                          {"after_about", describe(s.latency)},
                          {"low", std::max(0.0, s.latency.median_ms - s.latency.iqr_ms / 2)},
                          {"high", s.latency.median_ms + s.latency.iqr_ms / 2},
                          {"which_before", "before"},
                          {"which", s.latency.measured ? "after" : "after (estimated)"}});
    json y = field("site", "nominal",
                   {{"sort", nullptr}, {"title", nullptr}, {"axis", {{"labelLimit", 150}, {"domain", false}, {"ticks", false}, {"labelPadding", 6}}}});
    json tips = tooltip({{"site", "site"}, {"sequence", "sequence"}, {"before_about", "before"}, {"after_about", "after"}});
    std::vector<std::string> names{"before", "after", "after (estimated)"}, colours{"var(--before)", "var(--after)", "var(--estimated)"};
    bool estimated = std::any_of(run.sites.begin(), run.sites.end(), [](const SiteResult& s) { return !s.latency.measured; });
    bool measured = std::any_of(run.sites.begin(), run.sites.end(), [](const SiteResult& s) { return s.latency.measured; });
    if (!estimated) names.pop_back(), colours.pop_back();
    if (!measured) names.erase(names.begin() + 1), colours.erase(colours.begin() + 1);
    auto bar = [&](const char* value, const char* which, int height) {
        return json{{"mark", {{"type", "bar"}, {"height", height}, {"cornerRadiusEnd", 2}}},
                    {"encoding",
                     {{"x", field(value, "quantitative", {{"title", "ms"}, {"axis", {{"orient", "top"}, {"tickCount", 6}}}})},
                      {"y", y},
                      {"tooltip", tips},
                      {"color", colour_by(which, names, colours)}}}};
    };
    return chart("Latency of each site in the order of the network: the wide pale bar is before, the narrow one after", values,
                 {{"height", rows(run.sites.size(), 19)},
                  {"layer",
                   {bar("before", "which_before", 14),
                    bar("after", "which", 7),
                    {{"mark", {{"type", "rule"}, {"color", "var(--ink)"}, {"aria", false}}},
                     {"encoding", {{"x", field("low", "quantitative")}, {"x2", {{"field", "high"}}}, {"y", y}}}}}}});
}

json pareto_chart(const FinishedRun& run) {
    json values = json::array();
    auto kind = [](const ParetoPoint& p) { return p.chosen ? "chosen" : p.measured ? "measured" : "predicted"; };
    for (const ParetoPoint& p : run.pareto)
        values.push_back({{"ms", p.latency_ms},
                          {"points", p.points},
                          {"kind", kind(p)},
                          {"latency", human_ms(p.latency_ms) + (p.measured ? "" : " (predicted)")},
                          {"loss", fmt::format("{:.2f}", p.points)},
                          {"allowed", p.allowed ? "allowed" : "not allowed"},
                          {"parameters", human_count(static_cast<double>(p.parameters))},
                          {"macs", human_count(static_cast<double>(p.macs))}});
    values.push_back({{"ms", run.original.latency.median_ms},
                      {"points", 0.0},
                      {"kind", "original"},
                      {"latency", describe(run.original.latency)},
                      {"loss", "0"},
                      {"allowed", "allowed"},
                      {"parameters", human_count(static_cast<double>(run.original.parameters))},
                      {"macs", human_count(static_cast<double>(run.original.macs))}});
    json x = field("ms", "quantitative", {{"title", "latency, ms"}, {"scale", {{"zero", false}, {"padding", 12}}}});
    json y = field("points", "quantitative", {{"title", "points of accuracy expected to be lost"}, {"scale", {{"reverse", true}, {"padding", 12}}}});
    json tips =
        tooltip({{"kind", "point"}, {"latency", "latency"}, {"loss", "points lost"}, {"allowed", "guard"}, {"parameters", "parameters"}, {"macs", "MACs"}});
    json shape{{"field", "kind"},
               {"type", "nominal"},
               {"scale", {{"domain", {"original", "chosen", "measured", "predicted"}}, {"range", {"square", "diamond", "circle", "circle"}}}},
               {"legend", {{"orient", "top"}, {"title", nullptr}}}};
    return chart("The front of the e-graph: latency against the points of accuracy that each network is expected to lose", values,
                 {{"height", 280},
                  {"layer",
                   {{{"transform", {{{"filter", "datum.kind != 'original'"}}}},
                     {"mark", {{"type", "line"}, {"color", "var(--axis)"}, {"strokeWidth", 1.5}, {"aria", false}}},
                     {"encoding", {{"x", x}, {"y", y}, {"order", field("ms", "quantitative")}}}},
                    {{"mark", {{"type", "point"}, {"filled", true}, {"opacity", 1}, {"strokeWidth", 1.5}}},
                     {"encoding",
                      {{"x", x},
                       {"y", y},
                       {"shape", shape},
                       {"tooltip", tips},
                       {"color", colour_by("kind", {"original", "chosen", "measured", "predicted"},
                                           {"var(--before)", "var(--after)", "var(--second)", "var(--estimated)"})},
                       {"size", {{"condition", {{"test", "datum.kind == 'chosen'"}, {"value", 260}}}, {"value", 80}}}}}}}}});
}

json networks_chart(const FinishedRun& run) {
    json values = json::array();
    for (const json& n : run.result.value("networks", json::array())) {
        if (!n.at("latency_ms").is_number()) continue;  // it could not be timed
        const double ms = n.at("latency_ms"), points = n.at("loss").at("points");
        const bool measured = n.value("measured", false);
        values.push_back({{"ms", ms},
                          {"points", points},
                          {"kind", n.value("chosen", false) ? "chosen" : "extracted"},
                          {"name", n.value("finalist", "network")},
                          {"latency", human_ms(ms) + (measured ? "" : " (estimated)")},
                          {"loss", fmt::format("{:.2f} ({:.2f} to {:.2f})", points, n["loss"]["low"].get<double>(), n["loss"]["high"].get<double>())},
                          {"allowed", n.value("allowed", false) ? "allowed" : "not allowed"},
                          {"macs", human_count(n.at("macs").get<double>())},
                          {"parameters", human_count(n.at("parameters").get<double>())},
                          {"timed", measured ? 1 : 0}});
    }
    values.push_back({{"ms", run.original.latency.median_ms},
                      {"points", 0.0},
                      {"kind", "original"},
                      {"name", "as it was read"},
                      {"latency", describe(run.original.latency)},
                      {"loss", "0"},
                      {"allowed", "allowed"},
                      {"macs", human_count(static_cast<double>(run.original.macs))},
                      {"parameters", human_count(static_cast<double>(run.original.parameters))},
                      {"timed", 1}});
    json x = field("ms", "quantitative", {{"title", "latency, ms"}, {"scale", {{"zero", false}, {"padding", 12}}}});
    json y = field("points", "quantitative", {{"title", "points of accuracy expected to be lost"}, {"scale", {{"reverse", true}, {"padding", 12}}}});
    json tips =
        tooltip({{"name", "network"}, {"latency", "latency"}, {"loss", "points lost"}, {"allowed", "guard"}, {"macs", "MACs"}, {"parameters", "parameters"}});
    std::vector<std::string> kinds{"original", "chosen", "extracted"};
    json shape{{"field", "kind"},
               {"type", "nominal"},
               {"scale", {{"domain", kinds}, {"range", {"square", "diamond", "circle"}}}},
               {"legend", {{"orient", "top"}, {"title", nullptr}}}};
    return chart("The networks that were extracted from the e-graph and timed: latency against the points of accuracy that each is expected to lose", values,
                 {{"height", 280},
                  {"mark", {{"type", "point"}, {"filled", true}, {"strokeWidth", 1.5}}},
                  {"encoding",
                   {{"x", x},
                    {"y", y},
                    {"shape", shape},
                    {"tooltip", tips},
                    {"color", colour_by("kind", kinds, {"var(--before)", "var(--after)", "var(--second)"})},
                    {"opacity", {{"condition", {{"test", "datum.timed == 1"}, {"value", 1}}}, {"value", 0.55}}},
                    {"size", {{"condition", {{"test", "datum.kind == 'chosen'"}, {"value", 260}}}, {"value", 80}}}}}});
}

json intervals_chart(const FinishedRun& run) {
    json values = json::array();
    std::vector<double> all{1.0};
    auto add = [&](const std::string& name, const GuardResult& g) {
        all.insert(all.end(), {g.low, g.high});
        values.push_back({{"step", name},
                          {"ratio", g.ratio},
                          {"low", g.low},
                          {"high", g.high},
                          {"verdict", g.allowed ? "admitted" : "rejected"},
                          {"about", fmt::format("{:.3f} ({})", g.ratio, interval(g.low, g.high))}});
    };
    add("whole network", run.guard);
    for (const NetworkChange& s : run.steps)
        if (s.guard) add(s.title(), *s.guard);
    all.insert(all.end(), run.guard.threshold.begin(), run.guard.threshold.end());
    auto [from, to] = bounds(all);
    json y = field("step", "nominal",
                   {{"sort", nullptr}, {"title", nullptr}, {"axis", {{"labelLimit", 220}, {"domain", false}, {"ticks", false}, {"labelPadding", 6}}}});
    json x = field(
        "ratio", "quantitative",
        {{"title", "score relative to the original"}, {"scale", {{"domain", {from, to}}, {"nice", false}}}, {"axis", {{"orient", "top"}, {"tickCount", 6}}}});
    json low = field("low", "quantitative", {{"scale", x["scale"]}});
    json tips = tooltip({{"step", "step"}, {"about", "score"}, {"verdict", "verdict"}});
    json colour = colour_by("verdict", {"admitted", "rejected"}, {"var(--after)", "var(--bad)"}, nullptr);
    return chart(
        "The guard's score of the whole network, and of each step by itself, with its interval; the band is what the guard allows", values,
        {{"height", rows(values.size(), 18)},
         {"layer", layers({limits_layer(run.guard.threshold, false),
                           one_line(false),
                           {{"mark", {{"type", "rule"}, {"strokeWidth", 3}, {"strokeCap", "round"}, {"aria", false}}},
                            {"encoding", {{"y", y}, {"x", low}, {"x2", {{"field", "high"}}}, {"color", colour}, {"tooltip", tips}}}},
                           {{"mark", {{"type", "point"}, {"filled", true}, {"size", 70}, {"opacity", 1}, {"stroke", "var(--card)"}, {"strokeWidth", 1}}},
                            {"encoding", {{"y", y}, {"x", x}, {"color", colour}, {"tooltip", tips}}}}})}});
}

json verdicts_chart(const FinishedRun& run) {
    std::vector<const Evidence*> sorted;
    for (const Evidence& e : run.evidence) sorted.push_back(&e);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Evidence* a, const Evidence* b) { return a->ratio < b->ratio; });
    json values = json::array();
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const Evidence& e = *sorted[i];
        values.push_back({{"rank", i + 1},
                          {"ratio", e.ratio},
                          {"low", e.low},
                          {"high", e.high},
                          {"verdict", e.allowed ? "admitted" : "rejected"},
                          {"site", e.site},
                          {"why", e.why},
                          {"about", fmt::format("{:.3f} ({})", e.ratio, interval(e.low, e.high))}});
    }
    json x = field("rank", "quantitative",
                   {{"title", "verdicts, lowest score first"}, {"scale", {{"nice", false}, {"zero", false}, {"padding", 6}}}, {"axis", {{"grid", false}}}});
    json y = field("ratio", "quantitative", {{"title", "score relative to the original"}, {"scale", {{"zero", false}}}});
    json tips = tooltip({{"site", "site"}, {"about", "score"}, {"verdict", "verdict"}, {"why", "why"}});
    json colour = colour_by("verdict", {"admitted", "rejected"}, {"var(--after)", "var(--bad)"});
    json shape{{"field", "verdict"}, {"type", "nominal"}, {"scale", {{"domain", {"admitted", "rejected"}}, {"range", {"circle", "triangle-down"}}}}};
    return chart(
        "Every verdict of the run from the lowest score to the highest; the band is what the guard allows", values,
        {{"height", 220},
         {"layer", layers({limits_layer(run.guard.threshold, true),
                           one_line(true),
                           {{"mark", {{"type", "rule"}, {"strokeWidth", 1}, {"opacity", 0.5}, {"aria", false}}},
                            {"encoding",
                             {{"x", x}, {"y", field("low", "quantitative", {{"scale", {{"zero", false}}}})}, {"y2", {{"field", "high"}}}, {"color", colour}}}},
                           {{"mark", {{"type", "point"}, {"filled", true}, {"size", 28}, {"opacity", 1}}},
                            {"encoding", {{"x", x}, {"y", y}, {"shape", shape}, {"color", colour}, {"tooltip", tips}}}}})}});
}

json stages_chart(const FinishedRun& run) {
    json values = json::array();
    for (const auto& [stage, seconds] : run.stages)
        values.push_back({{"stage", stage},
                          {"seconds", seconds},
                          {"text", human_seconds(seconds)},
                          {"share", run.total_seconds > 0 ? human_percent(seconds / run.total_seconds) : ""}});
    json y = field("stage", "nominal", {{"sort", nullptr}, {"title", nullptr}, {"axis", {{"domain", false}, {"ticks", false}, {"labelPadding", 6}}}});
    double longest = 0.001;
    for (const auto& [stage, seconds] : run.stages) longest = std::max(longest, seconds);
    json x = field("seconds", "quantitative", {{"axis", nullptr}, {"scale", {{"domainMax", longest * 1.3}}}});
    return chart("Seconds that each stage of the run took", values,
                 {{"height", rows(run.stages.size(), 24)},
                  {"layer",
                   {{{"mark", {{"type", "bar"}, {"height", 14}, {"cornerRadiusEnd", 2}, {"color", "var(--second)"}}},
                     {"encoding", {{"x", x}, {"y", y}, {"tooltip", tooltip({{"stage", "stage"}, {"text", "time"}, {"share", "share"}})}}}},
                    {{"mark", {{"type", "text"}, {"align", "left"}, {"dx", 6}, {"color", "var(--ink)"}, {"aria", false}}},
                     {"encoding", {{"x", x}, {"y", y}, {"text", field("text", "nominal")}}}}}}});
}

}  // namespace loopegg
