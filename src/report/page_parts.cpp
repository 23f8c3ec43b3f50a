#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/quote.hpp"
#include "base/text.hpp"
#include "report/page.hpp"
#include "report/page_parts.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace {

std::string card(const char* id, const char* question, const std::string& body) {
    return fmt::format("<article class=\"card\" id=\"{}\"><h2>{}</h2>{}</article>\n", id, question, body);
}

std::string faster(const FinishedRun& run) {
    std::string figure = run.gained() ? fmt::format("<p class=\"figure\">{} <small>{} to {}{}</small></p>", times(run.speedup), times(run.speedup_low),
                                                    times(run.speedup_high), run.optimized.latency.measured ? "" : ", estimated")
                                      : std::string("<p class=\"figure\">No gain <small>the original is returned</small></p>");
    const Latency& l = run.optimized.latency;
    std::string how = l.measured ? fmt::format("Medians of {} and {} runs; the dark lines are the middle half of them.", run.original.latency.n, l.n)
                                 : fmt::format("There is no {} here: both times are <strong>estimated</strong>.", escape_html(run.target));
    const auto throughput = [&](const Latency& of) { return 1000 * static_cast<double>(run.batch) / of.median_ms; };
    if (run.batch > 1 && l.median_ms > 0 && run.original.latency.median_ms > 0)
        how += fmt::format(" In batches of {}: {:.1f} inputs a second instead of {:.1f}.", run.batch, throughput(l), throughput(run.original.latency));
    return card("faster", "How much faster?", figure + "<div data-chart=\"latency\"><div class=\"plot\"></div></div><p>" + how + "</p>");
}

// What the returned network reached, where the search had networks trained; empty: it was not trained.
std::string how_it_trained(const FinishedRun& run) {
    const nlohmann::json training = run.result.value("training", nlohmann::json::object());
    if (training.empty() || training.at("returned").is_null()) return "";
    const nlohmann::json& returned = training.at("returned");
    return fmt::format(
        "<p>It was trained during the search: <strong>{:.2f}%</strong> (nine of ten training runs: {:.2f} to {:.2f}), {:.2f} points below the original's "
        "{:.2f}% by the same recipe. {:.2f} had been predicted. {} were made.</p>",
        returned.at("accuracy").get<double>(), returned.at("low").get<double>(), returned.at("high").get<double>(), returned.at("lost").get<double>(),
        training.at("original").at("accuracy").get<double>(), returned.at("predicted").at("points").get<double>(),
        plural(training.at("runs").get<std::int64_t>(), "training run"));
}

// What the guard of roundings measured; empty where all numbers are float32.
std::string how_it_rounds(const FinishedRun& run) {
    const nlohmann::json whole = run.result.value("optimized", nlohmann::json::object()).value("rounding", nlohmann::json());
    return whole.is_object() ? "<p>Precision: " + escape_html(whole.value("why", "")) + ".</p>" : "";
}

std::string what_it_says(const GuardResult& g) {
    if (g.name != "expected-loss" || !g.points) return "scores the whole network";  // other guards predict no accuracy
    return fmt::format("expects the network to lose {:.2f} points of accuracy after training ({:.2f} to {:.2f}), which is a capacity of", *g.points,
                       g.points_low, g.points_high);
}

std::string safe(const FinishedRun& run) {
    const GuardResult& g = run.guard;
    const std::string limits = g.threshold.size() == 2   ? fmt::format("; it must stay within {} to {}", g.threshold[0], g.threshold[1])
                               : g.threshold.size() == 1 ? fmt::format("; at least {:.2f} is required (the band)", g.threshold[0])
                                                         : "";
    std::string head, text;
    if (!run.gained()) {
        head = "<p class=\"figure\">Yes <small>nothing was changed</small></p>";
    } else {
        head = fmt::format("<p class=\"figure\">{} <small>capacity {:.3f} of the original</small></p>", g.allowed ? "Allowed" : "Not allowed", g.ratio);
        text = fmt::format("<p><strong>{}</strong> {} {:.3f} to {:.3f}{}{}. A score is not an accuracy: retrain before you ship.</p>", escape_html(g.name),
                           what_it_says(g), g.low, g.high, g.seeds ? " over " + plural(g.seeds, "seed") : "", limits) +
               how_it_trained(run);
    }
    text += how_it_rounds(run);
    return card("safe", "Is it safe?", head + "<div data-chart=\"capacity\"><div class=\"plot\"></div></div>" + text);
}

// What a name of optimize/named_sequences.hpp means to somebody who meets it here first.
const char* sequence_words(const std::string& name) {
    static const std::map<std::string, const char*> words{{"group", "channels in blocks that see only their own inputs"},
                                                          {"depthwise", "each channel by itself"},
                                                          {"bottleneck", "a part of the channels or of the kernel"},
                                                          {"spatial-bottleneck", "some rows and columns computed, the others copied"},
                                                          {"S1", "groups over a part of the image"},
                                                          {"spatial-group", "groups over a part of the image"},
                                                          {"part-group", "some channels dense, the others in groups"},
                                                          {"S2", "some channels dense, the others in groups"},
                                                          {"S3", "each half of the channels with its own groups"},
                                                          {"mixed-group", "parts of the channels with their own groups"},
                                                          {"pointwise", "fewer channels computed, expanded by a 1x1 convolution"},
                                                          {"narrower", "fewer channels read or written"},
                                                          {"dropped", "not computed, because its branch was dropped"},
                                                          {"unnamed", "a combination without a name: see the layer below"}};
    const auto it = words.find(name);
    return it == words.end() ? "" : it->second;
}

std::string changed(const FinishedRun& run) {
    std::map<std::string, int> counts;
    for (const SiteResult& s : run.sites)
        if (s.changed()) ++counts[s.sequence];
    std::vector<std::pair<std::string, int>> sorted(counts.begin(), counts.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second > b.second; });
    std::string kinds;
    for (std::size_t i = 0; i < sorted.size() && i < 6; ++i)
        kinds += fmt::format("<li><span class=\"chip\">{} <strong>× {}</strong></span> {}</li>", escape_html(sorted[i].first), sorted[i].second,
                             sequence_words(sorted[i].first));
    if (sorted.size() > 6) kinds += fmt::format("<li>and {} more kinds</li>", sorted.size() - 6);
    std::string body =
        fmt::format("<p class=\"figure\">{} <small>of {}</small></p>", run.changed_sites(), plural(static_cast<std::int64_t>(run.sites.size()), "site"));
    auto line = [](const char* what, std::int64_t after, std::int64_t before) {
        return fmt::format("{} <strong>{}</strong> ({} → {})", what, human_change(static_cast<double>(after), static_cast<double>(before)),
                           human_count(static_cast<double>(before)), human_count(static_cast<double>(after)));
    };
    body +=
        "<p>" + line("MACs:", run.optimized.macs, run.original.macs) + "; " + line("parameters:", run.optimized.parameters, run.original.parameters) + ".</p>";
    if (const auto& chosen = run.result.value("importance", nlohmann::json::object()); run.gained() && chosen.contains("kept"))
        body += fmt::format("<p>Where channels are fewer, {}; they hold {:.0f}% of what all of them score.</p>", escape_html(chosen.value("why", "")),
                            100 * chosen.at("kept").value("channels", 1.0));
    if (!kinds.empty()) body += "<ul class=\"kinds\" aria-label=\"sequences and how often each was chosen\">" + kinds + "</ul>";
    return card("changed", "What changed?", body);
}

std::string believe(const FinishedRun& run) {
    int estimated = 0, disturbed = 0;
    for (const SiteResult& s : run.sites) estimated += !s.latency.measured, disturbed += s.latency.disturbed || s.original_latency.disturbed;
    const auto& machine = run.result.value("machine", nlohmann::json::object());
    std::string where = machine.value("cpu", "");
    std::string body = fmt::format("<p class=\"figure\">{} <small>{}</small></p><ul>", run.optimized.latency.measured ? "Measured" : "Estimated",
                                   run.optimized.latency.measured ? "end to end" + (where.empty() ? "" : " on " + escape_html(where)) : "no such device here");
    if (!run.why.empty()) body += "<li>" + escape_html(run.why) + ".</li>";
    body += fmt::format("<li>The guard was queried {} about steps and networks; <strong>{}</strong> were refused.</li>", plural(run.configurations, "time"),
                        with_commas(run.rejected));
    body += estimated || disturbed
                ? fmt::format("<li>{} of {} site times are estimated, {} were taken while the machine was busy.</li>", estimated, run.sites.size(), disturbed)
                : std::string("<li>Every site's time is a median on the device itself.</li>");
    body += fmt::format("<li>Replay every step: <code>loopegg explain {} --check</code></li></ul>", escape_html(shell_word(run.folder.string())));
    return card("believe", "Why believe it?", body);
}

}  // namespace

std::string headline(const FinishedRun& run) {
    if (!run.gained()) return fmt::format("{} is unchanged on {}: nothing faster was found that the guard allows", run.model, run.target);
    const bool measured = run.optimized.latency.measured && run.original.latency.measured;
    return fmt::format("{} {} {} faster on {}: {} instead of {}", run.model, measured ? "runs" : "is estimated to run", times(run.speedup), run.target,
                       human_ms(run.optimized.latency.median_ms), human_ms(run.original.latency.median_ms));
}

std::string answers_part(const FinishedRun& run) {
    std::string title = escape_html(headline(run));
    for (std::string_view unit : {" ms", " µs", " s"})  // a figure and its unit stay on one line
        for (std::size_t at = 0; (at = title.find(unit, at)) != std::string::npos; at += unit.size())
            if (at > 0 && title[at - 1] >= '0' && title[at - 1] <= '9') title.replace(at, 1, "\u00a0");
    std::string figure = times(run.speedup) + " faster";
    if (std::size_t at = title.find(figure); at != std::string::npos) title.replace(at, figure.size(), "<span class=\"big\">" + figure + "</span>");
    std::string out = "<h1>" + title + "</h1>\n";
    const GuardResult& g = run.guard;
    out += "<p class=\"lead\">" +
           (run.gained() ? fmt::format("{} changed, {} MACs; the guard {} says the network {} its capacity.", plural(run.changed_sites(), "site"),
                                       human_change(static_cast<double>(run.optimized.macs), static_cast<double>(run.original.macs)), escape_html(g.name),
                                       g.allowed ? "keeps" : "does not keep")
                         : escape_html(run.why) + ".") +
           "</p>\n";
    return out + "<div class=\"answers\">\n" + faster(run) + safe(run) + changed(run) + believe(run) + "</div>\n";
}

namespace {

std::string steps_list(const SiteResult& s) {
    std::string out;
    if (!s.proof.empty()) {
        for (const StepTaken& step : s.proof)
            out += fmt::format("<li{}><strong>{}</strong> <code>{}</code>{}</li>", step.kind == "neural" ? " class=\"neural\"" : "", escape_html(step.words()),
                               escape_html(step.text()), step.kind == "neural" ? " <span class=\"chip good\">neural, judged by the guard</span>" : "");
    } else {
        for (const std::string& step : s.steps) out += "<li>" + escape_html(step) + "</li>";
    }
    return out.empty() ? "<p>No steps: this site is unchanged.</p>" : "<ol class=\"steps\">" + out + "</ol>";
}

std::string nest(const char* title, const std::string& pseudo, const std::string& term) {
    std::string out = fmt::format("<div><h3>{}</h3>", title);
    if (!pseudo.empty()) out += "<pre tabindex=\"0\"><code>" + escape_html(pseudo) + "</code></pre>";
    if (!term.empty()) out += "<details class=\"table\"><summary>as a term</summary><code class=\"term\">" + escape_html(term) + "</code></details>";
    return out + "</div>";
}

std::string inside(const SiteResult& s) {
    std::string out = "<div class=\"inside\"><h3>Steps</h3>" + steps_list(s);
    out +=
        fmt::format("<h3>Work</h3><p class=\"term\">{} → {} MACs, {} parameters, output {}; before {}, after {}</p>",
                    human_count(static_cast<double>(s.original_macs)), human_count(static_cast<double>(s.macs)), human_count(static_cast<double>(s.parameters)),
                    human_shape(s.shape), describe(s.original_latency), s.dropped() ? "not computed" : describe(s.latency));
    if (!s.precision.empty())
        out += fmt::format("<h3>Precision</h3><p>It multiplies {} numbers{}.</p>", escape_html(s.precision),
                           s.rounding_alone ? fmt::format("; rounded alone, it moves outputs by {:.2g} of the largest one", *s.rounding_alone) : "");
    if (s.error_bound)
        out += fmt::format("<h3>Rounding</h3><p>At most {:.2g} of the largest input times the sum of a channel's absolute weights{}.</p>", *s.error_bound,
                           s.error_measured ? fmt::format("; measured on adverse inputs: {:.2g}", *s.error_measured) : "");
    if (!s.pseudo_before.empty() || !s.nest_before.empty())
        out += "<h3>Loop nest</h3><div class=\"nests\">" + nest("before", s.pseudo_before, s.nest_before) + nest("after", s.pseudo_after, s.nest_after) +
               (s.pseudo_restoring.empty() ? "" : nest("then, for all channels", s.pseudo_restoring, s.nest_restoring)) + "</div>";
    return out + "</div>";
}

std::string site_row(const SiteResult& s, std::size_t index) {
    double gain = s.latency.median_ms > 0 ? s.original_latency.median_ms / s.latency.median_ms : 1;
    std::string text;
    for (char c : s.name + " " + s.op + " " + s.sequence + " " + join(s.steps, " ")) text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    std::string flags;
    if (!s.precision.empty() && s.precision != "float32") flags += " <span class=\"chip\">" + escape_html(s.precision) + "</span>";
    if (!s.latency.measured) flags += " <span class=\"chip warn\">estimated</span>";
    if (s.latency.disturbed || s.original_latency.disturbed) flags += " <span class=\"chip warn\">disturbed</span>";
    const std::string work = "<span class=\"phone\">MACs </span>" + human_change(static_cast<double>(s.macs), static_cast<double>(s.original_macs));
    const std::string after = s.dropped() ? "not computed" : human_ms(s.latency.median_ms), faster = s.dropped() ? "" : fmt::format("{:.2f}×", gain);
    return fmt::format(
        "<details class=\"site\" data-site=\"{}\" data-index=\"{}\" data-changed=\"{}\" data-gain=\"{}\" data-saved=\"{}\" data-time=\"{}\" data-before=\"{}\" "
        "data-after=\"{}\" data-text=\"{}\">"
        "<summary class=\"row\"><span class=\"mark\" aria-hidden=\"true\"></span><span class=\"name\">{}</span><span class=\"shape\">{} {}</span><span "
        "class=\"seq\"><span class=\"chip{}\">{}</span></span>"
        "<span class=\"time n\">{} → {}{}</span><span class=\"gain n\">{}</span><span class=\"work n\">{}</span></summary>{}</details>\n",
        escape_html(s.name), index, s.changed() ? "yes" : "no", gain, s.original_latency.median_ms - s.latency.median_ms, s.latency.median_ms,
        s.original_latency.median_ms, s.latency.median_ms, escape_html(text), escape_html(s.name), escape_html(s.op), human_shape(s.shape),
        s.changed() ? " good" : "", escape_html(s.sequence), human_ms(s.original_latency.median_ms), after, flags, faster, work, inside(s));
}

}  // namespace

std::string sites_part(const FinishedRun& run) {
    std::string out =
        "<div class=\"tools\"><label>Find <input id=\"find\" type=\"search\" placeholder=\"layer3, S3, group…\"></label>"
        "<label>Show <select id=\"which\"><option value=\"all\">all sites</option><option value=\"yes\">changed</option><option "
        "value=\"no\">unchanged</option></select></label>"
        "<label>Order <select id=\"order\"><option value=\"network\">as in the network</option><option value=\"saved\">most time saved</option><option "
        "value=\"gain\">largest speed-up</option><option value=\"time\">slowest after</option></select></label>"
        "<span class=\"count\" id=\"count\" role=\"status\"></span></div>\n"
        "<div class=\"sites\"><div class=\"row head\" aria-hidden=\"true\"><span></span><span>site</span><span>operator, "
        "output</span><span>sequence</span><span class=\"n\">latency</span><span class=\"n\">gain</span><span class=\"n\">MACs</span></div>"
        "<div id=\"site-list\">\n";
    for (std::size_t i = 0; i < run.sites.size(); ++i) out += site_row(run.sites[i], i);
    return out + "</div></div>\n";
}

}  // namespace loopegg
