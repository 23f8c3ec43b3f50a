// Writes addresses into machine code, as ELF objects of x86_64 and aarch64 ask for them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace loopegg {

// The addresses of a symbol, of its table entry, and of a stub that jumps to it, all without an addend.
struct SymbolAddresses {
    std::int64_t target = 0, entry = 0, stub = 0;
    bool far = false;  // the symbol lies in another library
};

// A far call goes through a stub that jumps to the address in its table entry.
constexpr std::size_t stub_bytes = 16, entry_bytes = 8;
constexpr std::size_t relocated_bytes = 8;  // no relocation writes beyond so many bytes

// `place` is where the bytes are now, and `at` is their address when they run. Throws Unlinkable.
void relocate(std::uint16_t machine, std::uint32_t type, char* place, std::int64_t at, std::int64_t addend, const SymbolAddresses& symbol);
void write_stub(std::uint16_t machine, char* stub, std::int64_t at, std::int64_t entry);

}  // namespace loopegg
