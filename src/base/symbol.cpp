#include "base/symbol.hpp"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace loopegg {
namespace {

// Strings live in a deque so that references handed out by text() stay valid while others intern.
struct Table {
    std::shared_mutex mutex;
    std::deque<std::string> names{""};
    std::unordered_map<std::string_view, std::uint32_t> ids{{names.front(), 0}};
};

Table& table() {
    static Table* t = new Table;  // outlives every static that holds a Symbol
    return *t;
}

}  // namespace

Symbol::Symbol(std::string_view text) {
    Table& t = table();
    {
        std::shared_lock lock(t.mutex);
        if (auto it = t.ids.find(text); it != t.ids.end()) {
            id_ = it->second;
            return;
        }
    }
    std::unique_lock lock(t.mutex);
    if (auto it = t.ids.find(text); it != t.ids.end()) {
        id_ = it->second;
        return;
    }
    id_ = static_cast<std::uint32_t>(t.names.size());
    t.names.emplace_back(text);
    t.ids.emplace(t.names.back(), id_);
}

const std::string& Symbol::text() const {
    Table& t = table();
    std::shared_lock lock(t.mutex);
    return t.names[id_];
}

}  // namespace loopegg
