#include "backends/kernel/relocate.hpp"

#include <elf.h>

#include <cstring>
#include <string>

#include "backends/kernel/elf_object.hpp"

namespace loopegg {
namespace {

template <class T>
void write_at(char* place, T value) {
    std::memcpy(place, &value, sizeof value);
}
template <class T>
T read_at(const char* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}
template <class T>
void write_signed(char* place, std::int64_t value) {
    if (value != static_cast<T>(value)) throw Unlinkable{"a relocation that does not reach"};
    write_at(place, static_cast<T>(value));
}

// Where bytes are now, and where they will be.
struct Place {
    char* bytes;
    std::int64_t at;
};

void relocate_x86_64(std::uint32_t type, Place p, std::int64_t addend, const SymbolAddresses& symbol) {
    switch (type) {
        case R_X86_64_NONE: return;
        case R_X86_64_64: return write_at(p.bytes, symbol.target + addend);
        case R_X86_64_PC64: return write_at(p.bytes, symbol.target + addend - p.at);
        case R_X86_64_PC32:
            if (symbol.far) throw Unlinkable{"data of another library"};
            return write_signed<std::int32_t>(p.bytes, symbol.target + addend - p.at);
        case R_X86_64_PLT32: return write_signed<std::int32_t>(p.bytes, (symbol.far ? symbol.stub : symbol.target) + addend - p.at);
        case R_X86_64_32S: return write_signed<std::int32_t>(p.bytes, symbol.target + addend);
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX:
        case R_X86_64_TLSGD:
        case R_X86_64_TLSLD: return write_signed<std::int32_t>(p.bytes, symbol.entry + addend - p.at);
        case R_X86_64_DTPOFF32: return write_signed<std::int32_t>(p.bytes, symbol.target + addend);
        default: throw Unlinkable{"relocation " + std::to_string(type)};
    }
}

void insert(char* place, std::uint32_t mask, unsigned shift, std::int64_t value) {
    const auto word = read_at<std::uint32_t>(place);
    write_at(place, (word & ~(mask << shift)) | (static_cast<std::uint32_t>(value) & mask) << shift);
}
void insert_page(Place p, std::int64_t to) {
    const std::int64_t pages = (to >> 12) - (p.at >> 12);
    if (pages >= 1 << 20 || pages < -(1 << 20)) throw Unlinkable{"a page that does not reach"};
    insert(p.bytes, 3, 29, pages);
    insert(p.bytes, 0x7ffff, 5, pages >> 2);
}

void relocate_aarch64(std::uint32_t type, Place p, std::int64_t addend, const SymbolAddresses& symbol) {
    const std::int64_t to = symbol.target + addend;
    switch (type) {
        case R_AARCH64_NONE:
        case R_AARCH64_TLSDESC_CALL: return;
        case R_AARCH64_ABS64: return write_at(p.bytes, to);
        case R_AARCH64_PREL64: return write_at(p.bytes, to - p.at);
        case R_AARCH64_PREL32: return write_signed<std::int32_t>(p.bytes, to - p.at);
        case R_AARCH64_ADR_PREL_PG_HI21: return insert_page(p, to);
        case R_AARCH64_TLSDESC_ADR_PAGE21:
        case R_AARCH64_ADR_GOT_PAGE: return insert_page(p, symbol.entry);
        case R_AARCH64_TLSDESC_LD64_LO12:
        case R_AARCH64_LD64_GOT_LO12_NC: return insert(p.bytes, 0xfff, 10, (symbol.entry & 0xfff) >> 3);
        case R_AARCH64_TLSDESC_ADD_LO12: return insert(p.bytes, 0xfff, 10, symbol.entry & 0xfff);
        case R_AARCH64_ADD_ABS_LO12_NC:
        case R_AARCH64_LDST8_ABS_LO12_NC: return insert(p.bytes, 0xfff, 10, to & 0xfff);
        case R_AARCH64_LDST16_ABS_LO12_NC: return insert(p.bytes, 0xfff, 10, (to & 0xfff) >> 1);
        case R_AARCH64_LDST32_ABS_LO12_NC: return insert(p.bytes, 0xfff, 10, (to & 0xfff) >> 2);
        case R_AARCH64_LDST64_ABS_LO12_NC: return insert(p.bytes, 0xfff, 10, (to & 0xfff) >> 3);
        case R_AARCH64_LDST128_ABS_LO12_NC: return insert(p.bytes, 0xfff, 10, (to & 0xfff) >> 4);
        case R_AARCH64_JUMP26:
        case R_AARCH64_CALL26: {
            const std::int64_t words = ((symbol.far ? symbol.stub : to) - p.at) >> 2;
            if (words >= 1 << 25 || words < -(1 << 25)) throw Unlinkable{"a call that does not reach"};
            return insert(p.bytes, 0x3ffffff, 0, words);
        }
        default: throw Unlinkable{"relocation " + std::to_string(type)};
    }
}

}  // namespace

void relocate(std::uint16_t machine, std::uint32_t type, char* place, std::int64_t at, std::int64_t addend, const SymbolAddresses& symbol) {
    if (machine == EM_X86_64) return relocate_x86_64(type, {place, at}, addend, symbol);
    if (machine == EM_AARCH64) return relocate_aarch64(type, {place, at}, addend, symbol);
    throw Unlinkable{"code of machine " + std::to_string(machine)};
}

void write_stub(std::uint16_t machine, char* stub, std::int64_t at, std::int64_t entry) {
    if (machine == EM_X86_64) {  // jmp *entry(%rip)
        stub[0] = '\xff', stub[1] = '\x25';
        return write_signed<std::int32_t>(stub + 2, entry - (at + 6));
    }
    // adrp x16, entry; ldr x17, [x16, entry]; br x17
    write_at(stub, 0x90000010u);
    insert_page({stub, at}, entry);
    write_at(stub + 4, 0xf9400211u);
    insert(stub + 4, 0xfff, 10, (entry & 0xfff) >> 3);
    write_at(stub + 8, 0xd61f0220u);
}

}  // namespace loopegg
