// The protobuf module: ONNX bytes to plain data and back. Opened with local symbols, because LibTorch carries a protobuf of its own.
#include <algorithm>
#include <limits>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include "graph/floats.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {
namespace {

// The elements of dims, or -1 when there are absurdly many.
std::int64_t count_of(const std::vector<std::int64_t>& dims) {
    std::int64_t count = 1;
    for (std::int64_t d : dims)
        if (d < 0 || __builtin_mul_overflow(count, d, &count) || count > (std::int64_t{1} << 40)) return -1;
    return count;
}

template <class T, class Out> void raw_values(const std::string& raw, std::vector<Out>& out, Out (*convert)(T)) {
    for (std::size_t i = 0; i + sizeof(T) <= raw.size(); i += sizeof(T)) out.push_back(convert(load<T>(raw.data() + i)));
}

template <class T> float to_float(T v) { return static_cast<float>(v); }
template <class T> std::int64_t to_int(T v) { return static_cast<std::int64_t>(v); }

std::string parse_tensor(const onnx::TensorProto& in, OnnxTensor& out) {
    out.dims.assign(in.dims().begin(), in.dims().end());
    std::int64_t count = count_of(out.dims);
    std::string who = "tensor '" + in.name() + "'";
    if (count < 0) return who + " has a negative dimension or too many elements";
    if (in.data_location() == onnx::TensorProto::EXTERNAL || in.external_data_size() > 0) return who + " keeps its data in another file, which is not supported: save the model with its weights inside";
    const std::string& raw = in.raw_data();
    bool is_raw = in.has_raw_data();
    std::size_t found = 0, width = 0;
    using P = onnx::TensorProto;
    switch (in.data_type()) {
        case P::FLOAT:
            out.kind = OnnxTensor::Kind::float32, width = 4;
            if (is_raw) raw_values<float>(raw, out.floats, to_float);
            else out.floats.assign(in.float_data().begin(), in.float_data().end());
            found = out.floats.size();
            break;
        case P::FLOAT16: case P::BFLOAT16: {
            auto convert = in.data_type() == P::FLOAT16 ? from_half : from_bfloat16;
            out.kind = OnnxTensor::Kind::float32, width = 2;
            if (is_raw) raw_values<std::uint16_t>(raw, out.floats, convert);
            else for (std::int32_t v : in.int32_data()) out.floats.push_back(convert(static_cast<std::uint16_t>(v)));
            found = out.floats.size();
            break;
        }
        case P::DOUBLE:
            out.kind = OnnxTensor::Kind::float64, width = 8;
            if (is_raw) raw_values<double, double>(raw, out.doubles, [](double v) { return v; });
            else out.doubles.assign(in.double_data().begin(), in.double_data().end());
            found = out.doubles.size();
            break;
        case P::INT64:
            out.kind = OnnxTensor::Kind::int64, width = 8;
            if (is_raw) raw_values<std::int64_t>(raw, out.integers, to_int);
            else out.integers.assign(in.int64_data().begin(), in.int64_data().end());
            found = out.integers.size();
            break;
        case P::INT32:
            out.kind = OnnxTensor::Kind::int64, width = 4;
            if (is_raw) raw_values<std::int32_t>(raw, out.integers, to_int);
            else out.integers.assign(in.int32_data().begin(), in.int32_data().end());
            found = out.integers.size();
            break;
        default: out.kind = OnnxTensor::Kind::other; return "";
    }
    if (found != static_cast<std::size_t>(count) || (is_raw && raw.size() != found * width))
        return who + " should hold " + std::to_string(count) + " values by its dims, its data gives " + (is_raw ? std::to_string(raw.size()) + " bytes" : std::to_string(found));
    return "";
}

std::string parse_node(const onnx::NodeProto& in, OnnxNode& out) {
    out.op = in.op_type(), out.name = in.name(), out.domain = in.domain();
    out.inputs.assign(in.input().begin(), in.input().end());
    out.outputs.assign(in.output().begin(), in.output().end());
    for (const onnx::AttributeProto& a : in.attribute()) {
        using P = onnx::AttributeProto;
        OnnxAttr value;
        switch (a.type()) {
            case P::INT: value = static_cast<std::int64_t>(a.i()); break;
            case P::FLOAT: value = a.f(); break;
            case P::STRING: value = a.s(); break;
            case P::INTS: value = std::vector<std::int64_t>(a.ints().begin(), a.ints().end()); break;
            case P::FLOATS: value = std::vector<float>(a.floats().begin(), a.floats().end()); break;
            case P::TENSOR: {
                OnnxTensor tensor;
                if (std::string problem = parse_tensor(a.t(), tensor); !problem.empty()) return problem;
                value = std::move(tensor);
                break;
            }
            default: continue;   // subgraphs and the like: the operator that needs one is refused by name
        }
        out.attrs[a.name()] = std::move(value);
    }
    return "";
}

OnnxValue parse_value(const onnx::ValueInfoProto& in) {
    OnnxValue out{in.name(), {}};
    const auto& type = in.type().tensor_type();
    out.is_float = type.elem_type() == onnx::TensorProto::FLOAT;
    out.has_shape = in.type().has_tensor_type() && type.has_shape();
    for (const auto& d : type.shape().dim()) out.shape.push_back(d.has_dim_value() ? d.dim_value() : -1);
    return out;
}

std::string parse(std::string_view bytes, OnnxModel& out) {
    onnx::ModelProto model;
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return "the file is larger than 2 GB";
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    google::protobuf::io::CodedInputStream coded(&stream);
    if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) return "it is no ONNX file, or it is truncated";
    if (!model.has_graph()) return "it is no ONNX file: it holds no graph";
    out.name = model.graph().name(), out.producer = model.producer_name(), out.ir_version = model.ir_version();
    out.opset = 0;
    for (const auto& o : model.opset_import())
        if (o.domain().empty() || o.domain() == "ai.onnx") out.opset = o.version();
    for (const auto& p : model.metadata_props()) out.metadata[p.key()] = p.value();
    for (const auto& t : model.graph().initializer()) {
        OnnxTensor tensor;
        if (std::string problem = parse_tensor(t, tensor); !problem.empty()) return problem;
        out.initializers.emplace_back(t.name(), std::move(tensor));
    }
    if (model.graph().sparse_initializer_size() > 0) return "sparse initializers are not supported";
    if (model.functions_size() > 0) return "functions of the model's own are not supported: export it with them inlined";
    for (const auto& n : model.graph().node()) {
        OnnxNode node;
        if (std::string problem = parse_node(n, node); !problem.empty()) return problem;
        out.nodes.push_back(std::move(node));
    }
    for (const auto& v : model.graph().input()) out.inputs.push_back(parse_value(v));
    for (const auto& v : model.graph().output()) out.outputs.push_back(parse_value(v));
    return "";
}

void fill_tensor(const OnnxTensor& in, const std::string& name, onnx::TensorProto& out) {
    out.set_name(name);
    for (std::int64_t d : in.dims) out.add_dims(d);
    auto raw = [&](const auto& values) { out.set_raw_data(values.data(), values.size() * sizeof(values[0])); };
    if (in.kind == OnnxTensor::Kind::float32) out.set_data_type(onnx::TensorProto::FLOAT), raw(in.floats);
    else if (in.kind == OnnxTensor::Kind::float64) out.set_data_type(onnx::TensorProto::DOUBLE), raw(in.doubles);
    else out.set_data_type(onnx::TensorProto::INT64), raw(in.integers);
}

struct FillAttr {
    onnx::AttributeProto& out;
    using P = onnx::AttributeProto;
    void operator()(std::int64_t v) const { out.set_type(P::INT), out.set_i(v); }
    void operator()(float v) const { out.set_type(P::FLOAT), out.set_f(v); }
    void operator()(const std::string& v) const { out.set_type(P::STRING), out.set_s(v); }
    void operator()(const std::vector<std::int64_t>& v) const {
        out.set_type(P::INTS);
        for (std::int64_t i : v) out.add_ints(i);
    }
    void operator()(const std::vector<float>& v) const {
        out.set_type(P::FLOATS);
        for (float f : v) out.add_floats(f);
    }
    void operator()(const OnnxTensor& v) const { out.set_type(P::TENSOR), fill_tensor(v, "", *out.mutable_t()); }
};

void fill_value(const OnnxValue& in, onnx::ValueInfoProto& out) {
    out.set_name(in.name);
    auto* type = out.mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (std::int64_t d : in.shape) type->mutable_shape()->add_dim()->set_dim_value(d);
}

std::string serialize(const OnnxModel& in, std::string& out) {
    onnx::ModelProto model;
    model.set_ir_version(in.ir_version);
    model.set_producer_name(in.producer);
    model.add_opset_import()->set_version(in.opset);
    for (const auto& [key, value] : in.metadata) {
        auto* p = model.add_metadata_props();
        p->set_key(key), p->set_value(value);
    }
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name(in.name);
    for (const OnnxValue& v : in.inputs) fill_value(v, *graph.add_input());
    for (const OnnxValue& v : in.outputs) fill_value(v, *graph.add_output());
    for (const auto& [name, tensor] : in.initializers) fill_tensor(tensor, name, *graph.add_initializer());
    for (const OnnxNode& n : in.nodes) {
        onnx::NodeProto& node = *graph.add_node();
        node.set_op_type(n.op), node.set_name(n.name);
        for (const std::string& name : n.inputs) node.add_input(name);
        for (const std::string& name : n.outputs) node.add_output(name);
        for (const auto& [name, value] : n.attrs) {
            onnx::AttributeProto& attr = *node.add_attribute();
            attr.set_name(name);
            std::visit(FillAttr{attr}, value);
        }
    }
    if (model.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max())) return "the network is larger than the 2 GB that one ONNX file can hold";
    return model.SerializeToString(&out) ? "" : "protobuf refused to write the network";
}

// Whatever goes wrong inside protobuf becomes words.
template <class Work> std::string guarded(Work work) {
    try {
        return work();
    } catch (const std::exception& e) { return e.what(); }
}

}  // namespace
}  // namespace loopegg

extern "C" __attribute__((visibility("default"))) loopegg::OnnxCodec loopegg_onnx_codec() {
    // Protobuf's own complaints would go to standard error beside ours.
    google::protobuf::SetLogHandler(nullptr);
    return {[](std::string_view bytes, loopegg::OnnxModel& out) { return loopegg::guarded([&] { return loopegg::parse(bytes, out); }); },
            [](const loopegg::OnnxModel& model, std::string& out) { return loopegg::guarded([&] { return loopegg::serialize(model, out); }); }};
}
