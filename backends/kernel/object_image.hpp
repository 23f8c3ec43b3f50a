// An ELF object of this machine, linked and loaded in memory, so that no linker is started and no file is written for a candidate.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace loopegg {

class ObjectImage {
public:
    // Gives null, and says why, when the object needs something that only a real linker does. `resolve` gives the address of a symbol that the
    // object itself lacks, or null for an unknown symbol.
    static std::unique_ptr<ObjectImage> load(std::string_view object, std::string& why, const std::function<void*(const char* symbol)>& resolve);
    ~ObjectImage();
    ObjectImage(const ObjectImage&) = delete;
    ObjectImage& operator=(const ObjectImage&) = delete;

    void* find(const std::string& symbol) const;  // null if the object has no symbol of that name

private:
    ObjectImage() = default;
    struct Symbols;
    std::unique_ptr<Symbols> symbols_;
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace loopegg
