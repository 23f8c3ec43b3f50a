// The names and pieces of a library that is being linked: what each object defines and needs, before anything has an address.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/shared_library.hpp"

namespace loopegg {

// A name, or a place of one object that has no name outside of it.
struct LinkSymbol {
    std::string name;
    int piece = -1;           // that it is in; -1: it is imported, or absolute
    std::int64_t offset = 0;  // in its piece; of an absolute symbol, its value
    std::uint64_t size = 0;
    bool absolute = false, weak = false, imported = false, function = false;
    int entry = -1, tls_entry = -1, stub = -1;  // which table entry, pair of entries and stub it has
    int dynamic = 0;                            // its place among the dynamic symbols
};

enum class Segment { read, code, written, thread };

// Bytes of one section of an object, or a table of our own, which are contiguous.
struct LinkPiece {
    Segment segment = Segment::read;
    std::string_view bytes;
    std::uint64_t size = 0, alignment = 1, address = 0;
    bool zeros = false;  // it has no bytes in the file
};

// A word, or a part of an instruction, that an address is written into.
struct LinkPatch {
    int piece, symbol;
    std::uint64_t offset;
    std::uint32_t type;
    std::int64_t addend;
};

class LinkPlan {
public:
    explicit LinkPlan(const LinkRequest& request);

    std::uint16_t machine = 0;
    std::vector<LinkSymbol> symbols;
    std::vector<LinkPiece> pieces;
    std::vector<LinkPatch> patches;
    std::vector<int> imported, entries, tls_entries, stubs;  // symbols, in the order of the tables
    std::map<std::string, int> exported;                     // by their names outside

private:
    void add_object(std::string_view bytes);
    void add_data(const LinkedData& data);
    int named(const std::string& name);  // the symbol of a name, which is there from now on
    void define(int symbol, const LinkSymbol& as);
    int thread_block();  // the beginning of the library's thread-local data, as a symbol
    void find_needs();

    std::map<std::string, int> names_;
};

// What a relocation asks for besides an address.
enum class LinkNeed { nothing, entry, call, word, tls_entry };
LinkNeed link_need(std::uint16_t machine, std::uint32_t type);

// The functions of glibc that compiled networks may call: the library that has each, its name there, and the version of its interface that is required.
struct GlibcFunction {
    const char *library, *version, *name;
};

// For code of this machine (EM_X86_64 or EM_AARCH64). `library` is null for a function that is not in the table. The versions are the oldest with which the
// code is right, so that a network runs on machines with older libraries, too. Headers since glibc 2.38 rename functions that read numbers ('__isoc23_strtol'),
// which older libraries lack. What differs is binary literals, which no network reads, so the table answers with the older name.
GlibcFunction glibc_function(std::uint16_t machine, std::string_view name);
std::vector<const char*> glibc_function_names();

}  // namespace loopegg
