// Reorders variants so that those that leave much work and those that leave little take turns. A stage that looks at only the first ones sees both.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace loopegg {

// How often the work was halved, rounded down.
inline int halvings(std::int64_t whole, std::int64_t left) { return static_cast<int>(std::log2(static_cast<double>(whole) / static_cast<double>(left))); }

// Puts the first item of every key first, then the second of every key, and so on. Within these, items keep their order.
template <class T, class Key>
void take_turns(std::vector<T>& items, Key key) {
    std::map<std::decay_t<decltype(key(items.front()))>, int> seen;
    std::vector<std::pair<int, T>> turns;
    for (T& item : items) {
        const int turn = seen[key(item)]++;
        turns.emplace_back(turn, std::move(item));
    }
    std::stable_sort(turns.begin(), turns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = std::move(turns[i].second);
}

}  // namespace loopegg
