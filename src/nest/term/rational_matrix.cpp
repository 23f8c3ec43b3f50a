#include "nest/term/rational_matrix.hpp"

#include <numeric>

#include "base/number.hpp"
#include "base/text.hpp"

namespace loopegg {

std::optional<Rational> rational(std::string_view text) {
    constexpr std::int64_t most = 999'999'999;
    const std::size_t bar = text.find('/');
    const auto over = number_in<std::int64_t>(text.substr(0, bar));
    const auto under = bar == text.npos ? std::optional<std::int64_t>(1) : number_in<std::int64_t>(text.substr(bar + 1));
    if (!over || !under || *over > most || *over < -most || *under < 1 || *under > most) return {};
    const std::int64_t common = std::gcd(*over, *under);
    return Rational{*over / common, *under / common};
}

std::string to_string(const Rational& r) { return std::to_string(r.over) + (r.under == 1 ? "" : "/" + std::to_string(r.under)); }

std::vector<std::vector<double>> RationalMatrix::values() const {
    std::vector<std::vector<double>> all;
    for (const auto& row : entries) {
        all.emplace_back();
        for (const Rational& r : row) all.back().push_back(r.value());
    }
    return all;
}

std::optional<RationalMatrix> rational_matrix(std::string_view text) {
    if (text.size() < 3 || text.front() != '[' || text.back() != ']') return {};
    RationalMatrix matrix;
    for (const std::string& row : split(text.substr(1, text.size() - 2), '|')) {
        auto& entries = matrix.entries.emplace_back();
        for (const std::string& entry : split(row, ',')) {
            const auto number = rational(entry);
            if (!number) return {};
            entries.push_back(*number);
        }
        if (entries.size() != matrix.entries.front().size()) return {};
    }
    if (matrix.entries.empty() || matrix.entries.front().empty() || matrix.rows() > most_matrix_side || matrix.columns() > most_matrix_side) return {};
    return matrix;
}

std::string to_string(const RationalMatrix& matrix) {
    std::string text = "[";
    for (std::size_t r = 0; r < matrix.entries.size(); ++r)
        for (std::size_t c = 0; c < matrix.entries[r].size(); ++c) text += (c > 0 ? "," : r > 0 ? "|" : "") + to_string(matrix.entries[r][c]);
    return text + "]";
}

}  // namespace loopegg
