#include "rules/patterns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace loopegg {
namespace {

const std::string number_kind = "number";

std::string count_words(std::size_t n, const std::vector<std::string>& kinds) {
    std::vector<std::string> named;
    for (const std::string& k : kinds)
        if (!k.empty()) named.push_back(k);
    const std::string words = n == 0 ? "nothing" : fmt::format("{} {}", n, n == 1 ? "term" : "terms");
    return named.size() == n && n > 0 ? fmt::format("{} ({})", words, join(named, ", ")) : words;
}

}  // namespace

PatternReader::Read PatternReader::read(const SExpr& e, Side side, const std::string& wanted) {
    if (e.is_list) return list(e, side, wanted);
    if (e.quoted) {
        complaints_.say(e.where, "a string cannot be part of a term");
        return {};
    }
    if (looks_like_variable(e)) return variable(e, side, wanted);
    return leaf(e, wanted);
}

bool PatternReader::fits(const SExpr& e, const std::string& kind, const std::string& wanted) {
    if (kind.empty() || wanted.empty() || kind == wanted) return true;
    complaints_.say(e.where, fmt::format("'{}' is a term of kind {}, but {} is wanted here", to_string(e), kind, wanted));
    return false;
}

PatternReader::Read PatternReader::variable(const SExpr& e, Side side, const std::string& wanted) {
    if (!check_variable_name(e, complaints_)) return {};
    const Symbol name(e.atom);
    (side == Side::left ? left_ : right_).try_emplace(name, e.where);
    VariableUse& use = kinds_.try_emplace(name, VariableUse{wanted, e.where}).first->second;
    if (use.kind.empty()) use.kind = wanted;
    if (!wanted.empty() && use.kind != wanted) {
        complaints_.say(e.where, fmt::format("'{}' is a term of kind {} in line {}, but {} is wanted here", e.atom, use.kind, use.where.line(), wanted));
        return {};
    }
    return {Term(name), use.kind};
}

PatternReader::Read PatternReader::leaf(const SExpr& e, const std::string& wanted) {
    if (!e.atom.empty() && e.atom[0] == ':') {
        complaints_.say(e.where, fmt::format("the keyword '{}' cannot be inside a term", e.atom));
        return {};
    }
    Read result{Term(e.atom), {}};
    if (integer_of(Symbol(e.atom))) result.kind = number_kind;
    if (language_.open) return {result.term, {}};
    if (result.kind.empty()) {
        for (const OperatorKind& op : language_.operators)
            if (op.name == e.atom && op.children.empty()) return fits(e, op.kind, wanted) ? Read{result.term, op.kind} : Read{};
        std::optional<std::string> kind = language_.leaf_kind ? language_.leaf_kind(e.atom) : std::nullopt;
        if (!kind) {
            for (const OperatorKind& op : language_.operators)
                if (op.name == e.atom) {
                    complaints_.say(e.where, fmt::format("operator '{}' takes {}, but has none", e.atom, count_words(op.children.size(), op.children)));
                    return {};
                }
            std::string hint = did_you_mean(e.atom, known_names(Side::left));
            complaints_.say(e.where, fmt::format("unknown name '{}' in language {}", e.atom, language_.name),
                            hint.empty() ? fmt::format("a variable is written '?{}'", e.atom) : hint);
            return {};
        }
        result.kind = *kind;
    }
    return fits(e, result.kind, wanted) ? result : Read{};
}

std::vector<std::string> PatternReader::known_names(Side side) const {
    std::vector<std::string> names;
    for (const OperatorKind& op : language_.operators) names.push_back(op.name);
    if (side == Side::right) {
        for (const FunctionKind& f : language_.functions) names.push_back(f.name);
        for (const FunctionKind& f : common_functions()) names.push_back(f.name);
    }
    return names;
}

// The operator of that name and number of children. Complains when there is none.
const OperatorKind* PatternReader::choose(const SExpr& e) {
    const std::string& name = e.items[0].atom;
    const OperatorKind* other = nullptr;
    for (const OperatorKind& op : language_.operators) {
        if (op.name != name) continue;
        if (op.children.size() == e.items.size() - 1) return &op;
        other = &op;
    }
    if (!other) return nullptr;
    const std::size_t given = e.items.size() - 1;
    complaints_.say(e.where, fmt::format("operator '{}' takes {}, but {} {} given", name, count_words(other->children.size(), other->children), given,
                                         given == 1 ? "is" : "are"));
    return other;
}

PatternReader::Read PatternReader::compute(const SExpr& e, const SExpr& value, Side side) {
    if (side == Side::left) {
        complaints_.say(e.where, "the left side cannot hold a computed part: there is nothing to compute it from yet",
                        "bind a variable here and compare it in a guard");
        return {};
    }
    auto choice = expressions_.computed(value);
    if (!choice) return {};
    const Symbol name = choice->variable;
    const std::string kind = choice->computed->function ? choice->computed->function->kind : number_kind;
    if (std::none_of(computed_.begin(), computed_.end(), [&](const ChoiceCall& c) { return c.variable == name; })) computed_.push_back(std::move(*choice));
    return {Term(name), kind};
}

// Whether some part of a term is a function that gives a list of terms: "(at (outer ?n ?s ?tile) ...)" is one loop for each term of the list.
bool PatternReader::holds_lists(const SExpr& e) const {
    if (!e.is_list || e.items.empty() || e.items[0].is_list) return false;
    const std::string& head = e.items[0].atom;
    if (!language_.has_operator(head))
        if (const FunctionKind* f = language_.find_function(head); f && f->terms) return true;
    return std::any_of(e.items.begin() + 1, e.items.end(), [&](const SExpr& part) { return holds_lists(part); });
}

PatternReader::Read PatternReader::list(const SExpr& e, Side side, const std::string& wanted) {
    if (e.items.empty()) {
        complaints_.say(e.where, "'()' is no term");
        return {};
    }
    const SExpr& head = e.items[0];
    if (head.is_list || head.quoted || looks_like_variable(head)) {
        complaints_.say(head.where, "a term begins with the name of an operator");
        return {};
    }
    if (head.atom == "eval" && !language_.has_operator("eval")) {
        if (e.items.size() != 2) {
            complaints_.say(e.where, "'eval' takes 1 expression to compute");
            return {};
        }
        Read made = compute(e, e.items[1], side);
        return made.term && fits(e, made.kind, wanted) ? made : Read{};
    }
    const FunctionKind* function = language_.open ? nullptr : language_.find_function(head.atom);
    const bool template_of_lists = function && function->terms && side == Side::right && holds_lists(e);
    if (function && (template_of_lists || !language_.has_operator(head.atom))) {
        Read made = compute(e, e, side);
        return made.term && fits(e, made.kind, wanted) ? made : Read{};
    }
    const OperatorKind* op = nullptr;
    if (!language_.open) {
        if (!language_.has_operator(head.atom))
            complaints_.say(head.where, fmt::format("unknown operator '{}' in language {}", head.atom, language_.name),
                            did_you_mean(head.atom, known_names(side)));
        else
            op = choose(e);
    }
    bool ok = language_.open || (op && op->children.size() == e.items.size() - 1);
    std::vector<Term> children;
    for (std::size_t i = 1; i < e.items.size(); ++i) {  // also after a mistake, to find the mistakes inside and the variables
        Read child = read(e.items[i], side, op && i - 1 < op->children.size() ? op->children[i - 1] : std::string());
        ok = ok && child.term;
        children.push_back(std::move(child.term));
    }
    if (!ok || (op && !fits(e, op->kind, wanted))) return {};
    return {Term(head.atom, std::move(children)), op ? op->kind : std::string()};
}

}  // namespace loopegg
