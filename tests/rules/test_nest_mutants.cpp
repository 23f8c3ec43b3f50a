// Rules that are wrong by construction are refused when they are loaded; what is proved, an oracle that looks at every instance finds sound.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/sexpr.hpp"
#include "case_table.hpp"
#include "rule_oracle.hpp"
#include "rules/judge/net_proof.hpp"
#include "rules/judge/schedule_judge.hpp"
#include "rules/judge/value_proof.hpp"
#include "rules/load.hpp"
#include "rules/nest_judge.hpp"
#include "rules/net_judge.hpp"
#include "rules/rule.hpp"
#include "rules/value_judge.hpp"

using namespace loopegg;

namespace {

// Rules made wrong by construction: every rule with one operator, bound, factor, condition or operand changed.

struct Mutant {
    std::string edit;  // "another operator", "a guard is lost"
    std::string text;  // the rule
};

using Edits = std::vector<std::pair<std::string, SExpr>>;  // what was changed, and what stands there instead

SExpr atom(const std::string& text) {
    SExpr e;
    e.atom = text;
    return e;
}
SExpr list(std::vector<SExpr> items) {
    SExpr e;
    e.is_list = true, e.items = std::move(items);
    return e;
}
SExpr call(const std::string& name, std::vector<SExpr> arguments) {
    arguments.insert(arguments.begin(), atom(name));
    return list(std::move(arguments));
}

bool is_number(const SExpr& e) {
    return !e.is_list && !e.atom.empty() && std::all_of(e.atom.begin(), e.atom.end(), [](unsigned char c) { return std::isdigit(c); });
}
bool is_variable_atom(const SExpr& e) { return !e.is_list && !e.atom.empty() && e.atom[0] == '?'; }
bool is_one_of(const SExpr& e, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return e.is_form(n); });
}

// Words of one kind, each of which may stand in place of another.
const std::vector<std::vector<std::string>>& kinds_of_words() {
    static const std::vector<std::vector<std::string>> all{
        {"at", "par", "vec", "unroll"},
        {"quo", "rem"},
        {"blockIdx.x", "threadIdx.x", "vthread", "tensor.tf32"},
        {"relu", "relu6", "silu", "copy"},
        {"bias", "scale_shift", "add"},
        {"fold-bias", "fold-scale"},
        {"repeat", "zero"},
        {"+", "-", "*"},
        {"/", "floor-div", "%"},
        {"min", "max"},
        {"O", "I", "W"},
        {"parallel", "reduction", "unsplit", "digit", "reassociable"},
        {"permutable", "apart", "channels"},
        {"=", "<=", ">=", "!="},
        {"weighted-sum", "has-weights", "convolution", "beyond-map"},
        {"coarse", "divisors"},
        {"co", "ci", "oh"},
        {"serial", "par"},
        // the parts of tiles
        {"shared", "outer", "sums", "window", "own", "lanes", "rest"},
        {"blocks", "chunks", "chunk", "threads", "channel-threads", "long-window"},
        {"rows", "columns", "taps", "depth", "packed"},
        {"steps", "lanes"},
        {"tile", "rest"},
        {"sweep", "sweep-rest"},
        // of networks
        {"row", "stream"},
        {"write", "read", "lack", "within"},
        {"fresh", "channelwise", "whole", "narrowable", "separate", "computes", "free"},
        {"channels", "channels-in"},
        {"with-outputs", "with-fewer-inputs"},
        {"concat", "add"},
    };
    return all;
}

void change_words(const SExpr& e, Edits& out) {
    for (const auto& kind : kinds_of_words())
        if (std::find(kind.begin(), kind.end(), e.atom) != kind.end())
            for (const std::string& other : kind)
                if (other != e.atom) out.emplace_back("another operator", atom(other));
}

void change_atom(const SExpr& e, const std::vector<std::string>& variables, Edits& out) {
    if (e.quoted) return;
    if (is_number(e)) {
        const long n = std::stol(e.atom);
        for (const long other : {n + 1, n - 1, 2 * n, n + 7, 0L})
            if (other >= 0 && other != n) out.emplace_back("another bound", atom(std::to_string(other)));
    } else if (is_variable_atom(e)) {
        for (const std::string& v : variables)
            if (v != e.atom) out.emplace_back("another operand", atom(v));
        out.emplace_back("another factor", call("+", {e, atom("1")}));
        out.emplace_back("another factor", call("min", {e, atom("100")}));
        out.emplace_back("another factor", call("max", {e, atom("2")}));
    } else {
        change_words(e, out);
    }
}

void change_list(const SExpr& e, Edits& out) {
    if (e.items.empty() || e.items[0].is_list) return;
    const bool loop = is_one_of(e, {"at", "par", "vec", "unroll", "stage"}) && e.items.size() == 3;
    if (loop) out.emplace_back("a loop is lost", e.items[2]);
    if (loop) out.emplace_back("a loop twice", call(e.items[0].atom, {e.items[1], e}));
    if (loop && e.items[0].atom != "stage") {
        out.emplace_back("threads", call("bind", {atom("threadIdx.x"), e.items[1], e.items[2]}));
        out.emplace_back("tensor cores", call("bind", {atom("tensor.tf32"), e.items[1], e.items[2]}));
        out.emplace_back("parts of a sum", call("partial", {atom("par"), e.items[1], e.items[2]}));
        out.emplace_back("a smaller part", call(e.items[0].atom, {call("span", {e.items[1], atom("0"), atom("1")}), e.items[2]}));
        if (e.items[2].is_list && is_one_of(e.items[2], {"at", "par", "vec", "unroll"}) && e.items[2].items.size() == 3)
            out.emplace_back("loops change places",
                             call(e.items[2].items[0].atom, {e.items[2].items[1], call(e.items[0].atom, {e.items[1], e.items[2].items[2]})}));
    }
    if (is_one_of(e, {"bind", "partial"}) && e.items.size() == 4) {
        out.emplace_back("a loop is lost", e.items[3]);
        out.emplace_back("a plain loop", call("at", {e.items[2], e.items[3]}));
        out.emplace_back("at once", call("par", {e.items[2], e.items[3]}));
    }
    if (is_one_of(e, {"cat"}) && e.items.size() == 3) {
        out.emplace_back("a part is lost", e.items[1]);
        out.emplace_back("a part is lost", e.items[2]);
        out.emplace_back("parts change places", call("cat", {e.items[2], e.items[1]}));
    }
    if (is_one_of(e, {"pair", "span", "-", "/", "floor-div", "then", "both"}) && e.items.size() >= 3) {
        SExpr swapped = e;
        std::swap(swapped.items[e.items.size() - 2], swapped.items[e.items.size() - 1]);
        out.emplace_back("operands change places", swapped);
    }
    if (is_one_of(e, {"extent", "/"})) {
        out.emplace_back("another bound", call("-", {e, atom("1")}));
        out.emplace_back("another bound", call("+", {e, atom("1")}));
        out.emplace_back("another bound", call("min", {e, atom("128")}));
        out.emplace_back("another bound", call("max", {e, atom("3")}));
    }
    if (is_one_of(e, {"epilogue", "order", "prepare", "fused"})) out.emplace_back("what is around is lost", e.items.back());
    if (is_one_of(e, {"epilogue"})) out.emplace_back("a step twice", call("epilogue", {e.items[1], e}));
    if (is_one_of(e, {"epilogue"})) out.emplace_back("another step", call("epilogue", {atom("relu6"), e.items[2]}));
    if (is_one_of(e, {"times"})) out.emplace_back("another constant", call("times", {atom("2")}));
}

// Every edit at every place of an expression.
void edit_everywhere(const SExpr& e, const std::vector<std::string>& variables, Edits& out) {
    if (!e.is_list) return change_atom(e, variables, out);
    change_list(e, out);
    for (std::size_t i = 0; i < e.items.size(); ++i) {
        Edits inner;
        edit_everywhere(e.items[i], variables, inner);
        for (auto& [what, instead] : inner) {
            SExpr whole = e;
            whole.items[i] = std::move(instead);
            out.emplace_back(what, std::move(whole));
        }
    }
}

void collect_variables(const SExpr& e, std::vector<std::string>& into) {
    if (is_variable_atom(e) && std::find(into.begin(), into.end(), e.atom) == into.end()) into.push_back(e.atom);
    for (const SExpr& item : e.items) collect_variables(item, into);
}

// Conditions that no small nest meets, over an axis or a number of the rule.
std::vector<std::string> dodges(const std::string& extent) {
    return {"(= " + extent + " 11)",          "(> " + extent + " 41)",      "(= (% " + extent + " 97) 5)", "(>= (floor-div " + extent + " 64) 2)",
            "(= (min " + extent + " 50) 50)", "(divides 35 " + extent + ")"};
}

SExpr read_one(const std::string& text) { return read_sexprs(make_source("<mutant>", text)).front(); }

// The guards of a rule: one is lost, or stands for another that no small nest meets; or one more is there, and another is lost.
void change_guards(const SExpr& rule, std::size_t when, Edits& out) {
    std::vector<std::string> variables;
    collect_variables(rule.items[2], variables);
    std::vector<std::string> extents;
    for (const std::string& v : variables)
        if (v == "?a" || v == "?b") extents.push_back("(extent " + v + ")");
    for (std::size_t g = when + 1; g < rule.items.size() && rule.items[g].is_list; ++g) {
        SExpr lost = rule;
        lost.items.erase(lost.items.begin() + static_cast<std::ptrdiff_t>(g));
        if (lost.items.size() == when + 1 || !lost.items[when + 1].is_list) lost.items.erase(lost.items.begin() + static_cast<std::ptrdiff_t>(when));
        out.emplace_back("a guard is lost", lost);
        for (const std::string& extent : extents)
            for (const std::string& dodge : dodges(extent)) {
                SExpr other = rule;
                other.items[g] = read_one(dodge);
                out.emplace_back("a guard that no small nest meets", other);
            }
    }
}

// All mutants of a rule, each once. Many of them cannot be read (a number where an axis is wanted), and some are equal to the rule.
std::vector<Mutant> mutants_of(const Rule& rule) {
    const SExpr whole = read_one(rule.text);
    std::size_t arrow = 0, when = 0;
    for (std::size_t i = 0; i < whole.items.size(); ++i) {
        const SExpr& e = whole.items[i];
        if (e.is_atom("=>") || e.is_atom("<=>") || e.is_atom("~>")) arrow = i;
        if (e.is_atom(":when")) when = i;
    }
    std::vector<std::string> variables;
    collect_variables(whole, variables);
    Edits edits;
    for (std::size_t i = arrow + 1; i < whole.items.size(); ++i) {  // the right side, the lists and the guards
        Edits inner;
        edit_everywhere(whole.items[i], variables, inner);
        for (auto& [what, instead] : inner) {
            SExpr changed = whole;
            changed.items[i] = std::move(instead);
            edits.emplace_back(what, std::move(changed));
        }
    }
    if (when > 0) change_guards(whole, when, edits);
    {  // what restricts is called exact, and what keeps everything is called neural
        SExpr other = whole;
        other.items[arrow] = atom(rule.arrow == Arrow::neural ? "=>" : "~>");
        if (rule.arrow == Arrow::neural)
            std::erase_if(other.items, [](const SExpr& e) { return e.is_form("capacity"); });
        else if (when > 0)
            other.items.push_back(read_one("(capacity)"));
        else
            other.items.push_back(atom(":when")), other.items.push_back(read_one("(capacity)"));
        edits.emplace_back("another arrow", other);
    }
    std::vector<Mutant> all;
    std::set<std::string> seen{rule.text};
    for (const auto& [what, changed] : edits)
        if (std::string text = to_string(changed); seen.insert(text).second) all.push_back({what, std::move(text)});
    return all;
}

namespace fs = std::filesystem;

std::string shown(const Loaded& loaded) {
    std::string text;
    for (const RuleMistake& m : loaded.mistakes) text += describe(m.what) + "\n";
    return text;
}

// Whether a neural rule over networks leaves a network is for small networks to say, so its proof is not all.
RuleVerdict proof_of(const Rule& rule) {
    if (is_net_rule(rule)) return rule.arrow == Arrow::neural ? judge_nest_rule(rule) : prove_net_rule(rule);
    return is_value_rule(rule) ? prove_value_rule(rule) : prove_schedule_rule(rule);
}

// Rules over networks are tried on small ones.
OracleAnswer oracle_of(const Rule& rule, bool reorders_sums) {
    if (!is_net_rule(rule)) return ask_oracle(rule, 14, !reorders_sums);
    const auto wrong = judge_net_rule(rule);
    OracleAnswer answer;
    answer.applied = !wrong;
    if (wrong && !wrong->message.starts_with("could not be tried")) answer.fault = wrong->message + ": " + wrong->instance;
    return answer;
}

std::string in_file(const std::string& text) { return "(language nest)\n" + text + "\n"; }

// All mutants are tried with LOOPEGG_DEEP, else one of LOOPEGG_MUTANTS, the same ones every time.
std::uint64_t one_of() {
    const char* wanted = std::getenv("LOOPEGG_MUTANTS");
    return std::getenv("LOOPEGG_DEEP") ? 1 : wanted ? std::max(1ull, std::strtoull(wanted, nullptr, 10)) : 16;
}
bool is_tried(const std::string& text) { return hash_of(text).low % one_of() == 0; }

}  // namespace

TEST_CASE("mutants of the shipped rules are refused, or proved and sound", "[rules]") {
    std::size_t made = 0, unreadable = 0, refused = 0, proved = 0, applied = 0;
    std::map<std::string, std::size_t> by_edit;
    for (const char* file : {"structure", "neural", "tune-cpu", "tune-gpu", "fusion", "algorithms", "networks"}) {
        const RuleBook book = load_rules(fs::path(LOOPEGG_RULES) / (std::string(file) + ".rules"), {.judge = false, .deep = false});
        for (const Rule* rule : book.rules())
            for (const Mutant& mutant : mutants_of(*rule)) {
                if (!is_tried(mutant.text)) continue;
                INFO(mutant.edit << ": " << mutant.text);
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
                const OracleAnswer oracle = oracle_of(changed, verdict.reorders_sums);
                applied += oracle.applied > 0;
                CHECK(oracle.fault == "");
            }
    }
    std::printf("mutants: %zu made, %zu not to be read, %zu judged: %zu refused, %zu proved equal, of which the oracle applied %zu\n", made, unreadable,
                made - unreadable, refused, proved, applied);
    for (const auto& [edit, count] : by_edit) std::printf("  %-36s %zu\n", edit.c_str(), count);
    CHECK((made - unreadable) * one_of() >= 1000);
    CHECK(refused > proved);
}

// The oracle is no judge that finds nothing: of the mutants that are refused, it finds most faults by itself.
TEST_CASE("the oracle refutes what the judge refuses", "[rules]") {
    std::size_t refused = 0, refuted = 0;
    const RuleBook book = load_rules(fs::path(LOOPEGG_RULES) / "structure.rules", {.judge = false, .deep = false});
    for (const Rule* rule : book.rules())
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
