// What rules that span sites ask of a statement.
#pragma once
#include <string>

#include "base/term.hpp"

namespace loopegg {

bool is_convolution(const Term& stmt);               // a convolution with nothing after its sums but its own bias
bool is_weighted_sum(const Term& stmt);              // the statement sums products with weights, and nothing comes after
bool has_weights(const Term& stmt);                  // the statement sums products with weights, whatever comes after
bool is_beyond_map(const Term& stmt);                // the statement does more than a function of each element
bool is_epilogue_function(const std::string& word);  // may be in (map F ...) and in (epilogue F ...) alike

}  // namespace loopegg
