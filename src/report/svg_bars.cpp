#include "report/svg_bars.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "report/words.hpp"

namespace loopegg {
namespace {

// Told apart by lightness too, so that they survive a grey print and most colour blindness.
const char* const colours[] = {"#0b7a6f", "#e0a040", "#3566b8", "#b3261e", "#7d8794", "#6a3d9a"};
constexpr int width = 860, left = 290, right = 130, row = 24, top = 62;

const char* colour(std::size_t i) { return colours[i % std::size(colours)]; }

}  // namespace

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

}  // namespace loopegg
