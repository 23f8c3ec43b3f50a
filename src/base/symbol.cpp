#include "base/symbol.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace loopegg {
namespace {

// Names by id, in blocks that double in size and never move. So text() needs no lock and gives references that stay valid while others intern: whoever has
// an id got it from the thread that wrote the name, or from one that had it from there.
class Names {
public:
    const std::string& at(std::uint32_t id) const { return blocks_[block_of(id)].load(std::memory_order_acquire)[offset_of(id)]; }

    // By one thread at a time.
    const std::string& set(std::uint32_t id, std::string_view text) {
        std::atomic<std::string*>& block = blocks_[block_of(id)];
        if (!block.load(std::memory_order_relaxed)) block.store(new std::string[first << block_of(id)], std::memory_order_release);
        return block.load(std::memory_order_relaxed)[offset_of(id)] = text;
    }

private:
    static constexpr std::uint64_t first = 1024;
    static std::size_t block_of(std::uint32_t id) { return static_cast<std::size_t>(std::bit_width(id / first + 1) - 1); }
    static std::uint64_t offset_of(std::uint32_t id) { return id - first * ((std::uint64_t{1} << block_of(id)) - 1); }

    std::array<std::atomic<std::string*>, 24> blocks_{};
};

struct Table {
    Table() { ids.emplace(names.set(0, ""), 0); }
    std::shared_mutex mutex;  // of ids, and of writing names
    Names names;
    std::unordered_map<std::string_view, std::uint32_t> ids;
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
    id_ = static_cast<std::uint32_t>(t.ids.size());
    t.ids.emplace(t.names.set(id_, text), id_);
}

const std::string& Symbol::text() const { return table().names.at(id_); }

}  // namespace loopegg
