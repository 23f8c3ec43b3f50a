#include "report/words.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"

namespace loopegg {

std::string escape_html(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (char c : text) switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default: out += c;
        }
    return out;
}

std::string escape_csv(std::string_view text) {
    // A leading sign would make a spreadsheet run the cell as a formula; a number is none.
    std::string safe(text);
    const bool number = !safe.empty() && safe.find_first_not_of("+-.0123456789eE") == std::string::npos;
    if (!safe.empty() && !number && std::string_view("=@+-\t\r").find(safe[0]) != std::string_view::npos) safe.insert(safe.begin(), '\'');
    if (safe.find_first_of(",\"\n\r") == std::string::npos) return safe;
    std::string out = "\"";
    for (char c : safe) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

std::string human_ms(double ms) {
    if (!std::isfinite(ms)) return "unknown";
    if (ms >= 1000) return fmt::format("{:.2f} s", ms / 1000);
    if (ms >= 100) return fmt::format("{:.0f} ms", ms);
    if (ms >= 10) return fmt::format("{:.1f} ms", ms);
    if (ms >= 1 || ms == 0) return fmt::format("{:.2f} ms", ms);
    if (ms >= 0.1) return fmt::format("{:.0f} µs", ms * 1000);
    return fmt::format("{:.1f} µs", ms * 1000);
}

std::string human_count(double value) {
    for (auto [unit, name] : {std::pair{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}})
        if (std::abs(value) >= unit) {
            double scaled = value / (unit == 1e4 ? 1e3 : unit);
            return fmt::format("{:.{}f}{}", scaled, scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2, name);
        }
    return with_commas(std::llround(value));
}

std::string human_percent(double share) {
    double percent = share * 100;
    if (percent != 0 && std::abs(percent) < 1) return fmt::format("{:.1f}%", percent);
    return fmt::format("{:.0f}%", percent);
}

std::string times(double ratio) { return fmt::format("{:.2f}×", ratio); }

std::string human_change(double after, double before) {
    if (before <= 0 || after == before) return "the same";
    if (after < before) return human_percent(1 - after / before) + " fewer";
    return human_percent(after / before - 1) + " more";
}

std::string human_shape(const std::vector<std::int64_t>& shape) {
    std::vector<std::string> parts;
    for (std::int64_t extent : shape) parts.push_back(std::to_string(extent));
    return join(parts, "×");
}

std::string plural(std::int64_t count, std::string_view one, std::string_view many) {
    if (count == 1) return fmt::format("1 {}", one);
    return many.empty() ? fmt::format("{} {}s", with_commas(count), one) : fmt::format("{} {}", with_commas(count), many);
}

std::string describe(const Latency& l) {
    std::string out = human_ms(l.median_ms);
    if (!l.measured) return out + " (estimated)";
    out += fmt::format(" (quartiles {} apart, n = {})", human_ms(l.iqr_ms), l.n);
    return l.disturbed ? out + ", disturbed" : out;
}

}  // namespace loopegg
