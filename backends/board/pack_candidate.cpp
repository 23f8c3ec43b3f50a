#include "backends/board/pack_candidate.hpp"

#include <limits>

#include "backends/kernel/reference.hpp"

namespace loopegg {
namespace {

void append(std::string& bytes, const std::vector<float>& values) { bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)); }

}  // namespace

BoardMessage pack_candidate(const Kernel& kernel, const Statement& statement, const std::vector<std::vector<float>>& operands, const std::vector<float>& wanted,
                            const TrialLimits& limits) {
    BoardMessage m;
    m.add("symbol", kernel.symbol)
        .add_count("turns", kernel.turns)
        .add_count("samples", limits.samples)
        .add("seconds", limits.seconds)
        .add_count("memory", limits.memory_mb);
    m.add("tolerance", rounding_allowed(statement)).add_count("object", static_cast<std::int64_t>(kernel.code.size()));
    m.bytes = kernel.code;
    for (std::size_t b = 0; b < kernel.parameters.size(); ++b) {
        m.add_count("buffer", kernel.parameters[b].elements);
        if (b > 0) append(m.bytes, to_storage(kernel.parameters[b], operands[b]));
    }
    std::vector<float> expected = to_storage(kernel.parameters[0], wanted);
    const std::vector<float> used = to_storage(kernel.parameters[0], std::vector<float>(wanted.size(), 1.0f));
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (used[i] == 0) expected[i] = std::numeric_limits<float>::quiet_NaN();
    append(m.bytes, expected);
    return m;
}

}  // namespace loopegg
