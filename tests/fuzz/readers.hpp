// Every reader of files that strangers may have written, as one table. libFuzzer fuzzes the readers for minutes, and ./test for moments.
#pragma once
#include <span>
#include <string_view>

namespace loopegg {

struct Reader {
    const char* name;                      // also the key of its seeds in tests/fuzz/corpus.json
    void (*read)(std::string_view bytes);  // returns, or throws UserError; anything else is a bug
};

std::span<const Reader> readers();

// Reads the bytes; a refusal is fine if it says why. Aborts (require) when a promise is broken, such as that a written file reads back the same.
void try_reader(const Reader& reader, std::string_view bytes);

}  // namespace loopegg
