#include <algorithm>
#include <numeric>

#include "base/text.hpp"

namespace loopegg {

std::optional<std::size_t> first_invalid_utf8(std::string_view s) {
    for (std::size_t i = 0; i < s.size();) {
        unsigned char c = static_cast<unsigned char>(s[i]);
        int more = c < 0x80 ? 0 : (c >= 0xC2 && c <= 0xDF) ? 1 : (c >= 0xE0 && c <= 0xEF) ? 2 : (c >= 0xF0 && c <= 0xF4) ? 3 : -1;
        if (more < 0 || i + static_cast<std::size_t>(more) >= s.size() + (more == 0)) return i;
        for (int k = 1; k <= more; ++k) {
            unsigned char d = static_cast<unsigned char>(s[i + static_cast<std::size_t>(k)]);
            // The second byte's range excludes overlong forms, surrogates and what is beyond U+10FFFF.
            unsigned char low = k == 1 && c == 0xE0 ? 0xA0 : k == 1 && c == 0xF0 ? 0x90 : 0x80;
            unsigned char high = k == 1 && c == 0xED ? 0x9F : k == 1 && c == 0xF4 ? 0x8F : 0xBF;
            if (d < low || d > high) return i;
        }
        i += static_cast<std::size_t>(more) + 1;
    }
    return std::nullopt;
}

namespace {

// Matches one '[...]' set at the front of pattern against c; returns the pattern's rest, or nothing if it does not match or is unfinished.
std::optional<std::string_view> match_set(std::string_view pattern, char c) {
    std::size_t i = 1;
    bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
    i += negated;
    bool found = false;
    for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
        char low = pattern[i++], high = low;
        if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') high = pattern[i + 1], i += 2;
        found |= low <= c && c <= high;
    }
    if (i >= pattern.size() || found == negated) return std::nullopt;
    return pattern.substr(i + 1);
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
    // Iterative with one point of return: linear in practice, never exponential.
    std::string_view star_pattern, star_name;
    bool star = false;
    while (true) {
        if (!pattern.empty() && pattern[0] == '*') {
            pattern.remove_prefix(1);
            star = true, star_pattern = pattern, star_name = name;
            continue;
        }
        if (name.empty() && pattern.empty()) return true;
        if (!name.empty() && !pattern.empty()) {
            if (pattern[0] == '[') {
                if (auto rest = match_set(pattern, name[0])) {
                    pattern = *rest, name.remove_prefix(1);
                    continue;
                }
            } else if (pattern[0] == '?' || pattern[0] == name[0]) {
                pattern.remove_prefix(1), name.remove_prefix(1);
                continue;
            }
        }
        if (!star || star_name.empty()) return false;
        star_name.remove_prefix(1);
        pattern = star_pattern, name = star_name;
    }
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> out;
    for (std::size_t start = 0;;) {
        std::size_t end = text.find(separator, start);
        out.emplace_back(text.substr(start, end - start));
        if (end == std::string_view::npos) return out;
        start = end + 1;
    }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i) out += separator;
        out += parts[i];
    }
    return out;
}

std::string with_commas(long long value) {
    std::string digits = std::to_string(value < 0 ? -value : value);
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<std::size_t>(i), ",");
    return (value < 0 ? "-" : "") + digits;
}

namespace {

// Edit distance with swaps of neighbours (optimal string alignment): typing mistakes are often those.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    std::iota(last.begin(), last.end(), 0);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

template <class Names>
std::string nearest(std::string_view typed, const Names& known) {
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(1, typed.size() / 3) + 1;
    if (typed.size() > 80) return "";
    for (const auto& name : known)
        if (std::size_t d = distance(typed, name); d < best_distance) best = name, best_distance = d;
    return best.empty() ? "" : "did you mean '" + std::string(best) + "'?";
}

}  // namespace

std::string did_you_mean(std::string_view typed, std::span<const std::string> known) { return nearest(typed, known); }
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known) { return nearest(typed, known); }

}  // namespace loopegg
