#include "nest/term/error_bound.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "nest/term/bilinear.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/value.hpp"
#include "nest/term/wrapped_statement.hpp"

namespace loopegg {
namespace {

constexpr double float32_unit = 0x1p-24;
constexpr std::int64_t of_weights = 2, of_coefficients = 3, of_scaling = 4;

double operand_rounding(const std::string& kind) {
    if (kind == "float32") return 0;
    if (kind == "bf16") return 0x1p-8;
    if (kind == "tf32" || kind == "fp16") return 0x1p-11;
    if (kind == "int8") return 1.0 / 253;
    throw InternalFault("numbers of the kind '" + kind + "' have no unit of rounding");
}

double gamma_of(std::int64_t roundings) { return static_cast<double>(roundings) * float32_unit / (1 - static_cast<double>(roundings) * float32_unit); }

std::int64_t products_in_sum(const Statement& s) {
    std::int64_t n = 1;
    for (const Iterator& axis : s.axes)
        if (axis.role == AxisRole::reduction) n *= axis.extent;
    return n;
}

bool is_sum_of_products(const Statement& s) {
    return s.combine == Combine::sum && s.reads.size() == 2 && s.coefficients.empty() && s.value.is("*", 2) && s.value[0].size() == 0 &&
           s.value[1].size() == 0 && s.value[0] != s.value[1];
}

std::int64_t additions_after(const Term& stmt) {
    if (!is_wrapper(stmt)) return 0;
    const bool adds = stmt.is("epilogue", 2) && stmt[0].size() == 0 && (stmt[0].op().text() == "bias" || stmt[0].op().text() == "add");
    return adds + additions_after(stmt[stmt.size() - 1]);
}

double growth_of(const BilinearForm& form) {
    const auto output = form.output.values(), weights = form.weights.values(), input = form.input.values();
    double most = 0;
    for (const auto& row : output)
        for (std::size_t tap = 0; tap < weights.front().size(); ++tap) {
            double sum = 0;
            for (std::size_t product = 0; product < row.size(); ++product) {
                double inputs = 0;
                for (double b : input[product]) inputs += std::fabs(b);
                sum += std::fabs(row[product]) * std::fabs(weights[product][tap]) * inputs;
            }
            most = std::max(most, sum);
        }
    return most;
}

std::int64_t longest_row(const RationalMatrix& matrix) {
    std::int64_t most = 0;
    for (const auto& row : matrix.entries)
        most = std::max<std::int64_t>(most, std::count_if(row.begin(), row.end(), [](const Rational& r) { return r.over != 0; }));
    return most;
}

std::int64_t of_transform(const RationalMatrix& down, const RationalMatrix& along) { return longest_row(down) * longest_row(along) + of_coefficients; }

std::string operands_of_nest(const Term& nest) {
    const std::set<std::string> kinds = roundings_of(nest);
    return kinds.empty() ? "float32" : *kinds.begin();
}

ErrorBound with_bound(ErrorBound b) {
    const double of_one = operand_rounding(b.operands), of_both = of_one * (2 + of_one), sum = gamma_of(b.roundings);
    b.bound = b.growth * (of_both + sum + of_both * sum);  // (1 + of_one)^2 (1 + sum) - 1, without the cancellation
    return b;
}

std::optional<ErrorBound> bound_of_row(const BilinearPair& pair, const std::vector<Term>& nests) {
    if (nests.size() != 3) return {};
    const Statement products = statement_in(nests[1]);
    if (!is_sum_of_products(products)) return {};
    const std::int64_t channels = products_in_sum(products);
    ErrorBound b;
    b.terms = channels * pair.down.taps() * pair.along.taps();
    b.operands = operands_of_nest(nests[1]);
    b.roundings = of_weights + of_transform(pair.down.input, pair.along.input) + (b.operands == "int8" ? of_scaling : channels) +
                  of_transform(pair.down.output, pair.along.output) + additions_after(nest_parts(nests[2]).statement);
    b.growth = growth_of(pair.down) * growth_of(pair.along);
    return with_bound(b);
}

}  // namespace

std::optional<ErrorBound> error_bound(const Term& value) {
    if (value.is("prepare", 2)) {
        const auto pair = bilinear_pair(value[0]);
        return pair ? bound_of_row(*pair, nests_of(value[1])) : std::nullopt;
    }
    if (is_value(value)) return {};
    const NestParts parts = nest_parts(value);
    if (parts.restore == "pointwise") return {};
    const Statement s = statement_of(parts.statement);
    if (!is_sum_of_products(s)) return {};
    ErrorBound b;
    b.terms = products_in_sum(s);
    b.operands = operands_of_nest(value);
    b.roundings = (b.operands == "int8" ? of_scaling : b.terms) + additions_after(parts.statement);
    return with_bound(b);
}

}  // namespace loopegg
