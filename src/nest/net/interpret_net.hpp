// Runs a network term with plain loops on one image. For small networks that rules are tried on: every operator that is no site is a rectifier, and of the
// channels of a site the first ones are kept.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

struct NetImage {
    std::int64_t channels = 0;
    std::vector<float> values;  // row-major, channels first
};

// The whole nests of the sites, by name, and the weights of a whole nest.
struct NetWeights {
    std::map<std::string, Term> whole;
    std::function<std::vector<float>(const std::string& site, const Term& nest)> of;
};

// What sites computed before, by what they computed it from: networks that are compared differ in few of their sites.
using NetMemory = std::unordered_map<Term, std::map<std::pair<std::vector<std::int64_t>, std::vector<float>>, std::vector<float>>>;

// The image that comes out, or throws UserError for a term that is no network.
NetImage interpret_net(const Term& net, const NetImage& input, const NetWeights& weights, NetMemory& memory);

}  // namespace loopegg
