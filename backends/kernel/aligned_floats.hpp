// Memory for kernels' buffers, aligned as kernels need it, and between zones that show when a kernel writes beyond its own buffer.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace loopegg {

// Floats that start at a multiple of 64 bytes, as kernels need them, with room for a vector beyond the end.
class AlignedFloats {
public:
    explicit AlignedFloats(std::size_t count = 0, float value = 0);
    explicit AlignedFloats(std::span<const float> values);
    float* data() { return values_.get(); }
    std::span<float> span() { return {values_.get(), count_}; }
    std::size_t size() const { return count_; }

private:
    struct Free {
        void operator()(float* p) const;
    };
    std::unique_ptr<float[], Free> values_;
    std::size_t count_ = 0;
};

// A buffer between two guard zones, so that a kernel that writes beyond it is caught.
class GuardedBuffer {
public:
    explicit GuardedBuffer(std::span<const float> values);
    float* data();
    std::span<float> span() { return {data(), count_}; }
    bool intact();

private:
    AlignedFloats all_;
    std::size_t count_;
};

}  // namespace loopegg
