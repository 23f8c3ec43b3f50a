#include "graph/opaque.hpp"

#include <memory>
#include <mutex>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"
#include "codec_places.hpp"
#include "graph/onnx/evaluate/budget.hpp"
#include "graph/onnx/onnx_attrs.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

// What goes into an opaque node, and what its evaluation for a shape may make.
constexpr std::int64_t max_elements = std::int64_t{1} << 26;

// Reading and evaluating for shapes are asked for again and again, from several threads.
struct Known {
    OpaqueNode opaque;
    Shape shape;
    int type;
};

std::shared_ptr<const Known> known(const Node& node) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const Known>> all;
    std::string key = node.text("node") + "#" + std::to_string(node.integer("output"));
    for (const Shape& s : node.input_shapes) key += "," + to_string(s);
    std::lock_guard lock(mutex);
    if (auto found = all.find(key); found != all.end()) return found->second;
    OpaqueNode opaque = read_opaque(node.text("node"));
    const ElementBudget budget(max_elements);
    std::vector<std::vector<float>> zeros;
    std::vector<FloatView> inputs;
    for (const Shape& shape : node.input_shapes) {
        zeros.emplace_back(static_cast<std::size_t>(element_count(shape)), 0.0f);
        inputs.push_back({shape, zeros.back().data()});
    }
    const OpaqueResult y = run_opaque(opaque, static_cast<std::size_t>(node.integer("output")), inputs);
    if (all.size() > 4096) all.clear();
    return all[std::move(key)] = std::make_shared<const Known>(Known{std::move(opaque), y.shape, y.type});
}

}  // namespace

Shape infer_opaque(const Node& node) {
    std::int64_t elements = 0;
    for (const Shape& shape : node.input_shapes)
        if (__builtin_add_overflow(elements, element_count(shape), &elements) || elements > max_elements)
            throw NodeProblem{"more than 2^26 elements go into an opaque node", "inputs"};
    try {
        return known(node)->shape;
    } catch (const EvaluationProblem& e) {
        throw NodeProblem{e.what(), "attrs.node"};
    }
}

int opaque_type(const Node& node) { return known(node)->type; }
OpaqueNode opaque_of(const Node& node) { return known(node)->opaque; }

std::map<std::string, int> opaque_operators(const Graph& graph) {
    std::map<std::string, int> counts;
    for (const Node& node : graph.nodes)
        if (node.op == "onnx") ++counts[known(node)->opaque.node.op];
    return counts;
}

namespace {

bool moves_values(const OpaqueNode& opaque) {
    static const std::set<std::string> movers{"DepthToSpace", "Expand",       "Gather", "GatherElements", "GatherND", "Reshape",
                                              "Slice",        "SpaceToDepth", "Split",  "Tile",           "Transpose"};
    const OnnxNode& node = opaque.node;
    if (opaque.inputs.empty() || opaque.inputs[0].from != 0 || opaque.inputs[0].type != 1) return false;
    if (node.op == "Resize") return attr_text(node, "mode", "nearest") == "nearest";
    if (node.op == "Pad") return attr_text(node, "mode", "constant") != "constant";
    return movers.contains(node.op);
}

}  // namespace

// The operator is run on the numbers of the places themselves: float32 distinguishes 2^24 of them.
std::shared_ptr<const std::vector<std::int64_t>> places_moved(const Node& node) {
    const std::shared_ptr<const Known> what = known(node);
    if (node.input_shapes.size() != 1 || !moves_values(what->opaque)) return nullptr;
    const std::int64_t count = element_count(node.input_shapes[0]);
    if (count > std::int64_t{1} << 24) return nullptr;
    Tensor numbers{node.input_shapes[0], std::vector<float>(static_cast<std::size_t>(count))};
    std::iota(numbers.values.begin(), numbers.values.end(), 0.0f);
    const Tensor moved = run_opaque(node, {&numbers});
    return std::make_shared<const std::vector<std::int64_t>>(moved.values.begin(), moved.values.end());
}

Tensor run_opaque(const Node& node, const std::vector<const Tensor*>& inputs) {
    std::vector<FloatView> given;
    for (const Tensor* t : inputs) given.push_back({t->shape, t->values.data()});
    try {
        OpaqueResult y = run_opaque(known(node)->opaque, static_cast<std::size_t>(node.integer("output")), given);
        return {std::move(y.shape), std::move(y.values)};
    } catch (const EvaluationProblem& e) {
        throw UserError(fmt::format("node '{}' ({}): {}", node.name, known(node)->opaque.node.op, e.what()));
    }
}

std::filesystem::path opaque_library() { return module_library("libloopegg_opaque.a", LOOPEGG_OPAQUE_LIBRARY); }

}  // namespace loopegg
