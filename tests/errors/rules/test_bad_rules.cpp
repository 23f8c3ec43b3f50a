// Every file of rules/bad that is written wrongly must be refused with exactly the words beside it (.txt). LOOPEGG_REGENERATE=1 writes them
// anew. Files with .expected beside them are written rightly but unsound: tests/rules holds them to that.
#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>

#include "base/files.hpp"
#include "rules/load.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

const fs::path folder = fs::path(LOOPEGG_SOURCE) / "rules/bad";

std::vector<fs::path> bad_files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".rules" && !fs::exists(fs::path(entry.path()).replace_extension(".expected"))) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

// Files are named from their own folder, so that the words are the same everywhere.
struct InFolder {
    fs::path before = fs::current_path();
    InFolder() { fs::current_path(folder); }
    ~InFolder() { fs::current_path(before); }
};

}  // namespace

TEST_CASE("every kind of mistake in a rule file is told with its place and words", "[errors]") {
    const InFolder there;
    const auto files = bad_files();
    REQUIRE(files.size() >= 100);
    for (const fs::path& file : files) {
        INFO(file.filename().string());
        const Loaded loaded = check_rules(file.filename());
        CHECK(!loaded.mistakes.empty());
        std::string words;
        for (const RuleMistake& m : loaded.mistakes) {
            CHECK(m.what.where.known());
            words += describe(m.what) + "\n" + (m.rule.empty() ? "" : "in rule " + m.rule + "\n") + "\n";
        }
        fs::path golden = file;
        golden.replace_extension(".txt");
        if (std::getenv("LOOPEGG_REGENERATE")) write_file(golden, words);
        REQUIRE(fs::exists(golden));
        CHECK(read_file(golden) == words);
    }
}
