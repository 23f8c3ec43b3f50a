#include "backends/kernel/shared_library.hpp"

#include <algorithm>
#include <span>

#include "backends/kernel/elf_library.hpp"
#include "backends/kernel/link_plan.hpp"
#include "backends/kernel/object_image.hpp"

namespace loopegg {
namespace {

class Linker {
public:
    explicit Linker(const LinkRequest& request) : plan_(request), library_(plan_.machine) {}

    std::string run() {
        for (const LinkPiece& p : plan_.pieces) section_of_.push_back(section_for(p)), offset_of_.push_back(place(p, section_of_.back()));
        stubs_ = library_.add(text, std::string(stub_bytes * plan_.stubs.size(), '\0'), 16);
        tls_entries_ = entry_bytes * plan_.entries.size();
        library_.add(got, std::string(tls_entries_ + 2 * entry_bytes * plan_.tls_entries.size(), '\0'), 8);
        name_symbols();
        library_.give_addresses();
        fill_entries();
        for (std::size_t i = 0; i < plan_.stubs.size(); ++i) {
            const std::uint64_t at = stubs_ + i * stub_bytes;
            write_stub(plan_.machine, bytes(text) + at, address(text) + static_cast<std::int64_t>(at), entry_address(symbol(plan_.stubs[i]).entry));
        }
        for (const LinkPatch& p : plan_.patches) patch(p);
        library_[rela].bytes = relocations_;
        write_dynamic_tables(library_, names_);
        return library_.file();
    }

private:
    static SectionName section_for(const LinkPiece& p) {
        switch (p.segment) {
            case Segment::read: return rodata;
            case Segment::code: return text;
            case Segment::written: return p.zeros ? bss : data;
            case Segment::thread: break;
        }
        if (!p.zeros) throw Unlinkable{"thread-local data that begins with other values than zeros"};
        return tbss;
    }
    std::uint64_t place(const LinkPiece& p, SectionName in) {
        return p.zeros ? library_.add_zeros(in, p.size, p.alignment) : library_.add(in, p.bytes, p.alignment);
    }

    void name_symbols() {
        std::size_t relocations = plan_.entries.size() + plan_.tls_entries.size();
        for (const LinkPatch& p : plan_.patches) relocations += is_word(p);
        for (const int s : plan_.imported) {
            const GlibcFunction f = glibc_function(plan_.machine, symbol(s).name);
            names_.push_back({f.name, f.library, f.version});
        }
        for (const auto& [outside, s] : plan_.exported) names_.push_back({outside, nullptr, nullptr, section_of_[static_cast<std::size_t>(symbol(s).piece)]});
        add_dynamic_tables(library_, names_, relocations);
        for (const LinkSymbol& s : plan_.symbols)  // for debuggers and profilers
            if (s.function && s.piece >= 0) functions_.push_back(&s), library_.add(strtab, s.name + '\0', 1);
        library_.add(symtab, std::string((functions_.size() + 1) * sizeof(Elf64_Sym), '\0'), 8);
        library_[symtab].info = static_cast<std::uint32_t>(functions_.size() + 1);
    }

    const LinkSymbol& symbol(int index) const { return plan_.symbols[static_cast<std::size_t>(index)]; }
    char* bytes(SectionName section) { return library_[section].bytes.data(); }
    std::int64_t address(SectionName section) const { return static_cast<std::int64_t>(library_[section].address); }
    std::int64_t piece_address(int piece) const {
        const auto p = static_cast<std::size_t>(piece);
        return address(section_of_[p]) + static_cast<std::int64_t>(offset_of_[p]);
    }
    std::int64_t entry_address(int entry) const { return address(got) + entry * static_cast<std::int64_t>(entry_bytes); }
    std::int64_t tls_address(int entry) const {
        return address(got) + static_cast<std::int64_t>(tls_entries_) + 2 * entry * static_cast<std::int64_t>(entry_bytes);
    }

    // The address of a symbol; of thread-local data, its distance from the beginning of the thread's block.
    std::int64_t target(const LinkSymbol& s) const {
        if (s.piece < 0) return s.absolute ? s.offset : 0;
        const bool thread = section_of_[static_cast<std::size_t>(s.piece)] == tbss;
        return piece_address(s.piece) + s.offset - (thread ? address(tbss) : 0);
    }

    void relocation(std::int64_t at, std::uint32_t type, int dynamic, std::int64_t addend) {
        relocations_ += ElfLibrary::bytes_of(Elf64_Rela{static_cast<Elf64_Addr>(at), ELF64_R_INFO(static_cast<Elf64_Xword>(dynamic), type), addend});
    }
    // A word that holds an address: of another library, or moved with this one.
    void word(std::int64_t at, const LinkSymbol& s, std::int64_t addend) {
        const bool x86 = plan_.machine == EM_X86_64;
        if (s.imported)
            relocation(at, x86 ? std::uint32_t{R_X86_64_64} : std::uint32_t{R_AARCH64_ABS64}, s.dynamic, addend);
        else
            relocation(at, x86 ? std::uint32_t{R_X86_64_RELATIVE} : std::uint32_t{R_AARCH64_RELATIVE}, 0, target(s) + addend);
    }
    bool is_word(const LinkPatch& p) const { return p.symbol >= 0 && link_need(plan_.machine, p.type) == LinkNeed::word && !symbol(p.symbol).absolute; }

    void fill_entries() {
        for (std::size_t i = 0; i < plan_.entries.size(); ++i) word(entry_address(static_cast<int>(i)), symbol(plan_.entries[i]), 0);
        for (std::size_t i = 0; i < plan_.tls_entries.size(); ++i) {
            const std::int64_t at = tls_address(static_cast<int>(i)), offset = target(symbol(plan_.tls_entries[i]));
            if (plan_.machine == EM_AARCH64) {
                relocation(at, R_AARCH64_TLSDESC, 0, offset);
                continue;
            }
            relocation(at, R_X86_64_DTPMOD64, 0, 0);
            std::memcpy(bytes(got) + (at - address(got)) + entry_bytes, &offset, sizeof offset);
        }
        std::string functions(ElfLibrary::bytes_of(Elf64_Sym{}));
        std::uint32_t name = 1;
        for (const LinkSymbol* s : functions_) {
            functions += ElfLibrary::bytes_of(Elf64_Sym{name, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), STV_DEFAULT,
                                                        static_cast<Elf64_Half>(section_of_[static_cast<std::size_t>(s->piece)]),
                                                        static_cast<Elf64_Addr>(target(*s)), s->size});
            name += static_cast<std::uint32_t>(s->name.size() + 1);
        }
        library_[symtab].bytes = functions;
        for (std::size_t i = plan_.imported.size(); DynamicName & own : std::span(names_).subspan(i)) {
            const LinkSymbol& s = symbol(plan_.exported.at(own.name));
            own.address = static_cast<std::uint64_t>(target(s)), own.size = s.size;
        }
    }

    void patch(const LinkPatch& p) {
        const SectionName section = section_of_[static_cast<std::size_t>(p.piece)];
        const std::int64_t at = piece_address(p.piece) + static_cast<std::int64_t>(p.offset), within = at - address(section);
        std::string& all = library_[section].bytes;
        if (static_cast<std::size_t>(within) + 4 > all.size()) throw Unlinkable{"a relocation outside its section"};
        SymbolAddresses a;
        if (p.symbol >= 0) {
            const LinkSymbol& s = symbol(p.symbol);
            if (is_word(p)) return word(at, s, p.addend);
            const bool thread = link_need(plan_.machine, p.type) == LinkNeed::tls_entry;
            a = {target(s), thread ? tls_address(s.tls_entry) : entry_address(s.entry),
                 address(text) + static_cast<std::int64_t>(stubs_) + s.stub * static_cast<std::int64_t>(stub_bytes), s.imported};
        }
        char eight[relocated_bytes] = {};  // the last bytes of a section may be fewer
        const std::size_t count = std::min(sizeof eight, all.size() - static_cast<std::size_t>(within));
        std::memcpy(eight, all.data() + within, count);
        relocate(plan_.machine, p.type, eight, at, p.addend, a);
        std::memcpy(all.data() + within, eight, count);
    }

    LinkPlan plan_;
    ElfLibrary library_;
    std::string relocations_;
    std::vector<SectionName> section_of_;   // by piece
    std::vector<std::uint64_t> offset_of_;  // by piece, in its section
    std::uint64_t stubs_ = 0, tls_entries_ = 0;
    std::vector<DynamicName> names_;
    std::vector<const LinkSymbol*> functions_;
};

}  // namespace

std::string link_shared_library(const LinkRequest& request) { return Linker(request).run(); }

}  // namespace loopegg
