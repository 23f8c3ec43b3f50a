// What a network does, step by step, before any code exists: fused nests and where their operands come from.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/network/network.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/fusion_rules.hpp"

namespace loopegg {

// An operand: a value of the graph by name, a scratch value between steps of one node, or constants.
struct Operand {
    std::string value;  // "" for constants; "site#1" for a scratch
    std::vector<float> constants;
    std::vector<float> int8{};  // of weights: the scales that their site has, if any (int8_calibration.hpp)
};

// A rule that spans sites (rules/fusion.rules), and the node that it took in; "" for a rule that only prepares constants.
struct FusedRule {
    std::string rule, node;
};

// One nest that is run once. There is one operand for each of Statement::buffers, and the first is what the nest writes.
struct NetworkStep {
    std::string site;  // the node that the step came from, for people
    Term nest;
    std::vector<Operand> operands;
    std::vector<FusedRule> fused{};  // the rules that made it one step, in order
};

// Data moved, not computed: dst[i...] = src[i...] over a shape with strides in floats.
struct CopyStep {
    std::string site, to, from;
    Shape shape;
    std::vector<std::int64_t> to_strides, from_strides;
    std::int64_t to_offset = 0, from_offset = 0;
    bool part = false;  // a part of a concat: the step that makes it may write it in place
};

// A node that its own code runs: an ONNX operator as it stands.
struct OpaqueStep {
    std::string site, to, node;  // node: the text of the node
    std::int64_t output = 0;
    std::vector<std::string> from;
    std::vector<Shape> shapes;  // of what the step reads
    std::int64_t count = 0;     // floats that the step writes
};

// Neighbouring nodes that rules compute block by block (nest/term/blockwise.hpp): the first of them, and the ways to do so.
struct BlockChain {
    std::string site;
    std::vector<BlockForm> forms;
};

struct NetworkPlan {
    struct Step {
        std::optional<NetworkStep> nest;
        std::optional<CopyStep> copy;
        std::optional<OpaqueStep> opaque;

        std::vector<std::string> values() const;  // the values that the step writes and reads, as often as it does; no constants
    };
    std::vector<Step> steps;
    std::map<std::string, std::int64_t> sizes;                           // floats of every value that a step writes or reads
    std::map<std::string, std::pair<std::string, std::int64_t>> inside;  // value -> (value it lies in, offset): views and parts of a concat
    std::map<std::string, std::vector<float>> constants;                 // values that are weights (parameter nodes)
};

NetworkPlan plan_network(const Graph& graph, const Weights& weights, const Schedules& schedules, const Target& target);

// What may be computed block by block. It is, where the schedule of the first site says so: (nest (blockwise ...) SCHED).
std::vector<BlockChain> block_chains(const Graph& graph, const Target& target);

// The same steps with empty constants, for callers that ask which nests run. Preparing the constants takes most of the time of a plan.
NetworkPlan plan_without_constants(const Graph& graph, const Schedules& schedules, const Target& target);

}  // namespace loopegg
