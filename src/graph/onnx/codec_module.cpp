// The protobuf module: ONNX bytes to plain data and back. Opened with local symbols, because LibTorch carries a protobuf of its own.
// It is part of loopegg_onnx_read, too, where strangers' files are parsed.
#include <limits>
#include <new>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include "graph/floats.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/onnx/tensor_bytes.hpp"

namespace loopegg {
namespace {

void take_listed(const onnx::TensorProto& in, OnnxTensor& out) {
    using P = onnx::TensorProto;
    switch (in.data_type()) {
        case P::FLOAT: out.floats.assign(in.float_data().begin(), in.float_data().end()); break;
        case P::FLOAT16:
            for (std::int32_t v : in.int32_data()) out.floats.push_back(from_half(static_cast<std::uint16_t>(v)));
            break;
        case P::BFLOAT16:
            for (std::int32_t v : in.int32_data()) out.floats.push_back(from_bfloat16(static_cast<std::uint16_t>(v)));
            break;
        case P::DOUBLE: out.doubles.assign(in.double_data().begin(), in.double_data().end()); break;
        case P::INT64: out.integers.assign(in.int64_data().begin(), in.int64_data().end()); break;
        case P::UINT32:
        case P::UINT64:
            for (std::uint64_t v : in.uint64_data()) out.integers.push_back(static_cast<std::int64_t>(v));
            break;
        default: out.integers.assign(in.int32_data().begin(), in.int32_data().end());
    }
}

std::string parse_tensor(const onnx::TensorProto& in, OnnxTensor& out) {
    out.dims.assign(in.dims().begin(), in.dims().end());
    std::int64_t count = elements_of(out.dims);
    std::string who = "tensor '" + in.name() + "'";
    if (count < 0) return who + " has a negative dimension or too many elements";
    const std::size_t width = element_width(in.data_type());
    out.type = in.data_type();
    using Kind = OnnxTensor::Kind;
    using P = onnx::TensorProto;
    if (width == 0) {
        out.kind = Kind::other;
        return "";
    }
    out.kind = in.data_type() == P::FLOAT || in.data_type() == P::FLOAT16 || in.data_type() == P::BFLOAT16 ? Kind::float32
               : in.data_type() == P::DOUBLE                                                               ? Kind::float64
                                                                                                           : Kind::int64;
    if (out.type == P::FLOAT || out.type == P::DOUBLE || out.type == P::INT64) out.type = 0;  // what the kind says
    if (in.data_location() == P::EXTERNAL) {                                                  // read by those who may read files
        out.elsewhere["location"];
        for (const auto& entry : in.external_data()) out.elsewhere[entry.key()] = entry.value();
        return "";
    }
    const bool raw = in.has_raw_data();
    const std::size_t bytes = in.raw_data().size();
    if (raw)
        take_bytes(in.raw_data(), in.data_type(), out);
    else
        take_listed(in, out);
    const std::size_t found = out.floats.size() + out.doubles.size() + out.integers.size();
    if (found != static_cast<std::size_t>(count) || (raw && bytes != found * width))
        return who + " should hold " + std::to_string(count) + " values by its dims, its data gives " +
               (raw ? std::to_string(bytes) + " bytes" : std::to_string(found));
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
            case P::STRINGS: value = std::vector<std::string>(a.strings().begin(), a.strings().end()); break;
            case P::TENSOR: {
                OnnxTensor tensor;
                if (std::string problem = parse_tensor(a.t(), tensor); !problem.empty()) return problem;
                value = std::move(tensor);
                break;
            }
            // the operator that needs one is refused by name
            default: out.has_subgraph = out.has_subgraph || a.type() == P::GRAPH || a.type() == P::GRAPHS; continue;
        }
        out.attrs[a.name()] = std::move(value);
    }
    return "";
}

OnnxValue parse_value(const onnx::ValueInfoProto& in) {
    OnnxValue out{in.name(), {}};
    const auto& type = in.type().tensor_type();
    out.type = in.type().has_tensor_type() ? type.elem_type() : 0;
    out.has_shape = in.type().has_tensor_type() && type.has_shape();
    for (const auto& d : type.shape().dim())
        out.shape.push_back(d.has_dim_value() ? d.dim_value() : -1), out.symbols.push_back(d.has_dim_value() ? "" : d.dim_param());
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

// A float32 tensor whose values are in another file, from `offset` on.
void fill_outside(const OnnxTensor& in, const std::string& name, const std::string& file, std::uint64_t offset, onnx::TensorProto& out) {
    out.set_name(name);
    for (std::int64_t d : in.dims) out.add_dims(d);
    out.set_data_type(onnx::TensorProto::FLOAT), out.set_data_location(onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {
        {"location", file}, {"offset", std::to_string(offset)}, {"length", std::to_string(elements_of(in.dims) * 4)}};
    for (const auto& [key, value] : entries) {
        auto* entry = out.add_external_data();
        entry->set_key(key), entry->set_value(value);
    }
}

void fill_tensor(const OnnxTensor& in, const std::string& name, onnx::TensorProto& out) {
    out.set_name(name);
    for (std::int64_t d : in.dims) out.add_dims(d);
    auto raw = [&](const auto& values) { out.set_raw_data(values.data(), values.size() * sizeof(values[0])); };
    if (element_type(in) == onnx::TensorProto::BFLOAT16) {
        std::vector<std::uint16_t> halves;
        for (float v : in.floats) halves.push_back(to_bfloat16(v));
        out.set_data_type(onnx::TensorProto::BFLOAT16), raw(halves);
    } else if (in.kind == OnnxTensor::Kind::float32)
        out.set_data_type(onnx::TensorProto::FLOAT), raw(in.floats);
    else if (in.kind == OnnxTensor::Kind::float64)
        out.set_data_type(onnx::TensorProto::DOUBLE), raw(in.doubles);
    else if (element_type(in) == onnx::TensorProto::INT64)
        out.set_data_type(onnx::TensorProto::INT64), raw(in.integers);
    else {  // a narrower type
        out.set_data_type(element_type(in));
        if (element_type(in) == onnx::TensorProto::UINT32 || element_type(in) == onnx::TensorProto::UINT64)
            for (std::int64_t v : in.integers) out.add_uint64_data(static_cast<std::uint64_t>(v));
        else
            for (std::int64_t v : in.integers) out.add_int32_data(static_cast<std::int32_t>(v));
    }
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
    void operator()(const std::vector<std::string>& v) const {
        out.set_type(P::STRINGS);
        for (const std::string& s : v) out.add_strings(s);
    }
};

void fill_value(const OnnxValue& in, onnx::ValueInfoProto& out) {
    out.set_name(in.name);
    auto* type = out.mutable_type()->mutable_tensor_type();
    type->set_elem_type(in.type);
    type->mutable_shape();  // a scalar has one, too
    for (std::size_t i = 0; i < in.shape.size(); ++i) {
        auto* dim = type->mutable_shape()->add_dim();
        if (in.shape[i] >= 0)
            dim->set_dim_value(in.shape[i]);
        else
            dim->set_dim_param(i < in.symbols.size() ? in.symbols[i] : "");
    }
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
    for (const auto& [name, tensor] : in.initializers)
        if (auto found = in.outside.find(name); found != in.outside.end())
            fill_outside(tensor, name, in.data_file, found->second, *graph.add_initializer());
        else
            fill_tensor(tensor, name, *graph.add_initializer());
    for (const OnnxNode& n : in.nodes) {
        onnx::NodeProto& node = *graph.add_node();
        node.set_op_type(n.op), node.set_name(n.name);
        if (!n.domain.empty()) node.set_domain(n.domain);
        for (const std::string& name : n.inputs) node.add_input(name);
        for (const std::string& name : n.outputs) node.add_output(name);
        for (const auto& [name, value] : n.attrs) {
            onnx::AttributeProto& attr = *node.add_attribute();
            attr.set_name(name);
            std::visit(FillAttr{attr}, value);
        }
    }
    if (model.ByteSizeLong() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        return "the network is larger than the 2 GB that one ONNX file can hold";
    return model.SerializeToString(&out) ? "" : "protobuf refused to write the network";
}

// Whatever goes wrong inside protobuf becomes words, except too little memory: whoever set the limit knows its size.
template <class Work>
std::string guarded(Work work) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return e.what();
    }
}

}  // namespace
}  // namespace loopegg

extern "C" __attribute__((visibility("default"))) loopegg::OnnxCodec loopegg_onnx_codec() {
    // Protobuf's own complaints would go to standard error next to ours.
    google::protobuf::SetLogHandler(nullptr);
    return {[](std::string_view bytes, loopegg::OnnxModel& out) { return loopegg::guarded([&] { return loopegg::parse(bytes, out); }); },
            [](const loopegg::OnnxModel& model, std::string& out) { return loopegg::guarded([&] { return loopegg::serialize(model, out); }); }};
}
