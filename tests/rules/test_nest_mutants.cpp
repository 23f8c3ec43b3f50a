// Rules that are wrong by construction are refused when they are loaded; what is proved, an oracle that looks at every instance finds sound.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/hash.hpp"
#include "case_table.hpp"
#include "mutants.hpp"
#include "rule_oracle.hpp"
#include "rules/judge/schedule_judge.hpp"
#include "rules/judge/value_proof.hpp"
#include "rules/load.hpp"
#include "rules/net_judge.hpp"
#include "rules/value_judge.hpp"

using namespace loopegg;

namespace {

namespace fs = std::filesystem;

std::string shown(const Loaded& loaded) {
    std::string text;
    for (const RuleMistake& m : loaded.mistakes) text += describe(m.what) + "\n";
    return text;
}

// The rules that the judge proves; rules over whole networks are tried alone.
std::vector<const Rule*> judged_rules(const RuleBook& book) {
    std::vector<const Rule*> all;
    for (const Rule* rule : book.rules())
        if (!is_net_rule(*rule)) all.push_back(rule);
    return all;
}

RuleVerdict proof_of(const Rule& rule) { return is_value_rule(rule) ? prove_value_rule(rule) : prove_schedule_rule(rule); }

std::string in_file(const std::string& text) { return "(language nest)\n" + text + "\n"; }

// All mutants are tried with LOOPEGG_DEEP, else one of so many, the same ones every time.
constexpr std::uint64_t one_of = 16;
bool all_are_tried() { return std::getenv("LOOPEGG_DEEP") != nullptr; }
bool is_tried(const std::string& text) { return all_are_tried() || hash_of(text).low % one_of == 0; }

}  // namespace

TEST_CASE("mutants of the shipped rules are refused, or proved and sound", "[rules]") {
    std::size_t made = 0, unreadable = 0, refused = 0, proved = 0, applied = 0;
    std::map<std::string, std::size_t> by_edit;
    for (const char* file : {"structure", "neural", "tune-cpu", "tune-gpu", "fusion", "algorithms"}) {
        const RuleBook book = load_rules(fs::path(LOOPEGG_RULES) / (std::string(file) + ".rules"), {.judge = false, .deep = false});
        for (const Rule* rule : judged_rules(book))
            for (const Mutant& mutant : mutants_of(*rule)) {
                if (!is_tried(mutant.text)) continue;
                ++made;
                const Loaded read = check_rules(make_source("mutant", in_file(mutant.text)), {.judge = false});
                if (!read.mistakes.empty()) {
                    ++unreadable;
                    continue;
                }
                ++by_edit[mutant.edit];
                const Rule& changed = *read.book.rules().front();
                const RuleVerdict verdict = proof_of(changed);
                if (!verdict.accepted()) {
                    ++refused;
                    continue;
                }
                ++proved;
                if (!verdict.most.empty()) continue;  // the loader adds a guard for the factors
                const OracleAnswer oracle = ask_oracle(changed, 14, !verdict.reorders_sums);
                applied += oracle.applied > 0;
                INFO(mutant.edit << ": " << mutant.text);
                CHECK(oracle.fault == "");
            }
    }
    std::printf("mutants: %zu made, %zu not to be read, %zu judged: %zu refused, %zu proved equal, of which the oracle applied %zu\n", made, unreadable,
                made - unreadable, refused, proved, applied);
    for (const auto& [edit, count] : by_edit) std::printf("  %-36s %zu\n", edit.c_str(), count);
    const std::size_t share = all_are_tried() ? 1 : one_of;
    CHECK((made - unreadable) * share >= 1000);
    CHECK(refused > proved);
}

// The oracle is no judge that finds nothing: of the mutants that are refused, it finds most faults by itself.
TEST_CASE("the oracle refutes what the judge refuses", "[rules]") {
    std::size_t refused = 0, refuted = 0;
    const RuleBook book = load_rules(fs::path(LOOPEGG_RULES) / "structure.rules", {.judge = false, .deep = false});
    for (const Rule* rule : judged_rules(book))
        for (const Mutant& mutant : mutants_of(*rule)) {
            if (hash_of(mutant.text).low % 3 != 0) continue;
            const Loaded read = check_rules(make_source("mutant", in_file(mutant.text)), {.judge = false});
            if (!read.mistakes.empty() || proof_of(*read.book.rules().front()).accepted()) continue;
            const OracleAnswer oracle = ask_oracle(*read.book.rules().front(), 120, false);
            if (oracle.applied == 0 && oracle.fault.empty()) continue;  // its conditions never hold
            ++refused;
            refuted += !oracle.fault.empty();
        }
    std::printf("oracle: %zu of %zu refused mutants refuted\n", refuted, refused);
    CHECK(refused >= 30);
    CHECK(static_cast<double>(refuted) >= 0.8 * static_cast<double>(refused));
}

// Mistakes of writing are the matter of tests/errors/rules.
TEST_CASE("every unsound rule in rules/bad is refused in its own words", "[rules]") {
    CaseTable table(std::filesystem::path(LOOPEGG_RULES) / "bad/unsound.txt");
    CHECK(table.cases().size() >= 30);
    for (TableCase& c : table.cases()) table.check(c, shown(check_rules(make_source(c.name, c.input))));
    table.finish();
}
