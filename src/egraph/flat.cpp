#include "egraph/flat.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

// Blocks grow through three kinds of memory. Small ones are the heap's. Middle ones are powers of two, cut from shared pieces of
// address space that are asked for in large pages, and are used again when an array has outgrown them: a growing e-graph of ten
// thousand nodes would otherwise spend a quarter of its time in the system, asking for pages. Large ones are mapped, and grow by
// moving their pages.
namespace loopegg {
namespace {

constexpr std::size_t huge_page = std::size_t{1} << 21;
constexpr unsigned middle_bits = 16, large_bits = 21;  // of the smallest middle and the smallest large block
constexpr std::size_t middle_block = std::size_t{1} << middle_bits, large_block = std::size_t{1} << large_bits;
constexpr std::size_t piece_bytes = 2 * huge_page;

enum class Kind { heap, middle, large };

Kind kind_of(std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
    if (bytes < large_block) return Kind::heap;  // watched byte by byte
#endif
    return bytes < middle_block ? Kind::heap : bytes < large_block ? Kind::middle : Kind::large;
}

// Address space that begins at a large page.
void* map_aligned(std::size_t bytes) {
    char* at = static_cast<char*>(mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (at == MAP_FAILED) throw std::bad_alloc();
    const std::size_t skip = (huge_page - reinterpret_cast<std::size_t>(at) % huge_page) % huge_page;
    if (skip) munmap(at, skip);
    munmap(at + skip + bytes, huge_page - skip);
    madvise(at + skip, bytes, MADV_HUGEPAGE);  // advice: a refusal costs speed only
    return at + skip;
}

// The middle blocks of all e-graphs of the process.
class MiddleBlocks {
public:
    void* take(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        return take_class(class_of(bytes));
    }
    void give(void* block, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        free_[class_of(bytes)].push_back(block);
    }
    static unsigned class_of(std::size_t bytes) { return static_cast<unsigned>(std::bit_width(bytes - 1)) - middle_bits; }

private:
    static constexpr unsigned classes = large_bits - middle_bits + 1;

    void* take_class(unsigned k) {
        if (free_[k].empty()) {
            if (k + 1 == classes) {
                char* piece = static_cast<char*>(map_aligned(piece_bytes));
                for (std::size_t at = piece_bytes; at > 0; at -= large_block) free_[k].push_back(piece + at - large_block);
            } else {  // halve a larger one
                char* whole = static_cast<char*>(take_class(k + 1));
                free_[k].push_back(whole + (middle_block << k));
                return whole;
            }
        }
        void* block = free_[k].back();
        free_[k].pop_back();
        return block;
    }

    std::mutex mutex_;
    std::array<std::vector<void*>, classes> free_;
};

MiddleBlocks& middle() {
    static MiddleBlocks* blocks = new MiddleBlocks;  // outlives every e-graph
    return *blocks;
}

std::size_t mapped(std::size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

void* allocate(std::size_t bytes) {
    switch (kind_of(bytes)) {
        case Kind::heap:
            if (void* block = std::malloc(bytes)) return block;
            throw std::bad_alloc();
        case Kind::middle: return middle().take(bytes);
        case Kind::large: return map_aligned(mapped(bytes));
    }
    return nullptr;
}

}  // namespace

void* flat_resize(void* old, std::size_t old_bytes, std::size_t new_bytes) {
    const Kind before = kind_of(old_bytes), after = kind_of(new_bytes);
    if (before == after && old) {
        if (before == Kind::heap) {
            if (void* block = std::realloc(old, new_bytes)) return block;
            throw std::bad_alloc();
        }
        if (before == Kind::middle && MiddleBlocks::class_of(old_bytes) == MiddleBlocks::class_of(new_bytes)) return old;
        if (before == Kind::large) {
            const std::size_t from = mapped(old_bytes), to = mapped(new_bytes);
            if (from == to) return old;
            if (to < from) {
                munmap(static_cast<char*>(old) + to, from - to);
                return old;
            }
            void* place = map_aligned(to);  // whole large pages move to where large pages may be
            if (mremap(old, from, to, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) throw std::bad_alloc();
            madvise(place, to, MADV_HUGEPAGE);
            return place;
        }
    }
    void* block = allocate(new_bytes);
    if (old) {
        std::memcpy(block, old, std::min(old_bytes, new_bytes));
        flat_free(old, old_bytes);
    }
    return block;
}

void flat_free(void* block, std::size_t bytes) {
    if (!block) return;
    switch (kind_of(bytes)) {
        case Kind::heap: std::free(block); break;
        case Kind::middle: middle().give(block, bytes); break;
        case Kind::large: munmap(block, mapped(bytes)); break;
    }
}

}  // namespace loopegg
