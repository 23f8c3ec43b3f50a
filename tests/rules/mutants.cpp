#include "mutants.hpp"

#include <algorithm>
#include <set>

#include "base/sexpr.hpp"

namespace loopegg {
namespace {

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

}  // namespace

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

}  // namespace loopegg
