#include "base/suggest.hpp"

#include <algorithm>
#include <numeric>

namespace loopegg {
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
