// Index expressions over loop variables: what a loop tree says about where each instance reads and writes.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace loopegg {

// An immutable expression: constant, variable, sum, product with a constant, floor division and remainder by a positive constant.
// Every variable is >= 0, so division and remainder are the plain ones.
class Index {
public:
    enum class Kind { constant, variable, add, multiply, divide, modulo };

    Index() : Index(std::int64_t{0}) {}
    Index(std::int64_t value);
    static Index variable(int var);

    Kind kind() const;
    std::int64_t value() const;  // the constant, or the right operand of multiply, divide, modulo
    int var() const;
    const Index& left() const;   // of add, multiply, divide, modulo
    const Index& right() const;  // of add

    bool is_constant(std::int64_t v) const { return kind() == Kind::constant && value() == v; }
    bool uses(int var) const;
    void collect(std::vector<int>& vars) const;                   // appends each variable, possibly more than once
    std::int64_t at(std::span<const std::int64_t> values) const;  // values[var]

    friend Index operator+(const Index& a, const Index& b);
    friend Index operator*(const Index& a, std::int64_t k);
    friend Index operator/(const Index& a, std::int64_t k);  // k > 0
    friend Index operator%(const Index& a, std::int64_t k);  // k > 0
    friend Index operator-(const Index& a, const Index& b) { return a + b * -1; }
    friend bool operator==(const Index& a, const Index& b);

private:
    struct Node;
    explicit Index(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
    static Index make(Kind kind, std::int64_t value, const Index* left, const Index* right);
    std::shared_ptr<const Node> node_;
};

std::string to_string(const Index& index);  // "(v0*16 + v1)"

}  // namespace loopegg
