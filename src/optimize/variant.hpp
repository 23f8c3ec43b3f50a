// What discovery finds: restricted nests, the steps that lead to them, and where they may be used.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/term.hpp"
#include "base/verdict.hpp"
#include "graph/domain.hpp"
#include "nest/plan/derivation_step.hpp"

namespace loopegg {

// A restricted nest, the same for every site of its kind.
struct Variant {
    std::size_t kind = 0;                   // into Sites::kinds
    Domain domain;                          // whole() for the original, which is variant 0 of every kind
    Term nest;                              // a naive nest over the domain
    std::int64_t macs = 0, parameters = 0;  // of all nests of the variant
    std::vector<DerivationStep> steps;
    std::vector<nlohmann::json> proofs;  // what the steps were read from, for an independent checker to replay, in order
    std::string effect;                  // named_sequences.hpp
    bool unpaid = false;                 // no counted network of this class was returned with these neural steps, so tuning them is not worth its time

    bool two_nests() const { return domain.restore == Restore::pointwise; }  // the site's own nest, and the convolution that brings its channels back
};

// A variant at one site, with what the guard said of it.
struct Admission {
    std::size_t site = 0, variant = 0;
    Verdict verdict;
    // The only reader of outputs that the variant leaves out. The variant is exact where this reader gets a variant that does not read these outputs
    // (hidden_widths.hpp).
    std::optional<std::size_t> reader{};
};

}  // namespace loopegg
