#include "backends/kernel/link_plan.hpp"

#include <elf.h>

namespace loopegg {
namespace {

constexpr std::uint64_t largest_alignment = 4096, largest_section = std::uint64_t{1} << 31;

Segment segment_of(const Elf64_Shdr& s) {
    if (s.sh_flags & SHF_TLS) return Segment::thread;
    if (s.sh_flags & SHF_EXECINSTR) return Segment::code;
    return s.sh_flags & SHF_WRITE ? Segment::written : Segment::read;
}

LinkNeed need_on_x86_64(std::uint32_t type) {
    switch (type) {
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX: return LinkNeed::entry;
        case R_X86_64_PLT32: return LinkNeed::call;
        case R_X86_64_64: return LinkNeed::word;
        case R_X86_64_TLSGD:
        case R_X86_64_TLSLD: return LinkNeed::tls_entry;
        case R_X86_64_32S: throw Unlinkable{"code that is not position-independent"};
        default: return LinkNeed::nothing;
    }
}

LinkNeed need_on_aarch64(std::uint32_t type) {
    switch (type) {
        case R_AARCH64_ADR_GOT_PAGE:
        case R_AARCH64_LD64_GOT_LO12_NC: return LinkNeed::entry;
        case R_AARCH64_CALL26:
        case R_AARCH64_JUMP26: return LinkNeed::call;
        case R_AARCH64_ABS64: return LinkNeed::word;
        case R_AARCH64_TLSDESC_ADR_PAGE21:
        case R_AARCH64_TLSDESC_LD64_LO12:
        case R_AARCH64_TLSDESC_ADD_LO12: return LinkNeed::tls_entry;
        default: return LinkNeed::nothing;
    }
}

int place_in(std::vector<int>& table, int symbol) {
    table.push_back(symbol);
    return static_cast<int>(table.size()) - 1;
}

}  // namespace

LinkNeed link_need(std::uint16_t machine, std::uint32_t type) {
    if (machine == EM_X86_64) return need_on_x86_64(type);
    if (machine == EM_AARCH64) return need_on_aarch64(type);
    throw Unlinkable{"code of machine " + std::to_string(machine)};
}

LinkPlan::LinkPlan(const LinkRequest& request) {
    for (const std::string_view object : request.objects) add_object(object);
    for (const LinkedData& data : request.data) add_data(data);
    for (const auto& [outside, inside] : request.exported) {
        exported[outside] = named(inside);
        if (symbols[static_cast<std::size_t>(exported[outside])].piece < 0) throw Unlinkable{"'" + inside + "' is nowhere"};
    }
    find_needs();
}

int LinkPlan::named(const std::string& name) {
    const auto [at, fresh] = names_.try_emplace(name, static_cast<int>(symbols.size()));
    if (fresh) symbols.push_back({.name = name, .imported = true});
    return at->second;
}

void LinkPlan::define(int symbol, const LinkSymbol& as) {
    LinkSymbol& s = symbols[static_cast<std::size_t>(symbol)];
    if (!s.imported) {  // it is defined
        if (as.weak) return;
        if (!s.weak) throw Unlinkable{"'" + as.name + "' is defined twice"};
    }
    s = as;
}

void LinkPlan::add_object(std::string_view bytes) {
    const ElfObject o(bytes);
    if (machine == 0) machine = o.machine();
    if (o.machine() != machine) throw Unlinkable{"objects of two machines"};
    std::vector<int> piece_of(o.sections().size(), -1);
    for (std::size_t i = 0; i < o.sections().size(); ++i) {
        const Elf64_Shdr& s = o.sections()[i];
        if (s.sh_type == SHT_GROUP || s.sh_type == SHT_INIT_ARRAY) throw Unlinkable{"C++"};
        if (!ElfObject::loaded(s)) continue;
        const std::uint64_t alignment = s.sh_addralign ? s.sh_addralign : 1;
        if (alignment > largest_alignment || (alignment & (alignment - 1)) != 0 || s.sh_size > largest_section) throw Unlinkable{"a section of that size"};
        piece_of[i] = static_cast<int>(pieces.size());
        pieces.push_back({segment_of(s), o.content(s), s.sh_size, alignment, 0, s.sh_type == SHT_NOBITS});
    }
    std::vector<int> symbol_of(o.symbols().size(), -1);
    for (std::size_t i = 1; i < o.symbols().size(); ++i) {
        const Elf64_Sym& s = o.symbols()[i];
        LinkSymbol symbol{.name = o.name(s), .offset = static_cast<std::int64_t>(s.st_value), .size = s.st_size};
        symbol.weak = ELF64_ST_BIND(s.st_info) == STB_WEAK, symbol.function = ELF64_ST_TYPE(s.st_info) == STT_FUNC;
        if (s.st_shndx == SHN_UNDEF) {
            symbol_of[i] = named(symbol.name);
            continue;
        }
        if (ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC) throw Unlinkable{"an indirect function"};
        if (s.st_shndx == SHN_ABS)
            symbol.absolute = true;
        else if (s.st_shndx >= o.sections().size())
            throw Unlinkable{"a symbol of no section"};
        else
            symbol.piece = piece_of[s.st_shndx];
        if (ELF64_ST_BIND(s.st_info) == STB_LOCAL) {
            symbol_of[i] = static_cast<int>(symbols.size());
            symbols.push_back(std::move(symbol));
        } else {
            symbol_of[i] = named(symbol.name);
            define(symbol_of[i], symbol);
        }
    }
    for (const ElfObject::Relocations& of : o.relocations())
        for (const Elf64_Rela& r : of.all)
            patches.push_back(
                {piece_of[of.section], symbol_of[ELF64_R_SYM(r.r_info)], r.r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(r.r_info)), r.r_addend});
}

int LinkPlan::thread_block() {
    const int symbol = named(".thread block");
    symbols[static_cast<std::size_t>(symbol)].imported = false, symbols[static_cast<std::size_t>(symbol)].absolute = true;
    return symbol;
}

void LinkPlan::add_data(const LinkedData& data) {
    const int piece = static_cast<int>(pieces.size());
    const bool written = data.written || !data.pointers.empty();  // the loader writes addresses
    pieces.push_back({written ? Segment::written : Segment::read, data.bytes, data.bytes.size(), 16});
    define(named(data.name), {.name = data.name, .piece = piece});
    const std::uint32_t word = machine == EM_X86_64 ? R_X86_64_64 : R_AARCH64_ABS64;
    for (const LinkedData::Pointer& p : data.pointers) patches.push_back({piece, named(p.to), p.at, word, p.offset});
}

void LinkPlan::find_needs() {
    for (LinkPatch& p : patches) {
        if (p.symbol < 0) continue;                                                       // the null symbol: the address 0
        if (machine == EM_X86_64 && p.type == R_X86_64_TLSLD) p.symbol = thread_block();  // the offset of the symbol is added elsewhere
        LinkSymbol& s = symbols[static_cast<std::size_t>(p.symbol)];
        const LinkNeed need = link_need(machine, p.type);
        if (s.imported && s.dynamic == 0) {
            if (!glibc_function(machine, s.name).library) throw Unlinkable{"'" + s.name + "' is nowhere"};
            s.dynamic = place_in(imported, p.symbol) + 1;
        }
        if (need == LinkNeed::tls_entry && s.tls_entry < 0) s.tls_entry = place_in(tls_entries, p.symbol);
        const bool far_call = need == LinkNeed::call && s.imported;
        if (far_call && s.stub < 0) s.stub = place_in(stubs, p.symbol);
        if ((need == LinkNeed::entry || far_call) && s.entry < 0) s.entry = place_in(entries, p.symbol);
        if (need == LinkNeed::word && pieces[static_cast<std::size_t>(p.piece)].segment != Segment::written) throw Unlinkable{"an address among constants"};
    }
}

namespace {

constexpr const char *libc = "libc.so.6", *libm = "libm.so.6", *loader = "ld-linux-x86-64.so.2";

// Where x86_64 is null, the function has the version with which glibc began there. On aarch64 glibc began with 2.17.
struct Row {
    const char *name, *library, *x86_64, *aarch64;
};
// clang-format off
constexpr Row rows[] = {
    {"__errno_location",       libc, nullptr,       nullptr},
    {"__isoc99_fscanf",        libc, "GLIBC_2.7",   nullptr},
    {"__sched_cpucount",       libc, "GLIBC_2.6",   nullptr},
    {"__tls_get_addr",         loader, "GLIBC_2.3", nullptr},
    {"aligned_alloc",          libc, "GLIBC_2.16",  nullptr},
    {"atoi",                   libc, nullptr,       nullptr},
    {"calloc",                 libc, nullptr,       nullptr},
    {"clock_gettime",          libc, "GLIBC_2.17",  nullptr},
    {"fclose",                 libc, nullptr,       nullptr},
    {"fgetc",                  libc, nullptr,       nullptr},
    {"fgets",                  libc, nullptr,       nullptr},
    {"fopen",                  libc, nullptr,       nullptr},
    {"fread",                  libc, nullptr,       nullptr},
    {"free",                   libc, nullptr,       nullptr},
    {"getauxval",              libc, "GLIBC_2.16",  nullptr},
    {"getc",                   libc, nullptr,       nullptr},
    {"getenv",                 libc, nullptr,       nullptr},
    {"getpid",                 libc, nullptr,       nullptr},
    {"madvise",                libc, nullptr,       nullptr},
    {"malloc",                 libc, nullptr,       nullptr},
    {"memcpy",                 libc, "GLIBC_2.14",  nullptr},
    {"memmove",                libc, nullptr,       nullptr},
    {"memset",                 libc, nullptr,       nullptr},
    {"pthread_create",         libc, "GLIBC_2.34",  "GLIBC_2.34"},
    {"pthread_join",           libc, "GLIBC_2.34",  "GLIBC_2.34"},
    {"pthread_setaffinity_np", libc, "GLIBC_2.34",  "GLIBC_2.34"},
    {"sched_getaffinity",      libc, "GLIBC_2.3.4", nullptr},
    {"sched_getcpu",           libc, "GLIBC_2.6",   nullptr},
    {"sched_yield",            libc, nullptr,       nullptr},
    {"snprintf",               libc, nullptr,       nullptr},
    {"strchr",                 libc, nullptr,       nullptr},
    {"strcmp",                 libc, nullptr,       nullptr},
    {"strcspn",                libc, nullptr,       nullptr},
    {"strlen",                 libc, nullptr,       nullptr},
    {"strstr",                 libc, nullptr,       nullptr},
    {"strtol",                 libc, nullptr,       nullptr},
    {"strtoll",                libc, nullptr,       nullptr},
    {"syscall",                libc, nullptr,       nullptr},
    {"sysconf",                libc, nullptr,       nullptr},
    {"acosf",                  libm, nullptr,       nullptr},
    {"acoshf",                 libm, nullptr,       nullptr},
    {"asinf",                  libm, nullptr,       nullptr},
    {"asinhf",                 libm, nullptr,       nullptr},
    {"atan2f",                 libm, nullptr,       nullptr},
    {"atanf",                  libm, nullptr,       nullptr},
    {"atanhf",                 libm, nullptr,       nullptr},
    {"ceilf",                  libm, nullptr,       nullptr},
    {"cosf",                   libm, nullptr,       nullptr},
    {"coshf",                  libm, nullptr,       nullptr},
    {"erff",                   libm, nullptr,       nullptr},
    {"exp2f",                  libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"expf",                   libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"expm1f",                 libm, nullptr,       nullptr},
    {"fabsf",                  libm, nullptr,       nullptr},
    {"floorf",                 libm, nullptr,       nullptr},
    {"fmaf",                   libm, nullptr,       nullptr},
    {"fmaxf",                  libm, nullptr,       nullptr},
    {"fminf",                  libm, nullptr,       nullptr},
    {"fmodf",                  libm, nullptr,       nullptr},
    {"log10f",                 libm, nullptr,       nullptr},
    {"log1pf",                 libm, nullptr,       nullptr},
    {"log2f",                  libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"logf",                   libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"nearbyintf",             libm, nullptr,       nullptr},
    {"powf",                   libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"rintf",                  libm, nullptr,       nullptr},
    {"roundf",                 libm, nullptr,       nullptr},
    {"sinf",                   libm, nullptr,       nullptr},
    {"sinhf",                  libm, nullptr,       nullptr},
    {"sqrtf",                  libm, nullptr,       nullptr},
    {"tanf",                   libm, nullptr,       nullptr},
    {"tanhf",                  libm, nullptr,       nullptr},
    {"truncf",                 libm, nullptr,       nullptr},
};
// clang-format on

}  // namespace

std::vector<const char*> glibc_function_names() {
    std::vector<const char*> names;
    for (const Row& row : rows) names.push_back(row.name);
    return names;
}

GlibcFunction glibc_function(std::uint16_t machine, std::string_view name) {
    constexpr std::string_view renamed = "__isoc23_", older = "__isoc99_";
    const std::string_view plain = name.starts_with(renamed) ? name.substr(renamed.size()) : name;
    for (const Row& row : rows) {
        const std::string_view known = row.name;
        const bool same = plain == known || (plain != name && known.starts_with(older) && plain == known.substr(older.size()));
        if (!same) continue;
        if (machine == EM_X86_64) return {row.library, row.x86_64 ? row.x86_64 : "GLIBC_2.2.5", row.name};
        return {row.library, row.aarch64 ? row.aarch64 : "GLIBC_2.17", row.name};
    }
    return {nullptr, nullptr, nullptr};
}

}  // namespace loopegg
