// Names for what a restriction does, whatever steps led to it: the paper's S1 to S3, and the plain operators that people know.
#pragma once
#include <string>

#include "base/term.hpp"
#include "graph/domain.hpp"

namespace loopegg {

// One word for a report: "dense", "group", "depthwise", "bottleneck", "spatial-bottleneck", "pointwise", "S1", "S2", "S3", "mixed-group",
// or "unnamed" for a restriction that has no such name. (A restriction that leaves out outputs that nobody reads is called "propagate", but a domain
// alone does not tell that.) `channels` is the extent of the output-channel axis; it tells depthwise from group.
std::string effect_name(const Domain& domain, std::int64_t channels);

// The restriction in words: "co and ci in 4 diagonal blocks; oh keeps 1 of every 2".
std::string effect_words(const Domain& domain);

// A layer that rules over several layers made narrower: "(conv2d ... 24 ...) instead of (conv2d ... 32 ...)".
std::string narrower_words(const Term& is, const Term& was);

// What is restricted and how outputs are restored, whatever the sizes: "ci part none", "co part repeat", "ci co blocks none". Empty for the whole domain.
std::string restriction_kind(const Domain& domain);

}  // namespace loopegg
