// What a nest must compute: every instance that its loops visit, in an order of our own, on whole numbers where sums are exact.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nest/run/loop_tree.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// Small whole numbers (or, for statements with functions such as exp, small fractions), one vector per buffer of the statement,
// logical and row-major; the output's is empty. The same seed gives the same values.
std::vector<std::vector<float>> sample_operands(const Statement& statement, std::uint64_t seed);

// The output, logical and row-major. Elements that no instance reaches hold the finished identity.
std::vector<float> reference_output(const Term& nest, const std::vector<std::vector<float>>& operands);

// Whether float32 sums of the sampled operands are exact in every order, so that outputs must agree bit for bit.
bool exact_on_whole_numbers(const Statement& statement);

// How far an output element may be from the reference, relative to its size where that is above 1: 0 where sums are exact, 1e-4 where functions are rounded.
double rounding_allowed(const Statement& statement);

// "" when both outputs agree within rounding_allowed, otherwise the first difference in words.
std::string difference(const Statement& statement, std::span<const float> got, std::span<const float> wanted);

}  // namespace loopegg
