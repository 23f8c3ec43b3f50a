#include "backends/lower/schedule_pieces.hpp"

#include <algorithm>

#include "nest/term/axis.hpp"

namespace loopegg {

Term LoopList::term() const {
    Term t("done");
    for (auto it = items_.rbegin(); it != items_.rend(); ++it) {
        const auto space = it->first.find(' ');
        if (space == it->first.npos) t = Term(it->first, {it->second, t});
        else t = Term(it->first.substr(0, space), {Term(it->first.substr(space + 1)), it->second, t});
    }
    return t;
}

Cut cut(const Piece& p, std::int64_t k) {
    if (k >= p.extent) return {{}, p.extent > 1 ? std::optional(p.axis) : std::nullopt, 1, p.extent};
    if (k <= 1) return {p.axis, {}, p.extent, 1};
    return {Term("quo", {p.axis, Term(k)}), Term("rem", {p.axis, Term(k)}), (p.extent + k - 1) / k, k};
}

Term fused(const std::vector<Term>& axes) {
    Term t = axes[0];
    for (std::size_t i = 1; i < axes.size(); ++i) t = Term("pair", {t, axes[i]});
    return t;
}

std::int64_t largest_divisor(std::int64_t n, std::int64_t at_most) {
    for (std::int64_t d = std::min(n, at_most); d > 1; --d)
        if (n % d == 0) return d;
    return 1;
}

std::optional<std::vector<Piece>> pieces(const Statement& s, const Term& sched) {
    std::vector<Piece> all;
    for (Term t = sched; !t.is("done", 0); t = t[1]) {
        if (!t.is("at", 2)) return {};
        Piece p{t[0], axis_extent(t[0]), "", false};
        const auto walked = iterators_of(t[0]);
        for (const Term& leaf : walked) p.output = p.output || s.writes_axis(s.axis(axis_name(leaf)->name));
        if (walked.size() == 1) p.iterator = axis_name(walked[0])->name;
        all.push_back(std::move(p));
    }
    return all;
}

Roles roles(const std::vector<Piece>& all) {
    Roles r;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Piece& p = all[i];
        bool last = !p.iterator.empty();
        for (std::size_t j = i + 1; last && j < all.size(); ++j) last = all[j].iterator != p.iterator;
        if (last) r.of[p.iterator] = p;
        else (p.output ? r.outer : r.summed).push_back(p);
    }
    return r;
}

std::int64_t number(const Statement& s, std::size_t i) { return plain_statement(s.term)[i].integer().value_or(1); }
std::string operation(const Statement& s) { return plain_statement(s.term).op().text(); }

}  // namespace loopegg
