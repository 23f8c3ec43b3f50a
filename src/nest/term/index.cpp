#include "nest/term/index.hpp"

#include "base/error.hpp"

namespace loopegg {

struct Index::Node {
    Kind kind;
    std::int64_t value;
    Index left, right;
    Node(Kind k, std::int64_t v) : kind(k), value(v), left(std::shared_ptr<const Node>()), right(std::shared_ptr<const Node>()) {}
    Node(Kind k, std::int64_t v, const Index& l, const Index& r) : kind(k), value(v), left(l), right(r) {}
};

Index::Index(std::int64_t value) : node_(std::make_shared<Node>(Kind::constant, value)) {}

Index Index::variable(int var) { return Index(std::make_shared<const Node>(Kind::variable, var)); }

Index Index::make(Kind kind, std::int64_t value, const Index* left, const Index* right) {
    return Index(std::make_shared<const Node>(kind, value, *left, right ? *right : Index(std::shared_ptr<const Node>())));
}

Index::Kind Index::kind() const { return node_->kind; }
std::int64_t Index::value() const { return node_->value; }
int Index::var() const { return static_cast<int>(node_->value); }
const Index& Index::left() const { return node_->left; }
const Index& Index::right() const { return node_->right; }

bool Index::uses(int var) const {
    switch (kind()) {
        case Kind::constant: return false;
        case Kind::variable: return this->var() == var;
        case Kind::add: return left().uses(var) || right().uses(var);
        default: return left().uses(var);
    }
}

void Index::collect(std::vector<int>& vars) const {
    switch (kind()) {
        case Kind::constant: return;
        case Kind::variable: vars.push_back(var()); return;
        case Kind::add:
            left().collect(vars);
            right().collect(vars);
            return;
        default: left().collect(vars);
    }
}

std::int64_t Index::at(std::span<const std::int64_t> values) const {
    switch (kind()) {
        case Kind::constant: return value();
        case Kind::variable: return values[static_cast<std::size_t>(var())];
        case Kind::add: return left().at(values) + right().at(values);
        case Kind::multiply: return left().at(values) * value();
        case Kind::divide: return left().at(values) / value();
        case Kind::modulo: return left().at(values) % value();
    }
    throw InternalFault("an index expression of no kind");
}

Index operator+(const Index& a, const Index& b) {
    using K = Index::Kind;
    if (a.is_constant(0)) return b;
    if (b.is_constant(0)) return a;
    if (a.kind() == K::constant && b.kind() == K::constant) return Index(a.value() + b.value());
    if (a.kind() == K::constant) return b + a;
    // Constants gather on the right, so that equal sums are written equally.
    if (a.kind() == K::add && a.right().kind() == K::constant) {
        if (b.kind() == K::constant) return a.left() + Index(a.right().value() + b.value());
        return (a.left() + b) + a.right();
    }
    if (b.kind() == K::add && b.right().kind() == K::constant) return (a + b.left()) + b.right();
    return Index::make(K::add, 0, &a, &b);
}

Index operator*(const Index& a, std::int64_t k) {
    using K = Index::Kind;
    if (k == 0) return Index(0);
    if (k == 1) return a;
    if (a.kind() == K::constant) return Index(a.value() * k);
    if (a.kind() == K::multiply) return a.left() * (a.value() * k);
    if (a.kind() == K::add) return a.left() * k + a.right() * k;
    return Index::make(K::multiply, k, &a, nullptr);
}

Index operator/(const Index& a, std::int64_t k) {
    using K = Index::Kind;
    require(k > 0, "an index is divided by a positive number");
    if (k == 1) return a;
    if (a.kind() == K::constant && a.value() >= 0) return Index(a.value() / k);
    if (a.kind() == K::divide) return a.left() / (a.value() * k);
    return Index::make(K::divide, k, &a, nullptr);
}

Index operator%(const Index& a, std::int64_t k) {
    using K = Index::Kind;
    require(k > 0, "an index is divided by a positive number");
    if (k == 1) return Index(0);
    if (a.kind() == K::constant && a.value() >= 0) return Index(a.value() % k);
    return Index::make(K::modulo, k, &a, nullptr);
}

bool operator==(const Index& a, const Index& b) {
    if (a.node_ == b.node_) return true;
    if (!a.node_ || !b.node_) return false;
    return a.kind() == b.kind() && a.value() == b.value() && a.left() == b.left() && a.right() == b.right();
}

std::string to_string(const Index& index) {
    using K = Index::Kind;
    auto number = std::to_string(index.value());
    switch (index.kind()) {
        case K::constant: return number;
        case K::variable: return "v" + number;
        case K::add: return "(" + to_string(index.left()) + " + " + to_string(index.right()) + ")";
        case K::multiply: return to_string(index.left()) + "*" + number;
        case K::divide: return to_string(index.left()) + "/" + number;
        case K::modulo: return to_string(index.left()) + "%" + number;
    }
    return {};
}

}  // namespace loopegg
