// Every case of rules/bad/mistakes.txt is refused in exactly its words. Rules that are well formed and unsound are the matter of tests/rules.
#include <filesystem>

#include <catch2/catch.hpp>

#include "base/scratch.hpp"
#include "case_table.hpp"
#include "rules/load.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

// Cases include files of the table, which stand in this folder. Messages name them from it, so that the words are the same everywhere.
class InFolder {
public:
    InFolder() { fs::current_path(folder_.path()); }
    ~InFolder() { fs::current_path(before_); }
    InFolder(const InFolder&) = delete;
    InFolder& operator=(const InFolder&) = delete;
    void add(const TableCase& part) const {
        fs::create_directories(fs::path(part.name).parent_path());
        write_file(part.name, part.expected);
    }

private:
    fs::path before_ = fs::current_path();
    ScratchFile name_{".rules"};
    ScratchFolder folder_{name_.path()};
};

bool is_part(const TableCase& c) { return c.name.starts_with("parts/"); }

}  // namespace

TEST_CASE("every kind of mistake in a rule file is reported with its place and words", "[errors]") {
    CaseTable table(fs::path(LOOPEGG_SOURCE) / "rules/bad/mistakes.txt");
    REQUIRE(table.cases().size() >= 100);
    const InFolder there;
    for (const TableCase& c : table.cases())
        if (is_part(c)) there.add(c);
    for (TableCase& c : table.cases()) {
        if (is_part(c)) continue;
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
