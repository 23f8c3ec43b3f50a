// A nest's loops taken apart, and lists of loops put together again: what the default schedules are made with.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/target/target.hpp"
#include "base/term.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// One loop of a nest: what it walks, whose digit that is ("" for a diagonal), and whether outputs depend on it.
struct Piece {
    Term axis;
    std::int64_t extent = 1;
    std::string iterator;
    bool output = true;
};

// A list of loops under construction, outermost first; the term is made at the end.
class LoopList {
public:
    void add(const char* kind, const Term& axis) { items_.push_back({kind, axis}); }
    void bind(const char* place, const Term& axis) { items_.push_back({std::string("bind ") + place, axis}); }
    void stage(const Term& buffer) { items_.push_back({"stage", buffer}); }
    void partial(const char* kind, const Term& axis) { items_.push_back({std::string("partial ") + kind, axis}); }
    Term term() const;

private:
    std::vector<std::pair<std::string, Term>> items_;
};

// The outer and the inner part of a loop cut into blocks of k; either may be missing.
struct Cut {
    std::optional<Term> outer, inner;
    std::int64_t blocks = 1, size = 1;
};
Cut cut(const Piece& p, std::int64_t k);

Term fused(const std::vector<Term>& axes);
std::int64_t largest_divisor(std::int64_t n, std::int64_t at_most);

// The loops of one part by the iterator they walk. An iterator cut into several digits plays its role with the last of them.
struct Roles {
    std::vector<Piece> outer;      // loops that outputs depend on and that play no role: they go outside, in parallel
    std::vector<Piece> summed;     // reduction digits that play no role
    std::map<std::string, Piece> of;
    Piece get(const std::string& name) const {
        auto found = of.find(name);
        return found == of.end() ? Piece{Term(), 1, name, true} : found->second;
    }
};

// Nothing for a schedule that is more than plain loops.
std::optional<std::vector<Piece>> pieces(const Statement& s, const Term& sched);
Roles roles(const std::vector<Piece>& all);

std::string operation(const Statement& s);                // "conv2d", without epilogues and layouts
std::int64_t number(const Statement& s, std::size_t i);   // its i-th parameter

// A schedule for processors with caches. Nothing: the loops stay as they are.
std::optional<Term> cpu_schedule(const Statement& s, const std::vector<Piece>& all, const Machine& m);

}  // namespace loopegg
