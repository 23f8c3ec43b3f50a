#include "egraph/flat.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace loopegg {
namespace {

constexpr std::size_t page_block = std::size_t{1} << 17;   // blocks from here on are mapped
constexpr std::size_t huge_block = std::size_t{1} << 22;   // and from here on in large pages

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23   // Linux 5.14; the C library's headers may be older
#endif

}  // namespace

void* flat_resize(void* old, std::size_t old_bytes, std::size_t new_bytes) {
    if (new_bytes < page_block && old_bytes < page_block) {
        void* block = std::realloc(old, new_bytes);
        if (!block) throw std::bad_alloc();
        return block;
    }
    const std::size_t kept = old_bytes >= page_block ? old_bytes / 4096 * 4096 : 0;
    void* block = old_bytes >= page_block
        ? mremap(old, old_bytes, new_bytes, MREMAP_MAYMOVE)
        : mmap(nullptr, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    // Advice only: a refusal costs speed. Below large pages, the new ones are asked for all at once; a fault for each would cost a third of a short run.
    if (new_bytes >= huge_block) madvise(block, new_bytes, MADV_HUGEPAGE);
    else madvise(static_cast<char*>(block) + kept, new_bytes - kept, MADV_POPULATE_WRITE);
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
