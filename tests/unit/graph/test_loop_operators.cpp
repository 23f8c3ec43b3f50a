// Every row of the operators with loops is held to what its own files, its ONNX operator and its mistakes should give.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/evaluate/evaluate.hpp"
#include "graph/onnx/export.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/weights.hpp"
#include "tests/loop_graphs.hpp"

using namespace loopegg;

namespace {

OnnxTensor for_onnx(const Tensor& t) { return {OnnxTensor::Kind::float32, t.shape, t.values}; }

}  // namespace

TEST_CASE("an operator with loops is written and read back", "[unit][graph]") {
    for (const LoopOperator& row : loop_operators()) {
        INFO(row.name);
        const Graph graph = test::loop_graph(row);
        CHECK(read_model(make_source("m.json", write_model(graph))) == graph);
        if (!row.onnx.empty()) CHECK(import_onnx("m.onnx", export_onnx(graph, {})).graph == graph);
    }
}

TEST_CASE("an operator with loops computes what its ONNX operator says", "[unit][graph]") {
    for (const LoopOperator& row : loop_operators()) {
        if (row.onnx.empty()) continue;
        INFO(row.name);
        const Graph graph = test::loop_graph(row);
        Tensors inputs;
        std::vector<OnnxTensor> given;
        for (const GraphInput& in : graph.inputs) given.push_back(for_onnx(inputs[in.name] = normal_tensor(in.shape, 3, in.name)));
        std::vector<const OnnxTensor*> operands;
        for (const OnnxTensor& t : given) operands.push_back(&t);
        const OnnxModel model = onnx_model(graph, nullptr);
        REQUIRE(model.nodes.size() == 1);
        const OnnxTensor wanted = evaluate(model.nodes[0], operands, model.opset)[0];
        const Tensor got = interpret(graph, {}, inputs).at("y");
        REQUIRE(got.shape == wanted.dims);
        for (std::size_t i = 0; i < got.values.size(); ++i) CHECK(got.values[i] == Approx(wanted.floats[i]).epsilon(1e-5));
    }
}

TEST_CASE("a window that does not fit, and an input of another rank, are pointed at", "[errors][graph]") {
    auto complaint = [](const std::string& shape, const std::string& attrs) -> std::string {
        try {
            read_model(make_source("m.json", R"({"loopegg": 1, "name": "m", "inputs": [{"name": "x", "shape": )" + shape +
                                                 R"(}], "outputs": ["y"], "nodes": [{"name": "y", "op": "max_pool1d", "inputs": ["x"], "attrs": )" + attrs +
                                                 "}]}"));
        } catch (const UserError& e) {
            return e.what();
        }
        return "";
    };
    CHECK_THAT(complaint("[1, 2, 4]", R"({"kernel": 5})"), Catch::Contains("a window of 5 does not fit into 4 with padding 0") && Catch::Contains("m.json:1:"));
    CHECK_THAT(complaint("[1, 2, 4]", R"({"kernel": 2, "padding": 2})"), Catch::Contains("more than half the kernel"));
    CHECK_THAT(complaint("[1, 2, 4, 4]", R"({"kernel": 2})"), Catch::Contains("max_pool1d needs an input of 3 dimensions (N C L), 'x' is 1x2x4x4"));
    CHECK(complaint("[1, 2, 4]", R"({"kernel": 2})").empty());
}
