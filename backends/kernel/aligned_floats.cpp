#include "backends/kernel/aligned_floats.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace loopegg {
namespace {

constexpr std::size_t guard = 64;  // floats before and after every buffer
constexpr float guard_value = -7.62939453125e-06f;

}  // namespace

AlignedFloats::AlignedFloats(std::size_t count, float value) : count_(count) {
    constexpr std::size_t page = std::size_t{2} << 20;  // large buffers get large pages, as in a compiled network
    const std::size_t align = count * sizeof(float) < page ? 64 : page, bytes = (count * sizeof(float) + 64 + align - 1) / align * align;
    values_.reset(static_cast<float*>(std::aligned_alloc(align, bytes)));
    if (!values_) throw std::bad_alloc();
    if (align == page) madvise(values_.get(), bytes, MADV_HUGEPAGE);
    std::fill_n(values_.get(), count, value);
}
AlignedFloats::AlignedFloats(std::span<const float> values) : AlignedFloats(values.size()) {
    if (!values.empty()) std::memcpy(values_.get(), values.data(), values.size_bytes());
}
void AlignedFloats::Free::operator()(float* p) const { std::free(p); }

GuardedBuffer::GuardedBuffer(std::span<const float> values) : all_(values.size() + 2 * guard, guard_value), count_(values.size()) {
    std::copy(values.begin(), values.end(), data());
}
float* GuardedBuffer::data() { return all_.data() + guard; }
bool GuardedBuffer::intact() {
    const auto s = all_.span();
    for (std::size_t i = 0; i < guard; ++i)
        if (s[i] != guard_value || s[guard + count_ + i] != guard_value) return false;
    return true;
}

}  // namespace loopegg
