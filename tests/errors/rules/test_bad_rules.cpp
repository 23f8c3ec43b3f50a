// Every case of rules/bad/mistakes.txt is refused in exactly its words. Rules that are well formed and unsound are the matter of tests/rules.
#include <filesystem>

#include <catch2/catch.hpp>

#include "case_table.hpp"
#include "rules/load.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

const fs::path folder = fs::path(LOOPEGG_SOURCE) / "rules/bad";

// Cases include files of this folder, and messages name them from it, so that the words are the same everywhere.
struct InFolder {
    fs::path before = fs::current_path();
    InFolder() { fs::current_path(folder); }
    ~InFolder() { fs::current_path(before); }
};

}  // namespace

TEST_CASE("every kind of mistake in a rule file is reported with its place and words", "[errors]") {
    const InFolder there;
    CaseTable table(folder / "mistakes.txt");
    REQUIRE(table.cases().size() >= 100);
    for (TableCase& c : table.cases()) {
        INFO(c.name);
        const Loaded loaded = check_rules(make_source(c.name, c.input));
        std::string words;
        for (const RuleMistake& m : loaded.mistakes) {
            CHECK(m.what.where.known());
            words += describe(m.what) + "\n" + (m.rule.empty() ? "" : "in rule " + m.rule + "\n") + "\n";
        }
        table.check(c, words);
    }
    table.finish();
}
