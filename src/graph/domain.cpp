#include "graph/domain.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/text.hpp"
#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::string_view, 4> restore_names{"none", "repeat", "zero", "pointwise"};  // in the order of Restore

std::string digit_text(const Digit& d) { return d.stride == 1 ? fmt::format("{}%{}", d.axis, d.radix) : fmt::format("{}/{}%{}", d.axis, d.stride, d.radix); }

// Takes tokens off the front of a condition.
class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    bool take(std::string_view token) {
        blanks();
        if (!rest_.starts_with(token)) return false;
        rest_.remove_prefix(token.size());
        return true;
    }
    bool number(std::int64_t& out) {
        blanks();
        auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
        if (error != std::errc{} || out < 0) return false;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return true;
    }
    bool digit(Digit& out) {
        blanks();
        std::size_t n = 0;
        while (n < rest_.size() && rest_[n] >= 'a' && rest_[n] <= 'z') ++n;
        out.axis = rest_.substr(0, n);
        rest_.remove_prefix(n);
        out.stride = 1;
        return n > 0 && (!take("/") || number(out.stride)) && take("%") && number(out.radix);
    }
    bool done() {
        blanks();
        return rest_.empty();
    }

private:
    void blanks() {
        while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    }
    std::string_view rest_;
};

void check_digit(const Digit& d, const std::vector<Axis>& axes) {
    auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == d.axis; });
    if (axis == axes.end()) {
        std::vector<std::string> names;
        for (const Axis& a : axes) names.push_back(a.name);
        throw NodeProblem{fmt::format("the domain speaks of an axis '{}', the node has {}", d.axis, join(names, " ")), "domain"};
    }
    if (d.stride < 1 || d.radix < 1 || d.stride > axis->extent || d.radix > axis->extent)
        throw NodeProblem{fmt::format("{} is no digit of an axis of extent {}", digit_text(d), axis->extent), "domain"};
}

// A hostile file must not make the set arithmetic run for hours.
void check_size(const Domain& domain, const std::vector<Axis>& named) {
    double outputs = 1;
    for (const Axis& axis : named) {
        if (axis.extent > (1 << 20)) throw NodeProblem{fmt::format("a domain over an axis of extent {}: at most 2^20 is possible", axis.extent), "domain"};
        if (!axis.reduction) outputs *= static_cast<double>(axis.extent);
    }
    if (outputs > 0x1p28) throw NodeProblem{"a domain over more than 2^28 outputs", "domain"};
    for (const DomainPart& part : domain.parts) {
        double blocks = 1;
        for (const DigitPair& p : part.diagonals) blocks *= static_cast<double>(p.first.radix);
        if (blocks > 1e6) throw NodeProblem{"a part of the domain has more than 10^6 diagonal blocks", "domain"};
    }
}

// Whether the parts have different values of one digit, so that they cannot overlap.
bool cut_apart(const DomainPart& a, const DomainPart& b) {
    return std::any_of(a.ranges.begin(), a.ranges.end(), [&](const DigitRange& r) {
        return std::any_of(b.ranges.begin(), b.ranges.end(), [&](const DigitRange& s) { return r.digit == s.digit && (r.hi <= s.lo || s.hi <= r.lo); });
    });
}

}  // namespace

bool Domain::contains(const std::map<std::string, std::int64_t>& instance) const {
    auto of = [&](const Digit& d) { return d.of(instance.at(d.axis)); };
    return whole() || std::any_of(parts.begin(), parts.end(), [&](const DomainPart& part) {
               return std::all_of(part.ranges.begin(), part.ranges.end(), [&](const DigitRange& r) { return r.lo <= of(r.digit) && of(r.digit) < r.hi; }) &&
                      std::all_of(part.diagonals.begin(), part.diagonals.end(), [&](const DigitPair& p) { return of(p.first) == of(p.second); });
           });
}

void check_domain(const Domain& domain, const std::vector<Axis>& all_axes) {
    if (domain.whole()) {
        if (domain.restore != Restore::none) throw NodeProblem{"a domain with a restore needs parts", "domain"};
        return;
    }
    if (all_axes.empty()) throw NodeProblem{"only conv2d, linear and matmul have a domain", "domain"};
    if (domain.restore == Restore::pointwise) throw NodeProblem{"outputs come back pointwise by a convolution of their own, not by a domain", "domain"};
    if (domain.parts.size() > 256) throw NodeProblem{"a domain of more than 256 parts", "domain"};
    for (const DomainPart& part : domain.parts) {
        for (const DigitRange& r : part.ranges) {
            check_digit(r.digit, all_axes);
            if (r.lo < 0 || r.lo >= r.hi || r.hi > r.digit.radix)
                throw NodeProblem{fmt::format("'{}' is empty or beyond the digit's {} values", to_string(r), r.digit.radix), "domain"};
        }
        for (const DigitPair& p : part.diagonals) {
            check_digit(p.first, all_axes), check_digit(p.second, all_axes);
            if (p.first.radix != p.second.radix) throw NodeProblem{fmt::format("'{}' pairs digits of different radix", to_string(p)), "domain"};
        }
    }
    std::vector<Axis> axes = axes_named_by(domain, all_axes);
    check_size(domain, axes);
    for (std::size_t i = 0; i < domain.parts.size(); ++i) {
        if (product_sets(Domain{{domain.parts[i]}}, axes).empty()) throw NodeProblem{fmt::format("part {} of the domain is empty", i), "domain"};
        for (std::size_t j = 0; j < i; ++j) {
            if (cut_apart(domain.parts[i], domain.parts[j])) continue;
            DomainPart both = domain.parts[i];
            both.ranges.insert(both.ranges.end(), domain.parts[j].ranges.begin(), domain.parts[j].ranges.end());
            both.diagonals.insert(both.diagonals.end(), domain.parts[j].diagonals.begin(), domain.parts[j].diagonals.end());
            if (!product_sets(Domain{{both}}, axes).empty()) throw NodeProblem{fmt::format("parts {} and {} of the domain overlap", j, i), "domain"};
        }
    }
    if (domain.restore == Restore::none) {
        std::vector<std::string> outputs;
        for (const Axis& axis : axes)
            if (!axis.reduction) outputs.push_back(axis.name);
        std::vector<char> written = projection(domain, axes, outputs);
        if (std::count(written.begin(), written.end(), 0))
            throw NodeProblem{"the domain leaves outputs that nothing computes: it needs a restore (repeat or zero)", "domain"};
    }
}

std::string to_string(const DigitRange& r) { return fmt::format("{} <= {} < {}", r.lo, digit_text(r.digit), r.hi); }
std::string to_string(const DigitPair& p) { return fmt::format("{} == {}", digit_text(p.first), digit_text(p.second)); }
std::string to_string(Restore restore) { return std::string(restore_names[static_cast<std::size_t>(restore)]); }

std::string restore_word(Restore restore) { return restore == Restore::none ? "" : to_string(restore); }

std::optional<Restore> restore_named(std::string_view name) {
    const auto it = std::find(restore_names.begin() + 1, restore_names.end(), name);
    return it == restore_names.end() ? std::nullopt : std::optional(static_cast<Restore>(it - restore_names.begin()));
}

std::string to_string(const Domain& domain) {
    if (domain.whole()) return "whole";
    std::vector<std::string> parts;
    for (const DomainPart& part : domain.parts) {
        std::vector<std::string> conditions;
        for (const DigitRange& r : part.ranges) conditions.push_back(to_string(r));
        for (const DigitPair& p : part.diagonals) conditions.push_back(to_string(p));
        parts.push_back(conditions.empty() ? "all" : join(conditions, " and "));
    }
    std::string text = join(parts, " or ");
    return domain.restore == Restore::none ? text : text + ", restore " + to_string(domain.restore);
}

std::string add_condition(DomainPart& part, const std::string& text) {
    Scanner range(text), pair(text);
    if (DigitRange r; range.number(r.lo) && range.take("<=") && range.digit(r.digit) && range.take("<") && range.number(r.hi) && range.done()) {
        part.ranges.push_back(r);
        return "";
    }
    if (DigitPair p; pair.digit(p.first) && pair.take("==") && pair.digit(p.second) && pair.done()) {
        part.diagonals.push_back(p);
        return "";
    }
    return "expected a condition such as \"0 <= oh%2 < 1\" or \"co/16%4 == ci/16%4\"";
}

}  // namespace loopegg
