#include "egraph/flat.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace loopegg {
namespace {

constexpr std::size_t page_block = std::size_t{1} << 20;   // blocks from here on are mapped

}  // namespace

void* flat_resize(void* old, std::size_t old_bytes, std::size_t new_bytes) {
    if (new_bytes < page_block && old_bytes < page_block) {
        void* block = std::realloc(old, new_bytes);
        if (!block) throw std::bad_alloc();
        return block;
    }
    void* block = old_bytes >= page_block
        ? mremap(old, old_bytes, new_bytes, MREMAP_MAYMOVE)
        : mmap(nullptr, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    if (new_bytes >= 4 * page_block) madvise(block, new_bytes, MADV_HUGEPAGE);   // advice only: a refusal costs speed
    if (old && old_bytes < page_block) {
        std::memcpy(block, old, old_bytes);
        std::free(old);
    }
    return block;
}

void flat_free(void* block, std::size_t bytes) {
    if (bytes >= page_block) munmap(block, bytes);
    else std::free(block);
}

}  // namespace loopegg
