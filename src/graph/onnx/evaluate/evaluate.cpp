#include "graph/onnx/evaluate/evaluate.hpp"

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg {
namespace {

using namespace onnx_eval;

Operation find_operation(const OnnxNode& node) {
    if (!node.domain.empty() && node.domain != "ai.onnx") return nullptr;
    for (auto table : {elementwise_operation, movement_operation, shape_operation, reduction_operation, window_operation, product_operation, search_operation})
        if (Operation found = table(node.op)) return found;
    return nullptr;
}

}  // namespace

bool can_evaluate(const OnnxNode& node) { return find_operation(node) != nullptr; }

std::string shape_from_data(const OnnxNode& node, const std::vector<bool>& known) {
    if (node.op == "NonZero" || node.op == "Compress") return "its elements";
    struct Row {
        const char* op;
        std::vector<std::size_t> inputs;
    };
    static const std::vector<Row> rows{{"Reshape", {1}},      {"Expand", {1}},   {"Tile", {1}},    {"Slice", {1, 2, 3, 4}}, {"Pad", {1, 3}},
                                       {"Resize", {1, 2, 3}}, {"Upsample", {1}}, {"Split", {1}},   {"Range", {0, 1, 2}},    {"ConstantOfShape", {0}},
                                       {"OneHot", {1}},       {"TopK", {1}},     {"Squeeze", {1}}, {"Unsqueeze", {1}},      {"Col2Im", {1, 2}}};
    std::vector<std::size_t> inputs = node.op.starts_with("Reduce") ? std::vector<std::size_t>{1} : std::vector<std::size_t>{};
    for (const Row& row : rows)
        if (node.op == row.op) inputs = row.inputs;
    for (std::size_t i : inputs)
        if (i < known.size() && !known[i]) return "its input " + std::to_string(i);
    return "";
}

std::vector<OnnxTensor> evaluate(const OnnxNode& node, std::span<const OnnxTensor* const> inputs, std::int64_t opset) {
    Operation operation = find_operation(node);
    if (!operation) problem("the operator is not supported");
    try {
        return operation(node, inputs, opset);
    } catch (const std::out_of_range&) {
        problem("a tensor holds less than its dimensions say");
    }
}

}  // namespace loopegg
