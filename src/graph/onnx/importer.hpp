// Turns an ONNX model into a graph, node by node: into our own operators where we have one, into opaque nodes elsewhere.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/onnx/onnx.hpp"
#include "graph/onnx/onnx_attrs.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

struct ElementFunction;

class OnnxImporter {
public:
    OnnxImporter(const std::string& file, OnnxModel onnx, const OnnxReading& how);
    Model run();

private:
    using Ints = std::vector<std::int64_t>;
    using Attrs = std::map<std::string, Attr>;
    // Returns false, and has done nothing, where the node must be opaque.
    using Handler = bool (OnnxImporter::*)(const OnnxNode&);
    static const std::map<std::string, Handler>& handlers();

    // import.cpp: the whole, names and values
    [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;
    [[noreturn]] void fail(const OnnxNode& node, const std::string& message, const std::string& hint = {}) const;
    std::int64_t opset_before() const;
    void add_inputs();
    void add_outputs();
    void sort_nodes();
    void fold_constants();
    bool folds(const OnnxNode& node);
    void take_described();
    void convert(const OnnxNode& node);
    std::string unique(std::string name);
    std::string name_for(const OnnxNode& node, const std::vector<std::string>& parameters = {});
    std::string value(const std::string& name);
    std::string parameter(const std::string& value_name, const std::string& name, const OnnxTensor& tensor);
    const OnnxTensor* constant(const OnnxNode& node, std::size_t i) const;
    const OnnxTensor& needed(const OnnxNode& node, std::size_t i, const char* what) const;
    bool has(const OnnxNode& node, std::size_t i) const { return i < node.inputs.size() && !node.inputs[i].empty(); }
    bool used(const OnnxNode& node, std::size_t output) const;
    bool computes_floats(const OnnxNode& node) const;  // all inputs of the node are float32
    int type_of(const std::string& onnx_value) const;
    const std::string& input(const OnnxNode& node, std::size_t i) const;
    static std::vector<std::string> tail(const OnnxNode& node);
    void set_weight(const std::string& name, const OnnxTensor& tensor, Shape shape);
    void set_weight(const std::string& name, const OnnxTensor& tensor) { set_weight(name, tensor, tensor.dims); }
    std::string put(Node node);  // infers the shape and returns the name
    // puts a helper of the node `near`
    std::string put(const std::string& near, const char* what, const std::string& op, std::vector<std::string> inputs, Attrs attrs = {});
    std::string put(const OnnxNode& from, const std::string& op, std::vector<std::string> inputs, Attrs attrs = {});
    std::string result(const OnnxNode& from, std::string name);
    const Shape& shape(const std::string& value) const { return shapes_.at(value); }
    std::int64_t rank(const std::string& value) const { return static_cast<std::int64_t>(shapes_.at(value).size()); }
    void note(std::string words);

    // import_sites.cpp: weights that are multiplied, windows, norms
    struct Pads {
        Ints before, after;
    };
    Pads pads_of(const OnnxNode& node, const Shape& in, const Ints& kernel) const;
    bool conv(const OnnxNode& node);
    bool flat_conv(const OnnxNode& node, const OnnxTensor& w, const OnnxTensor* bias);
    bool put_linear(const OnnxNode& node, const OnnxTensor& w, bool out_first, const OnnxTensor* bias, double alpha = 1);
    bool gemm(const OnnxNode& node);
    bool linear(const OnnxNode& node);
    bool matmul(const OnnxNode& node);
    bool einsum(const OnnxNode& node);
    bool pool(const OnnxNode& node);
    bool global_pool(const OnnxNode& node);
    bool batch_norm(const OnnxNode& node);
    bool layer_norm(const OnnxNode& node);
    bool group_norm(const OnnxNode& node);
    bool softmax(const OnnxNode& node);
    bool reduce(const OnnxNode& node);

    // import_elements.cpp: element by element
    bool function(const OnnxNode& node, const ElementFunction& f);
    bool gelu(const OnnxNode& node);
    bool clip(const OnnxNode& node);
    bool hard_sigmoid(const OnnxNode& node);
    bool binary(const OnnxNode& node, const ElementFunction& f);
    bool several(const OnnxNode& node);
    bool power(const OnnxNode& node);
    bool identity(const OnnxNode& node);
    bool cast(const OnnxNode& node);
    bool described(const OnnxNode& node);
    std::string put_pair(const OnnxNode& from, const std::string& op, const std::string& a, const std::string& b, bool last);

    // import_quantized.cpp: values that are rounded to numbers of a few bits
    struct Rounding;
    struct Quantizer {
        OnnxNode node;
        std::string back;  // our node of the values after they were rounded; empty until somebody reads them
    };
    Rounding rounding_of(const OnnxNode& node, const Shape& x) const;
    std::string put_along(const std::string& near, const char* what, const std::vector<double>& values, std::size_t trailing);
    std::string put_rounded(const std::string& name, const std::string& x, const Rounding& r, bool back);
    bool is_rounded(const std::string& x, const Rounding& r) const;
    std::string whole_numbers(const OnnxNode& quantizer);
    bool quantize(const OnnxNode& node);
    bool dequantize(const OnnxNode& node);
    bool without_rounding(const OnnxNode& node);
    void note_int8(const std::string& site, const OnnxNode& node, std::int64_t out_axis);

    // import_loops.cpp: the rows of loop_operators.hpp
    bool loops(const OnnxNode& node);

    // import_recurrent.cpp: loops over time
    struct RecurrentLayer;
    class Recurrence;
    bool recurrent(const OnnxNode& node);
    void refuse_recurrent(const OnnxNode& node) const;
    std::int64_t sequence_steps(const OnnxNode& node, std::int64_t all, std::int64_t batch) const;
    std::vector<std::string> recurrent_activations(const OnnxNode& node, std::int64_t directions) const;
    std::string initial_state(const RecurrentLayer& layer, std::size_t input_index, std::int64_t direction);
    void recurrent_result(const RecurrentLayer& layer, std::size_t output, std::vector<std::string> parts);

    // import_shapes.cpp: elements that move
    bool concat(const OnnxNode& node);
    bool flatten(const OnnxNode& node);
    bool reshape(const OnnxNode& node);
    bool squeeze(const OnnxNode& node);
    bool transpose(const OnnxNode& node);
    bool slice(const OnnxNode& node);
    bool split(const OnnxNode& node);
    bool gather(const OnnxNode& node);
    bool pad(const OnnxNode& node);
    bool expand(const OnnxNode& node);
    bool resize(const OnnxNode& node);
    bool depth_to_space(const OnnxNode& node);
    Ints batch_free(const std::string& x, Ints shape) const;
    std::string put_slice(const std::string& near, const std::string& x, std::size_t axis, std::int64_t start, std::int64_t end, std::int64_t step);
    bool put_reshape(const OnnxNode& node, const std::string& x, const Ints& shape);
    std::string put_transpose(const std::string& near, const char* what, const std::string& x, const Ints& order);

    // import_opaque.cpp
    void opaque(const OnnxNode& node);

    std::string file_;
    OnnxModel onnx_;
    OnnxReading how_;
    bool ours_;  // our own exporter wrote the model: names and numbers are kept as they are
    Graph graph_;
    Weights weights_;
    OnnxConstants constants_;
    std::int64_t held_;      // elements of the file's own tensors
    std::int64_t unfolded_;  // elements that folding may still make
    std::int64_t weight_elements_ = 0;
    std::int64_t recurrent_steps_ = 0;
    std::map<std::string, std::string> values_;    // ONNX value to our node
    std::map<std::string, int> types_;             // of ONNX values, where they are not float32
    std::map<std::string, Shape> shapes_;          // of our nodes
    std::set<std::string> names_, read_;           // read_: ONNX values that something reads
    std::map<std::string, Quantizer> quantizers_;  // by the ONNX value that they make
    std::map<std::string, OnnxNode> dequantized_;  // what made a constant out of whole numbers
    std::map<std::string, std::string> described_;
    std::map<std::string, std::vector<OnnxNode>> groups_;
    std::vector<std::string> notes_;
};

}  // namespace loopegg
