#include <fmt/format.h>

#include "base/text.hpp"
#include "report/page_parts.hpp"
#include "report/words.hpp"

namespace loopegg {
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
    return out.empty() ? "<p>No step: this site runs as it was written.</p>" : "<ol class=\"steps\">" + out + "</ol>";
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
