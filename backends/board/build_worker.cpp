#include "backends/board/build_worker.hpp"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "backends/kernel/elf_object.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/places.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

constexpr const char* doing = "building the worker of a board";

// The source files of the worker, each by its path in the tree. They include nothing but the standard library, the system and one another.
std::vector<std::string> files() {
    std::vector<std::string> all = split(read_file(shipped("backends/board/worker.txt")), '\n');
    std::erase(all, "");
    return all;
}

std::string compiler_for(const std::string& architecture) {
    if (architecture == native_architecture()) {
        if (program_exists("g++")) return "g++";
        throw UserError(Diagnostic{"there is no C++ compiler: 'g++' is not on the PATH, and the worker of a board is built with it", {}, "apt install g++"});
    }
    const std::string name = architecture + "-linux-gnu-g++";
    if (program_exists(name)) return name;
    std::string package = "g++-" + architecture + "-linux-gnu";
    for (char& c : package)
        if (c == '_') c = '-';
    throw UserError(Diagnostic{fmt::format("a board with an {} processor needs a worker that is built by '{}', which is not on the PATH", architecture, name),
                               {},
                               "install Debian's cross compiler: apt install " + package});
}

}  // namespace

fs::path board_worker_program(const std::string& architecture) {
    const std::string compiler = compiler_for(architecture);
    Hasher hash;
    hash.add(run_or_throw({compiler, "--version"}, "asking the compiler's version"));
    for (const std::string& file : files()) hash.add(read_file(shipped(file)));
    const fs::path program = in_cache_folder(fmt::format("boards/loopegg-board-{}-{}", architecture, hash.finish().hex()));
    std::error_code none;
    if (fs::exists(program, none)) return program;
    ScratchFile linked(".board");
    std::vector<std::unique_ptr<ScratchFile>> objects;
    const fs::path root = shipped("backends").parent_path();
    std::vector<std::string> words{compiler, "-std=c++20", "-O2", "-static", "-s", "-pthread", "-I", root.string(), "-I", (root / "src").string()};
    for (const std::string& file : files()) {
        if (file.ends_with(".cpp")) words.push_back(shipped(file).string());
        if (!file.ends_with(".c")) continue;
        const std::string object = objects.emplace_back(std::make_unique<ScratchFile>(".o"))->path().string();
        run_or_throw({compiler, "-x", "c", "-std=gnu11", "-O2", "-c", shipped(file).string(), "-o", object}, doing);
        words.push_back(object);
    }
    words.insert(words.end(), {"-o", linked.path().string()});
    run_or_throw(words, doing);
    const std::string bytes = read_file(linked.path());
    if (elf_architecture(bytes) != architecture) throw UserError(fmt::format("'{}' builds programs for {}", compiler, elf_architecture(bytes)));
    fs::create_directories(program.parent_path());
    write_file(program, bytes);
    return program;
}

}  // namespace loopegg
