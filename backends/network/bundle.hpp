// Bundles: everything a machine without TVM or network needs to check and time our code, and the way its times come back.
//
// A bundle is a folder with cubins (and their sources), operands, expected outputs, and a small runner that builds there with nvcc
// or a C++ compiler alone. The runner writes results.txt; import puts its times into the latency store.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/network/network.hpp"
#include "extract/measurer.hpp"
#include "store/address.hpp"

namespace loopegg {

struct BundleReport {
    int programs = 0;
    std::vector<std::string> left_out;   // "why: nest", for what cannot be compiled
};

// Every nest is a program of its own; the network, when given, is one more. Networks' weights are rounded to 8 bits per operand.
BundleReport write_bundle(std::span<const Term> nests, const Graph* graph, const Weights* weights, const Schedules& schedules, const Target& target,
                          const std::filesystem::path& folder);

struct BundleResult {
    std::string what;     // a nest, or "network NAME"
    bool right = false;   // its output was the expected one
    Latency latency;
    std::string why;
};
// Reads index.json and results.txt of a bundle that came back, and puts right ones into the store.
std::vector<BundleResult> import_bundle(const std::filesystem::path& folder, const StoreAddress& store);

}  // namespace loopegg
