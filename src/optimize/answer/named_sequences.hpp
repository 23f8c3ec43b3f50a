// Names for variants: the plain operators that people know, recognised by what a restriction does, and the paper's S1
// to S3, recognised by the steps of a derivation.
#pragma once
#include <string>
#include <vector>

#include "base/term.hpp"
#include "graph/domain.hpp"
#include "nest/plan/derive_plan.hpp"

namespace loopegg {

// One word for a report: "dense", "group", "depthwise", "bottleneck", "spatial-bottleneck", "pointwise", "spatial-group" (a channel axis and rows or columns
// in blocks), "part-group" (a part of the channels in groups, the rest dense), "mixed-group" (parts with groups of their own), or "unnamed" for a restriction
// that has no such name. (A restriction that leaves out outputs that nobody reads is called "propagate", but a domain alone does not show that.) `channels` is
// the extent of the output-channel axis; it distinguishes depthwise from group.
std::string effect_name(const Domain& domain, std::int64_t channels);

// The name that the paper gives to these steps, or nothing. S1 groups a channel axis with rows or columns. S2 cuts the output channels in two and groups one
// part. S3 cuts them in two and puts one part in 2 and the other in 4 groups.
std::string paper_sequence(const std::vector<DerivationStep>& steps);

// The restriction in words: "co and ci in 4 diagonal blocks; oh keeps 1 of every 2".
std::string effect_words(const Domain& domain);

// The restriction as text that two equal domains share: "[ co/16%4=ci/16%4 ]", or "whole".
std::string domain_text(const Domain& domain);

// A layer that rules over several layers made narrower: "(conv2d ... 24 ...) instead of (conv2d ... 32 ...)".
std::string narrower_words(const Term& is, const Term& was);

}  // namespace loopegg
