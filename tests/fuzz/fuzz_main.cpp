// libFuzzer's entry: the reader is named by the environment variable LOOPEGG_READER (see tests/fuzz/run).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "fuzz/readers.hpp"

namespace {

const loopegg::Reader& chosen() {
    const char* name = std::getenv("LOOPEGG_READER");
    for (const loopegg::Reader& r : loopegg::readers())
        if (name && r.name == std::string_view(name)) return r;
    std::fprintf(stderr, "set LOOPEGG_READER to one of:");
    for (const loopegg::Reader& r : loopegg::readers()) std::fprintf(stderr, " %s", r.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const loopegg::Reader& reader = chosen();
    try {
        loopegg::try_reader(reader, {reinterpret_cast<const char*>(data), size});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        std::abort();
    }
    return 0;
}
