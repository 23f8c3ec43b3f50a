// Lowers loop trees to TIR: the loops come in exactly the order of the term, and nothing is added.
#pragma once
#include "backends/kernel/kernel.hpp"
#include "backends/lower/tir.hpp"

namespace loopegg {

struct LoweredNest {
    tv::Obj function;  // one PrimFunc
    std::vector<KernelBuffer> parameters;
    Launch launch;
    std::int64_t turns = 0;   // of its parallel loops on a CPU (loopeggrt_team_turns); 0: it has none, or they are not known
    std::uint32_t units = 0;  // matrix units that it needs (runtime/loopegg_runtime.h)
};

LoweredNest lower_nest(const Term& nest, const Target& target, const std::string& name);

// The code of a nest for one core of a CPU, to stand inside other code; its buffers are parts of others, one view for each.
tv::Obj nest_code(const Term& nest, const Target& target, const std::vector<struct OperandView>& views);

// What is computed block by block (nest/term/blockwise.hpp), as one function.
LoweredNest lower_blockwise(const Term& nest, const Target& target, const std::string& name);

// Where the loops of a tree read a weight, and in which order (see WeightReader). Empty for a weight that keeps its own layout.
std::vector<WeightReader> weight_readers(const Statement& statement, const LoopTree& tree, int buffer);

// The smallest and largest value of an index when every variable v runs from 0 to extents[v]-1.
struct Bounds {
    std::int64_t low = 0, high = 0;
};
Bounds interval(const Index& index, const std::vector<std::int64_t>& extents);
std::vector<std::int64_t> extents_of(const LoopTree& tree);  // by variable

// An index as offset + sum of coefficients * atoms; atoms are variables, quotients and remainders.
struct LinearForm {
    std::int64_t offset = 0;
    std::vector<std::pair<Index, std::int64_t>> terms;
};
LinearForm linear(const Index& index);

}  // namespace loopegg
