// Small matrices of rational numbers as leaves of terms: [1,0,-1/2|0,1,1] has two rows. A term that holds its matrices means the same in every process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

struct Rational {  // in lowest terms, under > 0
    std::int64_t over = 0, under = 1;
    double value() const { return static_cast<double>(over) / static_cast<double>(under); }
    friend bool operator==(const Rational&, const Rational&) = default;
};

// "3", "-1/24", "0.5" is none. None as well where numerator or denominator has more than 9 digits, or the denominator is 0.
std::optional<Rational> rational(std::string_view text);
std::string to_string(const Rational& r);

struct RationalMatrix {
    std::vector<std::vector<Rational>> entries;  // rows of one length, at least one of each
    std::int64_t rows() const { return static_cast<std::int64_t>(entries.size()); }
    std::int64_t columns() const { return static_cast<std::int64_t>(entries.front().size()); }
    std::vector<std::vector<double>> values() const;
    friend bool operator==(const RationalMatrix&, const RationalMatrix&) = default;
};

constexpr std::int64_t most_matrix_side = 64;  // of a matrix that is read

// None where the text is no matrix, or one with a side above most_matrix_side.
std::optional<RationalMatrix> rational_matrix(std::string_view text);
std::string to_string(const RationalMatrix& matrix);

}  // namespace loopegg
