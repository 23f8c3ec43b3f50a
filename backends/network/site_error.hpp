// How far the kernels of each site of a compiled network are from the sums that they compute: a bound from the terms, and what they err on some inputs.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/network/network.hpp"
#include "nest/term/bilinear.hpp"
#include "nest/term/error_bound.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

struct SiteError {
    ErrorBound bound;
    std::optional<double> measured;  // in the unit of the bound: the largest error of a sample of outputs. None where these kernels are not run here.
};

// Kernels of one site, compiled for a target that runs here, on operands that are given. The error is that of a sample of outputs, the same for the same seed.
class SiteKernels {
public:
    // `direct` is the plain statement of the site, `value` its NEST or (prepare (bilinear ...) ROW). None where the error of these kernels is not measured:
    // they compute a part of their site, a function that is no addition and no maximum follows, or their operands need scales.
    static std::optional<SiteKernels> of(const Term& direct, const Term& value, const Target& target, KernelCache& kernels);

    // In the order of the statement: what one sum is over (W, or a first input), and the other operand.
    const Statement& direct() const { return direct_; }
    // Operands of the direct statement, then those of the epilogues, each named after its buffer.
    double error(const std::map<std::string, std::vector<float>>& operands, std::uint64_t seed) const;
    // On normal weights, and inputs that are normal, of very different sizes, and of alternating signs.
    double largest_error() const;

private:
    SiteKernels() = default;
    Statement direct_, last_;  // last_: of the nest that writes the output
    std::optional<BilinearPair> pair_;
    std::vector<Kernel> kernels_;
};

// Of every site that has a bound; `nests` are those that the network was compiled with (fused_nests).
std::map<std::string, ErrorBound> site_bounds(const Graph& graph, const std::map<std::string, Term>& nests);

// The same with the errors of the kernels that are in the folder. They are trusted: their code runs in this process.
std::map<std::string, SiteError> site_errors(const std::filesystem::path& folder, const Graph& graph);

}  // namespace loopegg
