// Bundles hold everything that a machine without TVM or network needs to check and time our code. The times of that machine come back in the bundle.
//
// A bundle is a folder with cubins, operands, expected outputs, and a small runner that needs the driver and a C++ compiler on that machine. The runner
// writes results.txt; import puts the times into the latency store.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/network/network.hpp"
#include "base/hash.hpp"
#include "extract/measurer.hpp"
#include "store/address.hpp"

namespace loopegg {

struct BundleReport {
    int programs = 0;
    std::vector<std::string> left_out;  // "why: nest", for nests that cannot be compiled
};

struct BundleOptions {
    bool sources = true;  // each kernel's CUDA C next to its cubin
    std::function<void(std::size_t done, std::size_t all)> progress{};
};

// Every nest is a program of its own, and so is every network. This machine and the other one both draw a network's weights from a seed, with the mean and
// the spread of the original weights. So the weights need not be carried, and the network takes as long.
BundleReport write_bundle(std::span<const Term> nests, std::span<const ScheduledNetwork> networks, const Target& target, const std::filesystem::path& folder,
                          const BundleOptions& options = {});

struct BundleResult {
    Hash128 key;         // of the latency store
    std::string what;    // a nest, or "network NAME"
    bool right = false;  // the output was the expected one
    Measured measured;   // the time, or why there is none
};
// Reads index.json and results.txt of a bundle that came back. A last line without an end is not read, because the runner was killed while writing it.
// Throws UserError, with the line, for results of another bundle and for lines that no runner writes.
std::vector<BundleResult> read_results(const std::filesystem::path& folder);
// The same, and puts times and wrong outputs into the store.
std::vector<BundleResult> import_bundle(const std::filesystem::path& folder, const StoreAddress& store);

// Runs a command in a shell, with the bundle's folder in place of {}. What the command leaves in results.txt is the answer, however the command ends.
// Throws UserError where it leaves nothing.
void run_bundle(const std::string& command, const std::filesystem::path& folder);
// Throws UsageError unless {} is in the command.
void check_runner(const std::string& command);

}  // namespace loopegg
