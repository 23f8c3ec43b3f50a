#include "backends/kernel/object_image.hpp"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/relocate.hpp"

namespace loopegg {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64;
#else
constexpr Elf64_Half own_machine = EM_NONE;
#endif

std::uint64_t aligned(std::uint64_t n, std::uint64_t to) { return to > 1 ? (n + to - 1) / to * to : n; }

}  // namespace

struct ObjectImage::Symbols {
    std::map<std::string, char*> defined;
};

std::unique_ptr<ObjectImage> ObjectImage::load(std::string_view bytes, std::string& why, const std::function<void*(const char* symbol)>& resolve) try {
    const ElfObject o(bytes);
    if (o.machine() != own_machine) throw Unlinkable{"not an object of this machine"};
    // Code comes first. From the next page on comes what may be written: data, then the table entries. Stubs stand with the code.
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

}  // namespace loopegg
