#include "backends/kernel/object_image.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backends/kernel/elf_object.hpp"

namespace loopegg {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64;
#else
constexpr Elf64_Half own_machine = EM_NONE;
#endif

}  // namespace

struct ObjectImage::Symbols {
    std::map<std::string, char*> defined;
};

std::unique_ptr<ObjectImage> ObjectImage::load(std::string_view bytes, std::string& why, const std::function<void*(const char* symbol)>& resolve) try {
    const ElfObject o(bytes);
    if (o.machine() != own_machine) throw Unlinkable{"not an object of this machine"};
    // Code comes first. From the next page on comes what may be written: data, then the table entries. Stubs are with the code.
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::vector<std::uint64_t> at(o.sections().size(), 0);
    std::uint64_t end = 0;
    auto lay_out = [&](bool code) {
        for (std::size_t i = 0; i < o.sections().size(); ++i) {
            const Elf64_Shdr& s = o.sections()[i];
            if (!ElfObject::loaded(s) || static_cast<bool>(s.sh_flags & SHF_EXECINSTR) != code) continue;
            if (s.sh_flags & SHF_TLS) throw Unlinkable{"thread-local data"};
            at[i] = end = aligned(end, s.sh_addralign);
            end += s.sh_size;
        }
    };
    lay_out(true);
    const std::uint64_t stubs = end = aligned(end, 16);
    const std::uint64_t code_end = end = aligned(end + o.symbols().size() * stub_bytes, page);
    lay_out(false);
    const std::uint64_t entries = end = aligned(end, 16);
    end += o.symbols().size() * entry_bytes;
    std::vector<std::uint64_t> common(o.symbols().size(), 0);
    for (std::size_t i = 0; i < o.symbols().size(); ++i)
        if (o.symbols()[i].st_shndx == SHN_COMMON) common[i] = end = aligned(end, o.symbols()[i].st_value), end += o.symbols()[i].st_size;

    std::unique_ptr<ObjectImage> image(new ObjectImage);
    image->symbols_ = std::make_unique<Symbols>();
    image->bytes_ = aligned(end, page);
    void* memory = mmap(nullptr, image->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Unlinkable{"no memory"};
    image->memory_ = memory;
    char* base = static_cast<char*>(memory);
    for (std::size_t i = 0; i < o.sections().size(); ++i)
        if (const Elf64_Shdr& s = o.sections()[i]; ElfObject::loaded(s) && s.sh_type != SHT_NOBITS && s.sh_size)
            std::memcpy(base + at[i], o.content(s).data(), s.sh_size);

    const auto address_of = [base](std::uint64_t offset) { return reinterpret_cast<std::int64_t>(base + offset); };
    std::vector<std::int64_t> address(o.symbols().size(), 0);
    std::vector<char> far(o.symbols().size(), 0);
    for (std::size_t i = 1; i < o.symbols().size(); ++i) {
        const Elf64_Sym& s = o.symbols()[i];
        char* where = nullptr;
        if (s.st_shndx == SHN_UNDEF) {
            where = static_cast<char*>(resolve(o.name(s).c_str()));
            far[i] = 1;
            if (!where && ELF64_ST_BIND(s.st_info) != STB_WEAK) throw Unlinkable{"'" + o.name(s) + "' is nowhere"};
        } else if (s.st_shndx == SHN_COMMON) {
            where = base + common[i];
        } else if (s.st_shndx == SHN_ABS) {
            where = reinterpret_cast<char*>(s.st_value);
        } else {
            if (s.st_shndx >= o.sections().size()) throw Unlinkable{"a symbol of no section"};
            if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC) throw Unlinkable{"an indirect function"};
            where = base + at[s.st_shndx] + s.st_value;
        }
        address[i] = reinterpret_cast<std::int64_t>(where);
        std::memcpy(base + entries + i * entry_bytes, &address[i], entry_bytes);
        write_stub(own_machine, base + stubs + i * stub_bytes, address_of(stubs + i * stub_bytes), address_of(entries + i * entry_bytes));
        if (s.st_shndx != SHN_UNDEF && ELF64_ST_BIND(s.st_info) != STB_LOCAL) image->symbols_->defined[o.name(s)] = where;
    }
    for (const ElfObject::Relocations& of : o.relocations())
        for (const Elf64_Rela& r : of.all) {
            const std::uint64_t symbol = ELF64_R_SYM(r.r_info), place = at[of.section] + r.r_offset;
            if (place + relocated_bytes > image->bytes_) throw Unlinkable{"a relocation outside its section"};
            relocate(own_machine, static_cast<std::uint32_t>(ELF64_R_TYPE(r.r_info)), base + place, address_of(place), r.r_addend,
                     {address[symbol], address_of(entries + symbol * entry_bytes), address_of(stubs + symbol * stub_bytes), far[symbol] != 0});
        }
    if (code_end && mprotect(base, code_end, PROT_READ | PROT_EXEC) != 0) throw Unlinkable{"memory that may not be run"};
    __builtin___clear_cache(base, base + code_end);
    return image;
} catch (const Unlinkable& u) {
    why = u.why;
    return nullptr;
}

ObjectImage::~ObjectImage() {
    if (memory_) munmap(memory_, bytes_);
}

void* ObjectImage::find(const std::string& symbol) const {
    auto found = symbols_->defined.find(symbol);
    return found == symbols_->defined.end() ? nullptr : found->second;
}

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
