#include "base/term.hpp"

#include "base/error.hpp"
#include "base/number.hpp"

namespace loopegg {

struct Term::Node {
    Symbol op;
    std::size_t hash;
    std::vector<Term> children;
};

Term::Term(Symbol op, std::vector<Term> children) {
    std::size_t h = std::hash<Symbol>{}(op) + children.size();
    for (const Term& c : children) h = (h ^ (c.hash() + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2))) * 0xff51afd7ed558ccdull;
    node_ = std::make_shared<const Node>(Node{op, h, std::move(children)});
}

Term::Term(std::int64_t value) : Term(Symbol(std::to_string(value))) {}

Symbol Term::op() const {
    require(node_ != nullptr, "op() of no term");
    return node_->op;
}

std::span<const Term> Term::children() const {
    require(node_ != nullptr, "children() of no term");
    return node_->children;
}

bool Term::is(std::string_view op, std::size_t arity) const { return node_ && size() == arity && node_->op.text() == op; }

std::optional<std::int64_t> Term::integer() const {
    if (!node_ || size() != 0) return std::nullopt;
    return integer_of(op());
}

std::size_t Term::hash() const { return node_ ? node_->hash : 0; }

bool operator==(const Term& a, const Term& b) {
    if (a.node_ == b.node_) return true;
    if (!a.node_ || !b.node_ || a.hash() != b.hash() || a.op() != b.op() || a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i])) return false;
    return true;
}

namespace {

void print(const Term& term, std::string& out) {
    if (term.size() == 0) {
        out += term.op().text();
        return;
    }
    out += '(';
    out += term.op().text();
    for (const Term& c : term.children()) out += ' ', print(c, out);
    out += ')';
}

}  // namespace

std::string to_string(const Term& term) {
    std::string out;
    if (term) print(term, out);
    return out;
}

Term with_replaced(const Term& whole, const Term& part, const Term& by) {
    if (whole == part) return by;
    std::vector<Term> children;
    for (const Term& c : whole.children()) children.push_back(with_replaced(c, part, by));
    return children.empty() ? whole : Term(whole.op(), std::move(children));
}

std::optional<std::int64_t> integer_of(Symbol op) { return number_in<std::int64_t>(op.text()); }

}  // namespace loopegg
