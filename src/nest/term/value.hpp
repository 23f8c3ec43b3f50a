// Sites in a row as terms: what one nest computes and the next one reads.
//
//   VALUE ::= (site NEST)            what the nest computes of its operands: the buffers of its statement but O, in their order
//           | (then VALUE NEST)      what the nest computes of VALUE, which the nest reads as I and which nothing else reads; the other operands
//                                    of the nest come after those of VALUE
//           | (feed BUFFER VALUE NEST) what the nest computes where it reads VALUE as BUFFER, the operands of VALUE standing in the place of BUFFER
//           | (prepare HOW VALUE)    VALUE of constants that are worked out once, before anything runs
//           | (with VALUE NEST)      VALUE, and what the nest computes of it: the next nest reads VALUE as I, and the other as J, or as K where there is a J
//           | (both VALUE NEST NEST) what two nests compute of VALUE: the next nest reads the first as I and the second as J
//           | (sums VALUE NEST NEST) the same, where both nests add VALUE up in the blocks in which it comes
//           | (columns K NEST)       the same as (site NEST), which computes K of its columns at a time
//           | (blocks K VALUE)       VALUE, which is read K of its columns at a time (blockwise.hpp)
//   HOW   ::= fold-bias              operands ... bias scale shift ... become ... scale shift+bias*scale ...
//           | fold-scale             operands W ... scale shift ... become W*scale ... shift ...: each output channel's weights by its scale
//           | (bilinear DOWN ALONG)  operands W I ... become I U ...: U is W transformed by these algorithms (bilinear.hpp)
//
// A bias, a scale and a shift are constants of the output channels. Rules over values are the ones that span sites (rules/fusion.rules).
#pragma once
#include <string_view>
#include <vector>

#include "nest/term/statement.hpp"

namespace loopegg {

using Operands = std::vector<std::vector<float>>;

// Whether the term is a VALUE, by its operator.
bool is_value(const Term& term);

// The operands of a VALUE, in order. Throws UserError for what is no value: a nest that cannot read what comes before it, a preparation
// that finds no operands to work on.
std::vector<Buffer> operands_of(const Term& value);

// What `how` makes of the operands of a (prepare HOW VALUE); `after` are the operands of VALUE.
Operands prepared(const Term& how, const std::vector<Buffer>& after, Operands operands);

// The nests of a value that prepares nothing, in the order in which they run.
std::vector<Term> nests_of(const Term& value);

// Runs the nests one after another with the interpreter.
std::vector<float> interpret_value(const Term& value, const Operands& operands);

}  // namespace loopegg
