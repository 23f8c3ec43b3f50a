// A growable array of plain values that grows by remapping pages: no copy, no moment with both the old and the new one in memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

namespace loopegg {

// Memory behind Flat: pages from the system for large blocks (huge pages where it grants them), the heap for small ones.
void* flat_resize(void* old, std::size_t old_bytes, std::size_t new_bytes);
void flat_free(void* block, std::size_t bytes);

template <class T>
class Flat {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    Flat() = default;
    Flat(const Flat& other) { append(other.span()); }
    Flat(Flat&& other) noexcept { swap(other); }
    Flat& operator=(Flat other) noexcept {
        swap(other);
        return *this;
    }
    ~Flat() { flat_free(data_, capacity_ * sizeof(T)); }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    std::size_t bytes() const { return size_ * sizeof(T); }  // what is in use; pages never touched cost nothing
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    T& back() { return data_[size_ - 1]; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    std::span<const T> span() const { return {data_, size_}; }

    void push_back(T value) {
        if (size_ == capacity_) grow(size_ + 1);
        data_[size_++] = value;
    }
    void append(std::span<const T> values) {
        if (size_ + values.size() > capacity_) grow(size_ + values.size());
        if (!values.empty()) std::memcpy(data_ + size_, values.data(), values.size() * sizeof(T));
        size_ += values.size();
    }
    // Room for n more values, to be filled by the caller.
    T* extend(std::size_t n) {
        if (size_ + n > capacity_) grow(size_ + n);
        T* at = data_ + size_;
        size_ += n;
        return at;
    }
    void resize(std::size_t n, T value) {
        if (n > capacity_) grow(n);
        for (std::size_t i = size_; i < n; ++i) data_[i] = value;
        size_ = n;
    }
    void reserve(std::size_t n) {
        if (n > capacity_) grow(n);
    }  // no move until there are more than n
    void truncate(std::size_t n) {
        if (n < size_) size_ = n;
    }
    void clear() { size_ = 0; }
    void release() { Flat().swap(*this); }
    void swap(Flat& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

private:
    void grow(std::size_t need) {
        std::size_t wanted = capacity_ * 2 < 16 ? 16 : capacity_ * 2;
        if (wanted < need) wanted = need;
        data_ = static_cast<T*>(flat_resize(data_, capacity_ * sizeof(T), wanted * sizeof(T)));
        capacity_ = wanted;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace loopegg
