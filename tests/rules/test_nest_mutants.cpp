// Rules made unsound by one edit are refused when they are loaded.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/files.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

namespace fs = std::filesystem;

struct Edit {
    const char* name;
    const char* from;
    const char* to;
};

// Each makes a rule unsound wherever its words occur on the right side (or among the guards) of one of ours.
constexpr Edit edits[] = {
    {"drop a guard", "(permutable ?a ?b)", ""},
    {"drop a guard", "(par ?a ?s)) :when (parallel ?a)", "(par ?a ?s))"},
    {"drop a guard", "(vec ?a done) :when (parallel ?a)", "(vec ?a done) :when"},
    {"drop a guard", "(bind blockIdx.x ?a ?s)) :when (parallel ?a)", "(bind blockIdx.x ?a ?s))"},
    {"drop a guard", "(par (pair ?a ?b) ?s)) :when (parallel ?a)", "(par (pair ?a ?b) ?s)) :when"},
    {"drop a guard", ":when (parallel ?a) (parallel ?b)", ":when (parallel ?a)"},
    {"drop a guard", ":when (parallel ?b)", ":when"},
    {"drop a guard", "(= ?e (extent ?a))", ""},
    {"drop a guard", "(= ?k (extent ?b))", ""},
    {"drop a guard", "(divides ?k ?j)", ""},
    {"swap the halves of a split", "(at (quo ?a ?k) (at (rem ?a ?k) ?s))", "(at (rem ?a ?k) (at (quo ?a ?k) ?s))"},
    {"the outer half twice", "(at (quo ?a ?k) (at (rem ?a ?k) ?s))", "(at (quo ?a ?k) (at (quo ?a ?k) ?s))"},
    {"the inner half twice", "(at (quo ?a ?k) (at (rem ?a ?k) ?s))", "(at (rem ?a ?k) (at (rem ?a ?k) ?s))"},
    {"another factor", "(rem ?a ?k)", "(rem ?a (- ?k 1))"},
    {"another factor", "(quo ?a ?k)", "(quo ?a (+ ?k 1))"},
    {"lose a loop", "(at ?b (at ?a ?s))", "(at ?b ?s)"},
    {"lose a loop", "(at ?b (at ?a ?s))", "(at ?a ?s)"},
    {"a loop twice", "(at ?b (at ?a ?s))", "(at ?b (at ?b ?s))"},
    {"a wrong bound", "(span ?a 0 ?k)", "(span ?a 1 ?k)"},
    {"a wrong bound", "(span ?a 0 ?k)", "(span ?a 0 (+ ?k 1))"},
    {"a wrong extent", "(span ?a ?k (extent ?a))", "(span ?a ?k (- (extent ?a) 1))"},
    {"a wrong extent", "(span ?a ?k (extent ?a))", "(span ?a 0 (extent ?a))"},
    {"fuse the wrong way round", "(at (pair ?a ?b) ?s)", "(at (pair ?b ?a) ?s)"},
    {"unfuse the wrong way round", "=> (at ?a (at ?b ?s))", "=> (at ?b (at ?a ?s))"},
    {"the other half", "=> ?a", "=> ?b"},
    {"the other half", "=> ?b", "=> ?a"},
    {"run at once", "=> (at (quo", "=> (par (quo"},
    {"run at once", "=> (at ?b", "=> (par ?b"},
    {"run at once", "=> (unroll ?a ?s)", "=> (vec ?a ?s)"},
    {"run at once", "=> (partial serial ?a ?s)", "=> (par ?a ?s)"},
    {"run at once", "(partial par ?a ?s)", "(par ?a ?s)"},
    {"keep everything", "(span ?a 0 (/ (extent ?a) ?k))", "(span ?a 0 (extent ?a))"},
    {"keep everything", "(at (diag ?g ?a ?b) (at (rem ?a (/ (extent ?a) ?g)) (at (rem ?b (/ (extent ?b) ?g)) ?s)))", "(at ?a (at ?b ?s))"},
    {"blocks that do not fill the axis", "(rem ?a (/ (extent ?a) ?g))", "(rem ?a (/ (extent ?b) ?g))"},
    {"blocks that do not fill the axis", "(rem ?b (/ (extent ?b) ?g))", "(rem ?b 1)"},
    {"a part lost", "(cat (at (span ?a 0 ?k) ?s) (at (span ?a ?k (extent ?a)) ?s))", "(at (span ?a 0 ?k) ?s)"},
    {"the wrong loop below a stage", "(stage O (at ?b ?s))", "(stage O (at ?a ?s))"},
    {"the wrong loop below a stage", "(stage W (at ?b ?s))", "(stage W ?s)"},
    {"the wrong loop below a stage", "(stage (shared W) (at ?b ?s))", "(stage (shared W) ?s)"},
    {"the wrong loop below a stage", "(stage (shared I) (at ?b ?s))", "(stage (shared I) (at ?a ?s))"},
    {"a place for the wrong loop", "(bind threadIdx.x ?b ?s)", "(bind threadIdx.x ?a ?s)"},
    {"a place for the wrong loop", "(bind blockIdx.x ?a ?s)", "(bind blockIdx.x ?a (at ?a ?s))"},
    {"another function", "(epilogue ?f ?n)", "(epilogue relu ?n)"},
    {"other constants", "(epilogue scale_shift ?n)", "(epilogue bias ?n)"},
    {"what follows is lost", "(epilogue add ?n)", "?n"},
    {"another factor", "(times ?v)", "(times 2)"},
    {"what follows is lost", "(epilogue (times ?v) ?n)", "?n"},
    {"what follows is lost", "(order O ?q ?n)", "?n"},
    {"what comes before is lost", "(order ?i ?q ?n)", "?n"},
    {"another order", "(order O ?q ?n)", "(order O ?p ?n)"},
    {"another order", "(order ?i ?q ?n)", "(order ?i 213 ?n)"},
    {"another buffer", "(order O ?q ?n)", "(order I ?q ?n)"},
    {"another preparation", "(prepare fold-bias", "(prepare fold-scale"},
    {"another preparation", "(prepare fold-scale", "(prepare fold-bias"},
    {"drop a guard", ":when (weighted-sum ?n)", ""},
    {"drop a guard", "(site (nest (epilogue scale_shift ?n) ?s)) :when (convolution ?n)", "(site (nest (epilogue scale_shift ?n) ?s))"},
    {"drop a guard", "(epilogue-function ?f)", ""},
    {"a sum with no end", "(vec ?a done)", "done"},
};

// Each edit at its last occurrence: on the right side, or among the guards.
std::string edited(const std::string& text, const Edit& edit) {
    auto arrow = std::min(text.find("=>"), text.find("~>"));
    auto at = text.rfind(edit.from);
    if (at == std::string::npos || at + 1 < arrow) return {};
    return text.substr(0, at) + edit.to + text.substr(at + std::string(edit.from).size());
}

std::string shown(const Loaded& loaded, const fs::path& folder) {
    std::string text;
    for (const RuleMistake& m : loaded.mistakes) text += describe(m.what) + "\n";
    for (std::size_t at; (at = text.find(folder.string() + "/")) != std::string::npos;) text.erase(at, folder.string().size() + 1);
    return text;
}

}  // namespace

TEST_CASE("rules made unsound by one edit are refused", "[rules]") {
    std::set<std::string> mutants;
    std::size_t refused = 0;
    std::string accepted;
    for (const char* file : {"structure", "neural", "tune-cpu", "tune-gpu", "fusion"}) {
        RuleBook book = load_rules(fs::path(LOOPEGG_RULES) / (std::string(file) + ".rules"), {.judge = false, .deep = false});
        for (const Rule* rule : book.rules())
            for (const Edit& edit : edits) {
                std::string text = edited(rule->text, edit);
                if (text.empty() || text == rule->text || !mutants.insert(text).second) continue;
                Loaded loaded = check_rules(make_source("mutant", "(language nest)\n" + text + "\n"));
                if (loaded.mistakes.empty())
                    accepted += std::string(edit.name) + ": " + text + "\n";
                else
                    ++refused;
            }
    }
    std::printf("mutants: %zu of %zu refused\n", refused, mutants.size());
    INFO(accepted);
    CHECK(mutants.size() >= 50);
    CHECK(static_cast<double>(refused) >= 0.95 * static_cast<double>(mutants.size()));
    if (!accepted.empty()) WARN("accepted:\n" << accepted);
}

// Those that are well written and yet unsound have their words in NAME.expected; mistakes of writing are the matter of tests/errors/rules.
TEST_CASE("every unsound rule in rules/bad is refused in its own words", "[rules]") {
    fs::path folder = fs::path(LOOPEGG_RULES) / "bad";
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".rules" && fs::exists(fs::path(entry.path()).replace_extension(".expected"))) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    CHECK(files.size() >= 8);
    for (const fs::path& file : files) {
        std::string words = shown(check_rules(file), folder);
        fs::path golden = fs::path(file).replace_extension(".expected");
        INFO(file.filename());
        CHECK_FALSE(words.empty());
        if (std::getenv("LOOPEGG_REGENERATE"))
            write_file(golden, words);
        else
            CHECK(read_file(golden) == words);
    }
}
