// The C source of a compiled network: its steps as tables, a plain entry point, and the header that others include.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/runtime/loopegg_network.h"
#include "base/progress.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct PlacedOperand {
    bool constant = false;    // in the weights, not in the arena
    std::int64_t offset = 0;  // floats
    int port = -1;            // of a value in an input or output: which of the inputs, and then the outputs
};
struct PlacedStep {
    int kernel = -1;  // -1: a copy of operands[1] to operands[0]; -2: an opaque node writes operands[0] from the others
    std::vector<PlacedOperand> operands;
    Shape shape{};
    std::vector<std::int64_t> to_strides{}, from_strides{};
    std::string site{};
    std::vector<std::string> fused{};  // the rules over sites that made it one step, each with the node that it took in
    std::string opaque{};              // the text of an opaque node
    std::int64_t output = 0;           // which output of the opaque node this step computes
    int together = 1;                  // of this step and those behind it, how many need nothing of each other
    std::vector<Shape> read_shapes{};  // of what an opaque node reads; shape[0] is how much it writes
};
struct PlacedNetwork {
    std::string name;
    std::vector<GraphInput> inputs, outputs;
    std::vector<std::int64_t> input_offsets, output_offsets;
    std::vector<PlacedOperand> output_places;
    std::vector<Kernel> kernels;
    std::vector<PlacedStep> steps;
    std::int64_t arena = 0;
    std::vector<float> weights;
    double kernel_seconds = 0;                      // processor time of compiling the kernels
    std::map<std::string, std::int64_t> constants;  // where values that are weights are, by name
};

// A table of C. C has no empty arrays: `none` represents one.
std::string c_table(const char* type, const char* name, std::vector<std::string> rows, const char* none, const char* between = ",\n    ");

// Compiles the steps of a plan and gives everything its place. `nests` gets the distinct nests, in the order of the kernels.
struct NetworkPlan;
PlacedNetwork place_network(const Graph& graph, NetworkPlan plan, const Target& target, Progress* progress, std::vector<Term>& nests, KernelCache& cache);

// Writes a planned network as compile_network does.
void compile_plan(const Graph& graph, NetworkPlan plan, const Target& target, const std::filesystem::path& folder, Progress* progress);

// What a program that was built with another version of network.h cannot use has another number. 1: one call at a time, names without a prefix.
constexpr int network_abi = loopeggrt_abi_version;

// What the names in network.h begin with: "loopegg_resnet18_". `with_prefix` puts it into a text in place of "NAME_".
std::string network_prefix(const std::string& name);
std::string with_prefix(std::string text, const std::string& prefix);

// What the file of a kernel is called in the folder of a network: its object, or its source for a GPU.
std::string kernel_file(std::size_t index, const Target& target);

std::string network_source(const PlacedNetwork& network);
std::string gpu_network_source(const PlacedNetwork& network, const std::vector<std::string>& cubins);  // one cubin for each kernel
std::string network_header(const PlacedNetwork& network, const Target& target);
std::string exported_names(const PlacedNetwork& network);  // the linker's script, by which network.so shows the names of network.h alone

// Different weights have different fingerprints, also where there are equally many. So the library refuses a file of other weights.
std::uint64_t weights_fingerprint(const std::vector<float>& values);

// The tables that the runtime of a CPU network reads (backends/runtime/loopegg_network.h), made from a network whose values have their places.

// Pointers between tables are left null: whoever writes the tables down writes them.
struct NetworkTables {
    std::vector<loopegg_step> steps;
    std::vector<loopegg_operand> operands, output_places;
    std::vector<loopegg_dimension> dimensions;
    std::vector<loopegg_operator> operators;
    std::vector<std::string> nodes;  // one for each of `operators`
    std::vector<long> operator_dims;
    std::vector<std::int64_t> input_sizes, output_sizes, input_offsets, output_offsets;
    loopegg_tables counts{};  // the numbers alone
};

NetworkTables network_tables(const PlacedNetwork& network);

}  // namespace loopegg
