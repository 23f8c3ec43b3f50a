// What rules that span sites ask of a statement.
#pragma once
#include <string>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

bool is_convolution(const Term& stmt);               // a convolution with nothing after its sums but its own bias
bool is_weighted_sum(const Term& stmt);              // the statement sums products with weights, and nothing comes after
bool has_weights(const Term& stmt);                  // the statement sums products with weights, whatever comes after
bool is_beyond_map(const Term& stmt);                // the statement does more than a function of each element
bool has_separate_columns(const Term& stmt);         // a product of matrices that reads nothing else: its columns can be computed by themselves
bool works_by_element(const Term& stmt);             // an element of the output depends only on the same element of the input
bool works_by_pair(const Term& stmt);                // and on one element of another operand
bool sums_columns(const Term& stmt);                 // a product of matrices, or the sum of each row, with nothing after it
std::vector<Term> column_blocks(const Term& stmt);   // of such a sum: how many columns it may add up at a time
bool is_epilogue_function(const std::string& word);  // may be in (map F ...) and in (epilogue F ...) alike

}  // namespace loopegg
