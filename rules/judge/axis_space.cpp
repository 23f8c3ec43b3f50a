#include "rules/judge/axis_space.hpp"

#include "egraph/rewrite.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

using Kind = SizeFact::Kind;

NoForm no_form(const std::string& why, std::initializer_list<Polynomial> sizes) {
    NoForm none(why);
    for (const Polynomial& p : sizes)
        for (const std::string& s : p.symbols()) none.symbols.insert(s);
    return none;
}

bool is_one(const Polynomial& p) { return p == Polynomial(1); }

bool divides(const Polynomial& part, const Polynomial& whole) {
    const auto times = whole.divided_by(part);
    return times && times->is_whole();
}

Polynomial product(std::span<const AxisPiece> pieces) {
    Polynomial all = 1;
    for (const AxisPiece& p : pieces) all = all * p.radix;
    return all;
}

std::vector<std::string> texts_of(const std::vector<AxisPiece>& pieces) {
    std::vector<std::string> all;
    for (const AxisPiece& p : pieces) all.push_back(p.text);
    return all;
}

// Whether these are the last digits of one variable, all of them: then they are its number, or the number that is left of it.
bool are_last_digits(std::span<const AxisPiece> pieces, std::size_t of_all) {
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (pieces[i].atom.empty() || pieces[i].atom != pieces[0].atom || pieces[i].digit != of_all - pieces.size() + i) return false;
    return !pieces.empty();
}

}  // namespace

std::string AxisSpace::at(std::string text, char instance) {
    for (char& c : text)
        if (c == '@') c = instance;
    return text;
}

AxisSpace::Atom& AxisSpace::atom(const std::string& name) {
    auto [it, fresh] = atoms_.try_emplace(name);
    if (fresh) it->second.digits.push_back({"@v" + std::to_string(variables_++), sizes_.extent(name)});
    used_.insert(name);
    return it->second;
}

std::vector<std::string> AxisSpace::variables(const std::string& name) {
    std::vector<std::string> all;
    for (const Digit& d : atom(name).digits) all.push_back(d.variable);
    return all;
}

SizeConditions AxisSpace::conditions(const std::string& name) {
    SizeConditions all;
    const Atom& a = atom(name);
    for (const Digit& d : a.digits) all.push_back("0 <= " + d.variable + " < " + sizes_.text(d.radix));
    std::string before;
    for (std::size_t i = a.end.size(); i-- > 0;) {  // the digits come before those of the extent
        const std::string &digit = a.digits[i].variable, end = sizes_.text(a.end[i]);
        before = before.empty() ? digit + " < " + end : "(" + digit + " < " + end + " or (" + digit + " = " + end + " and " + before + "))";
    }
    if (!before.empty()) all.push_back(before);
    return all;
}

void AxisSpace::split(const Split& s) {
    Atom& a = atom(s.atom);
    const auto at = static_cast<std::ptrdiff_t>(s.digit);
    const Polynomial radix = sizes_.resolved(a.digits[s.digit].radix), by = sizes_.resolved(s.by);
    const bool even = divides(by, radix) && !(s.digit == 0 && !a.end.empty());
    if (!even && a.end.empty()) a.end.push_back(radix);
    if (s.digit < a.end.size()) {
        const Polynomial end = sizes_.resolved(a.end[s.digit]), blocks = split_end(end, by);
        a.end[s.digit] = blocks;
        a.end.insert(a.end.begin() + at + 1, end - blocks * by);
    }
    a.digits[s.digit].radix = even ? *radix.divided_by(by) : sizes_.fresh("blocks of " + to_string(radix) + " by " + to_string(by), 1);
    a.digits.insert(a.digits.begin() + at + 1, {"@v" + std::to_string(variables_++), by});
    if (even) return;
    // The first digit is that of the last block, or one less where that block is empty.
    const Polynomial all = a.digits[0].radix, blocks = a.end[0];
    std::vector<std::vector<SizeFact>> last{{{Kind::zero, all - blocks}}};
    for (std::size_t i = 1; i < a.end.size(); ++i)
        last[0].push_back({Kind::zero, a.end[i]}), last.push_back({{Kind::zero, all - blocks - 1}, {Kind::at_least_zero, a.end[i] - 1}});
    sizes_.assume_one_of(std::move(last));
}

// A digit of an extent as whole blocks of `by` and a rest below `by`.
Polynomial AxisSpace::split_end(const Polynomial& end, const Polynomial& by) {
    if (const auto times = end.divided_by(by); times && times->is_whole()) return *times;
    const std::string symbol = *end.as_symbol(), of = symbol + " by " + to_string(by);
    const Polynomial blocks = sizes_.fresh("whole blocks of " + of, 0), rest = sizes_.fresh("rest of " + of, 0);
    sizes_.define(symbol, blocks * by + rest);
    sizes_.assume_at_least(by, rest + 1);
    return blocks;
}

bool AxisSpace::can_split(const AxisPiece& piece, const Polynomial& by) const {
    if (piece.atom.empty()) return false;
    const auto ends_inside = [&](const Polynomial& end) {
        const auto symbol = end.as_symbol();
        return divides(by, end) || (symbol && sizes_.is_free(*symbol) && !by.symbols().contains(*symbol));
    };
    const Atom& a = atoms_.at(piece.atom);
    const bool even = divides(by, piece.radix);
    if (piece.digit == 0) return a.end.empty() ? even || ends_inside(piece.radix) : ends_inside(sizes_.resolved(a.end[0]));
    return even && (piece.digit >= a.end.size() || ends_inside(sizes_.resolved(a.end[piece.digit])));
}

AxisValue AxisSpace::leaf(const Term& axis) {
    if (axis.integer()) return {};
    const std::string& name = axis.op().text();
    const Atom& a = atom(name);
    AxisValue value;
    for (std::size_t d = 0; d < a.digits.size(); ++d) value.pieces.push_back({a.digits[d].variable, sizes_.resolved(a.digits[d].radix), name, d});
    value.extent = sizes_.extent(name), value.walked = texts_of(value.pieces);
    return value;
}

AxisValue AxisSpace::value(const Term& axis, SizeConditions& conditions, std::vector<SizeFact>& needs) {
    if (axis.size() == 0) return leaf(axis);
    const auto inner = [&](std::size_t i) { return value(axis[i], conditions, needs); };
    const auto need_at_least = [&](const Polynomial& p, const Polynomial& q) { needs.push_back({Kind::at_least_zero, p - q}); };
    if (axis.is("quo", 2) || axis.is("rem", 2)) {
        const AxisValue x = inner(0);
        const Polynomial by = sizes_.value(axis[1]);
        need_at_least(by, 1);
        return quotient(x, by, axis.is("rem", 2));
    }
    if (axis.is("pair", 2)) return pair(inner(0), inner(1));
    if (axis.is("span", 3)) {
        const AxisValue x = inner(0);
        const Polynomial low = sizes_.value(axis[1]), high = sizes_.value(axis[2]);
        need_at_least(low, 0), need_at_least(high, low + 1), need_at_least(x.extent, high);
        return span(x, low, high, conditions);
    }
    if (axis.is("diag", 3)) {
        const Polynomial blocks = sizes_.value(axis[0]);
        const AxisValue a = inner(1), b = inner(2);
        need_at_least(blocks, 1);
        return diagonal(blocks, a, b, conditions);
    }
    throw NoForm("'" + to_string(axis) + "' is no axis that the judge knows");
}

std::pair<std::vector<std::string>, std::vector<std::string>> AxisSpace::values(const Term& a, const Term& b) {
    SizeConditions conditions;
    std::vector<SizeFact> needs;
    const AxisValue x = value(a, conditions, needs), y = value(b, conditions, needs);
    const bool same_digits = x.is_number && y.is_number && x.pieces.size() == y.pieces.size() &&
                             std::equal(x.pieces.begin() + !x.pieces.empty(), x.pieces.end(), y.pieces.begin() + !y.pieces.empty(),
                                        [](const AxisPiece& p, const AxisPiece& q) { return p.radix == q.radix; });
    std::pair<std::vector<std::string>, std::vector<std::string>> texts;
    if (same_digits) {
        for (const AxisPiece& p : x.pieces) texts.first.push_back(p.text);
        for (const AxisPiece& p : y.pieces) texts.second.push_back(p.text);
        return texts;
    }
    const auto first = number(x.pieces), second = number(y.pieces);
    if (!first || !second || !x.is_number || !y.is_number) throw no_form("two axes with other digits are compared", {x.extent, y.extent});
    return {{*first}, {*second}};
}

// The quotient by, or the remainder of, a size that is the radix of the lowest digits together.
AxisValue AxisSpace::quotient(const AxisValue& x, const Polynomial& by, bool remainder) {
    if (is_one(by)) return remainder ? AxisValue{} : x;
    if (!x.is_number) throw no_form("a number is taken apart whose digits overlap", {by});
    Polynomial below = 1;
    for (std::size_t i = x.pieces.size();; --i) {
        if (below == by) {
            const auto at = x.pieces.begin() + static_cast<std::ptrdiff_t>(i);
            AxisValue part;
            part.pieces.assign(remainder ? at : x.pieces.begin(), remainder ? x.pieces.end() : at);
            part.extent = product(part.pieces), part.walked = texts_of(part.pieces);
            // Of few iterations, the first digit is always 0.
            if (remainder && x.extent != product(x.pieces)) part.extent = sizes_.smallest({by, x.extent}, false);
            return part;
        }
        if (i == 0) break;
        const AxisPiece& piece = x.pieces[i - 1];
        if (divides(below * piece.radix, by)) {
            below = below * piece.radix;
            continue;
        }
        if (divides(below, by))
            if (const Polynomial times = *by.divided_by(below); can_split(piece, times)) throw Split{piece.atom, piece.digit, times};
        break;
    }
    return floored(x, by, remainder);
}

AxisValue AxisSpace::floored(const AxisValue& x, const Polynomial& by, bool remainder) {
    const auto text = number(x.pieces);
    const auto constant = by.constant();
    if (!text || !constant || constant->get_den() != 1 || *constant < 1)
        throw no_form("an axis of extent " + to_string(x.extent) + " is split by " + to_string(by), {by, x.extent});
    const std::string k = constant->get_num().get_str();
    AxisValue value;
    if (remainder) {
        value.extent = sizes_.smallest({by, x.extent}, false);
        value.pieces.push_back({"((" + *text + ") mod " + k + ")", by});
        value.walked = texts_of(value.pieces);
        return value;
    }
    const Polynomial blocks = sizes_.fresh("blocks of " + to_string(x.extent) + " by " + k, 1);
    sizes_.assume_at_least(by * blocks, x.extent);
    sizes_.assume_at_least(x.extent, by * blocks - by + 1);
    value.extent = blocks;
    value.pieces.push_back({"floor((" + *text + ")/" + k + ")", blocks});
    value.walked = texts_of(value.pieces);
    return value;
}

AxisValue AxisSpace::pair(const AxisValue& outer, const AxisValue& inner) {
    AxisValue value;
    value.pieces = outer.pieces;
    value.pieces.insert(value.pieces.end(), inner.pieces.begin(), inner.pieces.end());
    value.extent = outer.extent * inner.extent;
    value.walked = outer.walked;
    value.walked.insert(value.walked.end(), inner.walked.begin(), inner.walked.end());
    const bool one_number =
        !value.pieces.empty() && !value.pieces[0].atom.empty() && are_last_digits(value.pieces, atoms_.at(value.pieces[0].atom).digits.size());
    value.is_number = outer.is_number && inner.is_number && (product(inner.pieces) == inner.extent || one_number);
    return value;
}

std::optional<std::string> AxisSpace::number(std::span<const AxisPiece> pieces) const {
    std::string text = "0";
    mpq_class below = 1;
    for (std::size_t i = pieces.size(); i-- > 0;) {
        text += " + " + below.get_num().get_str() + "*" + pieces[i].text;
        if (i == 0) break;
        const auto radix = pieces[i].radix.constant();
        if (!radix || radix->get_den() != 1) return {};
        below *= *radix;
    }
    return text;
}

// Whether the axis has reached a bound, or has not, as a condition.
std::string AxisSpace::compared(const AxisValue& x, const Polynomial& bound, bool reached) {
    if (bound.is_zero() || bound == x.extent) return bound.is_zero() == reached ? "1 = 1" : "1 = 0";
    for (std::size_t i = 1; i <= x.pieces.size(); ++i) {
        const Polynomial below = product(std::span(x.pieces).subspan(i));
        if (!divides(below, bound)) continue;
        if (const auto text = number(std::span(x.pieces).first(i))) return *text + (reached ? " >= " : " < ") + sizes_.text(*bound.divided_by(below));
    }
    throw no_form("an axis of extent " + to_string(x.extent) + " is cut at " + to_string(bound), {bound, x.extent});
}

AxisValue AxisSpace::span(const AxisValue& x, const Polynomial& low, const Polynomial& high, SizeConditions& conditions) {
    if (low.is_zero() && high == x.extent) return x;
    if (!x.is_number || x.pieces.empty()) throw no_form("a part of an axis whose digits overlap", {low, high});
    conditions.push_back(compared(x, low, true));
    conditions.push_back(compared(x, high, false));
    AxisValue value;
    value.extent = high - low, value.walked = x.walked;
    const Polynomial below = product(std::span(x.pieces).subspan(1));
    if (divides(below, low) && divides(below, high)) {
        value.pieces = x.pieces;
        AxisPiece& top = value.pieces.front();
        if (!low.is_zero()) top.text = "(" + top.text + " - " + sizes_.text(*low.divided_by(below)) + ")";
        top.radix = *value.extent.divided_by(below), top.atom.clear();
        return value;
    }
    if (const auto text = number(x.pieces)) {
        value.pieces.push_back({"(" + *text + " - " + sizes_.text(low) + ")", value.extent});
        return value;
    }
    value.pieces = x.pieces, value.is_number = false;
    return value;
}

AxisValue AxisSpace::diagonal(const Polynomial& blocks, const AxisValue& a, const AxisValue& b, SizeConditions& conditions) {
    const auto block_of = [&](const AxisValue& x) {
        const auto size = x.extent.divided_by(blocks);
        if (!size || !size->is_whole())
            throw no_form(to_string(blocks) + " blocks need not divide an axis of extent " + to_string(x.extent), {blocks, x.extent});
        return quotient(x, *size, false);
    };
    const AxisValue first = block_of(a), second = block_of(b);
    AxisValue value = first;
    value.extent = blocks;
    value.walked.insert(value.walked.end(), second.walked.begin(), second.walked.end());
    const bool same_digits = std::equal(first.pieces.begin(), first.pieces.end(), second.pieces.begin(), second.pieces.end(),
                                        [](const AxisPiece& p, const AxisPiece& q) { return p.radix == q.radix; });
    if (same_digits) {
        for (std::size_t i = 0; i < first.pieces.size(); ++i) conditions.push_back(first.pieces[i].text + " = " + second.pieces[i].text);
        return value;
    }
    const auto x = number(first.pieces), y = number(second.pieces);
    if (!x || !y) throw no_form("a diagonal of axes that are split in different ways", {blocks, a.extent, b.extent});
    conditions.push_back("(" + *x + ") = (" + *y + ")");
    return value;
}

}  // namespace loopegg
