// An ELF object of this machine, linked and loaded in memory, so that no linker is started and no file is written for a candidate.
//
// LLVM's ORC JIT (apache-tvm-ffi-orcjit 0.1.3) does this in 0.12 to 0.18 ms of processor time for a kernel, but cannot be part of a board's static worker, and
// network.so needs the same relocations for other processors (experiments/first-use.md).
#pragma once
#include <cstddef>
#include <cstdint>
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

// Writes addresses into machine code, as ELF objects of x86_64 and aarch64 ask for them.

// The addresses of a symbol, of its table entry, and of a stub that jumps to it, all without an addend.
struct SymbolAddresses {
    std::int64_t target = 0, entry = 0, stub = 0;
    bool far = false;  // the symbol is in another library
};

// A far call goes through a stub that jumps to the address in its table entry.
constexpr std::size_t stub_bytes = 16, entry_bytes = 8;
constexpr std::size_t relocated_bytes = 8;  // no relocation writes beyond so many bytes

// `place` is where the bytes are now, and `at` is their address when they run. Throws Unlinkable.
void relocate(std::uint16_t machine, std::uint32_t type, char* place, std::int64_t at, std::int64_t addend, const SymbolAddresses& symbol);
void write_stub(std::uint16_t machine, char* stub, std::int64_t at, std::int64_t entry);

}  // namespace loopegg
