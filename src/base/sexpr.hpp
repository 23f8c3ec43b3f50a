// The one reader of s-expressions: terms, rules and plans are all written in it. ';' starts a comment.
#pragma once
#include <string>
#include <vector>

#include "base/source.hpp"
#include "base/term.hpp"

namespace loopegg {

// What was written, with its place: an atom, or a list of expressions.
struct SExpr {
    Position where;
    bool is_list = false;
    bool quoted = false;       // the atom was written as "a string" (escapes: \" \\ \n \t)
    std::string atom;          // when not a list
    std::vector<SExpr> items;  // when a list

    bool is_atom(std::string_view text) const { return !is_list && !quoted && atom == text; }
    bool is_form(std::string_view head) const { return is_list && !items.empty() && items[0].is_atom(head); }
};

// All expressions of a text. Throws UserError with the place of the first thing that cannot be read:
// unbalanced parentheses, an unfinished string, nesting deeper than 2,000, bytes that are not UTF-8.
std::vector<SExpr> read_sexprs(const SourcePtr& source);

// An atom becomes a leaf; a list becomes an operator and its children. Throws UserError for '()' and for '((f) x)'.
Term to_term(const SExpr& expr);

// Exactly one term in the text, for command lines and tests.
Term parse_term(std::string_view text, std::string name = "<term>");

std::string to_string(const SExpr& expr);

}  // namespace loopegg
