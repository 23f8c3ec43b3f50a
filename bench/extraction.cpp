// Every extractor on every e-graph of a folder, as a Markdown table: bench_extraction FOLDER [SECONDS]
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/files.hpp"
#include "extract/extractors.hpp"
#include "extract/reduce.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    if (argc < 2) return fmt::print(stderr, "usage: bench_extraction FOLDER [SECONDS]\n"), 2;
    const ExtractOptions options{argc > 2 ? std::atof(argv[2]) : 10};
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    fmt::print("| e-graph | nodes | after reduction |");
    for (const Extractor& row : extractors()) fmt::print(" {} | s |", row.name);
    fmt::print(" bound | optimal |\n|---|--:|--:|");
    for (std::size_t i = 0; i < extractors().size(); ++i) fmt::print("--:|--:|");
    fmt::print("--:|---|\n");
    for (const auto& file : files) {
        const SerializedEGraph egraph = read_serialized(read_source(file));
        Extraction last;
        std::string line;
        for (const Extractor& row : extractors()) {
            last = extract(egraph, row.name, options);
            line += fmt::format(" {:.10g} | {:.2f} |", last.cost, last.seconds);
        }
        fmt::print("| {} | {} | {} |{} {:.10g} | {} |\n", file.stem().string(), egraph.nodes.size(), reduce(egraph, last.cost).egraph.nodes.size(), line,
                   last.bound, last.optimal ? "yes" : "no");
        std::fflush(stdout);
    }
    return 0;
}
