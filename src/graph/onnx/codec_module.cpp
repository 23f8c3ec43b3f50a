// The protobuf module: ONNX bytes to plain data and back. Opened with local symbols, because LibTorch carries a protobuf of its own.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

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

template <class T, class Out> void raw_values(std::string_view raw, std::vector<Out>& out, Out (*convert)(T)) {
    out.reserve(raw.size() / sizeof(T));
    for (std::size_t i = 0; i + sizeof(T) <= raw.size(); i += sizeof(T)) out.push_back(convert(load<T>(raw.data() + i)));
}

template <class T> float to_float(T v) { return static_cast<float>(v); }
template <class T> std::int64_t to_int(T v) { return static_cast<std::int64_t>(v); }

// Bytes of an element as they stand in raw data; 0 for types that are not read.
std::size_t width_of(int type) {
    using P = onnx::TensorProto;
    switch (type) {
        case P::BOOL: case P::INT8: case P::UINT8: return 1;
        case P::FLOAT16: case P::BFLOAT16: case P::INT16: case P::UINT16: return 2;
        case P::FLOAT: case P::INT32: case P::UINT32: return 4;
        case P::DOUBLE: case P::INT64: case P::UINT64: return 8;
        default: return 0;
    }
}

void take_raw(std::string_view raw, int type, OnnxTensor& out) {
    using P = onnx::TensorProto;
    switch (type) {
        case P::FLOAT:
            out.floats.resize(raw.size() / 4);
            std::memcpy(out.floats.data(), raw.data(), out.floats.size() * 4);
            break;
        case P::FLOAT16: raw_values<std::uint16_t>(raw, out.floats, from_half); break;
        case P::BFLOAT16: raw_values<std::uint16_t>(raw, out.floats, from_bfloat16); break;
        case P::DOUBLE: raw_values<double, double>(raw, out.doubles, [](double v) { return v; }); break;
        case P::INT64: case P::UINT64: raw_values<std::int64_t>(raw, out.integers, to_int); break;
        case P::INT32: raw_values<std::int32_t>(raw, out.integers, to_int); break;
        case P::UINT32: raw_values<std::uint32_t>(raw, out.integers, to_int); break;
        case P::INT16: raw_values<std::int16_t>(raw, out.integers, to_int); break;
        case P::UINT16: raw_values<std::uint16_t>(raw, out.integers, to_int); break;
        case P::INT8: raw_values<std::int8_t>(raw, out.integers, to_int); break;
        case P::UINT8: raw_values<std::uint8_t>(raw, out.integers, to_int); break;
        default: raw_values<std::uint8_t, std::int64_t>(raw, out.integers, [](std::uint8_t v) { return std::int64_t{v != 0}; });
    }
}

void take_listed(const onnx::TensorProto& in, OnnxTensor& out) {
    using P = onnx::TensorProto;
    switch (in.data_type()) {
        case P::FLOAT: out.floats.assign(in.float_data().begin(), in.float_data().end()); break;
        case P::FLOAT16: for (std::int32_t v : in.int32_data()) out.floats.push_back(from_half(static_cast<std::uint16_t>(v))); break;
        case P::BFLOAT16: for (std::int32_t v : in.int32_data()) out.floats.push_back(from_bfloat16(static_cast<std::uint16_t>(v))); break;
        case P::DOUBLE: out.doubles.assign(in.double_data().begin(), in.double_data().end()); break;
        case P::INT64: out.integers.assign(in.int64_data().begin(), in.int64_data().end()); break;
        case P::UINT32: case P::UINT64: for (std::uint64_t v : in.uint64_data()) out.integers.push_back(static_cast<std::int64_t>(v)); break;
        default: out.integers.assign(in.int32_data().begin(), in.int32_data().end());
    }
}

// The bytes of a tensor that another file holds: only a plain file in the model's own folder, and only what the tensor needs of it.
std::string external_bytes(const onnx::TensorProto& in, const std::string& folder, std::size_t wanted, std::string& out) {
    namespace fs = std::filesystem;
    const std::string who = "tensor '" + in.name() + "'";
    std::string location;
    std::uint64_t offset = 0, length = wanted;
    for (const auto& entry : in.external_data()) {
        auto number = [&](std::uint64_t& to) {
            const std::string& v = entry.value();
            return std::from_chars(v.data(), v.data() + v.size(), to).ptr == v.data() + v.size() && !v.empty();
        };
        if (entry.key() == "location") location = entry.value();
        else if (entry.key() == "offset" && !number(offset)) return who + " begins at '" + entry.value() + "' of another file, which is no number";
        else if (entry.key() == "length" && !number(length)) return who + " has '" + entry.value() + "' bytes in another file, which is no number";
    }
    if (folder.empty()) return who + " keeps its data in another file: read the model from its folder";
    const fs::path name(location);
    if (location.empty() || name.is_absolute() || std::any_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; }))
        return who + " keeps its data in '" + location + "', which is not in the model's folder";
    if (length != wanted) return who + " needs " + std::to_string(wanted) + " bytes by its dims, '" + location + "' is said to hold " + std::to_string(length);
    std::error_code problem;
    const fs::path file = fs::path(folder) / name, real = fs::canonical(file, problem), home = fs::canonical(folder, problem);
    if (problem || !fs::is_regular_file(real, problem)) return who + " keeps its data in '" + location + "', and there is no such file beside the model";
    const fs::path inside = real.lexically_relative(home);
    if (inside.empty() || *inside.begin() == "..") return who + " keeps its data in '" + location + "', which leads out of the model's folder";
    const std::uint64_t size = fs::file_size(real, problem);
    if (problem || offset > size || size - offset < wanted)
        return who + " needs " + std::to_string(wanted) + " bytes from byte " + std::to_string(offset) + " of '" + location + "', which has " +
               std::to_string(size);
    std::ifstream stream(real, std::ios::binary);
    out.resize(wanted);
    if (!stream.seekg(static_cast<std::streamoff>(offset)) || !stream.read(out.data(), static_cast<std::streamsize>(wanted)))
        return who + ": '" + location + "' cannot be read";
    return "";
}

// Where a model's tensors come from, and how many bytes they may still take: a small file can name a large one, or the same bytes again and again.
struct Place {
    std::string folder;
    std::uint64_t most = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE)) / 2, taken = 0;
};

std::string parse_tensor(const onnx::TensorProto& in, Place& place, OnnxTensor& out) {
    out.dims.assign(in.dims().begin(), in.dims().end());
    std::int64_t count = count_of(out.dims);
    std::string who = "tensor '" + in.name() + "'";
    if (count < 0) return who + " has a negative dimension or too many elements";
    const std::size_t width = width_of(in.data_type());
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
    if (out.type == P::FLOAT || out.type == P::DOUBLE || out.type == P::INT64) out.type = 0;   // what the kind says
    std::size_t bytes = 0;
    const bool external = in.data_location() == P::EXTERNAL, raw = external || in.has_raw_data();
    const auto wanted = static_cast<std::uint64_t>(count) * width;   // no overflow: a count is at most 2^40
    if (external || in.raw_data().size() == wanted) place.taken += static_cast<std::uint64_t>(count) * (out.kind == Kind::float32 ? 4 : 8);
    if (place.taken > place.most)
        return "its tensors up to '" + in.name() + "' need " + std::to_string(place.taken) + " bytes, and half of this machine's memory is " +
               std::to_string(place.most);
    if (external) {
        std::string held;
        if (std::string problem = external_bytes(in, place.folder, wanted, held); !problem.empty()) return problem;
        bytes = held.size();
        take_raw(held, in.data_type(), out);
    } else if (raw) {
        bytes = in.raw_data().size();
        take_raw(in.raw_data(), in.data_type(), out);
    } else {
        take_listed(in, out);
    }
    const std::size_t found = out.floats.size() + out.doubles.size() + out.integers.size();
    if (found != static_cast<std::size_t>(count) || (raw && bytes != found * width))
        return who + " should hold " + std::to_string(count) + " values by its dims, its data gives " +
               (raw ? std::to_string(bytes) + " bytes" : std::to_string(found));
    return "";
}

std::string parse_node(const onnx::NodeProto& in, Place& place, OnnxNode& out) {
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
                if (std::string problem = parse_tensor(a.t(), place, tensor); !problem.empty()) return problem;
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

std::string parse(std::string_view bytes, const std::string& folder, OnnxModel& out) {
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
    Place place{folder};
    for (const auto& p : model.metadata_props()) out.metadata[p.key()] = p.value();
    for (const auto& t : model.graph().initializer()) {
        OnnxTensor tensor;
        if (std::string problem = parse_tensor(t, place, tensor); !problem.empty()) return problem;
        out.initializers.emplace_back(t.name(), std::move(tensor));
    }
    if (model.graph().sparse_initializer_size() > 0) return "sparse initializers are not supported";
    if (model.functions_size() > 0) return "functions of the model's own are not supported: export it with them inlined";
    for (const auto& n : model.graph().node()) {
        OnnxNode node;
        if (std::string problem = parse_node(n, place, node); !problem.empty()) return problem;
        out.nodes.push_back(std::move(node));
    }
    for (const auto& v : model.graph().input()) out.inputs.push_back(parse_value(v));
    for (const auto& v : model.graph().output()) out.outputs.push_back(parse_value(v));
    return "";
}

// A float32 tensor whose values stand in another file, from `offset` on.
void fill_outside(const OnnxTensor& in, const std::string& name, const std::string& file, std::uint64_t offset, onnx::TensorProto& out) {
    out.set_name(name);
    for (std::int64_t d : in.dims) out.add_dims(d);
    out.set_data_type(onnx::TensorProto::FLOAT), out.set_data_location(onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {
        {"location", file}, {"offset", std::to_string(offset)}, {"length", std::to_string(count_of(in.dims) * 4)}};
    for (const auto& [key, value] : entries) {
        auto* entry = out.add_external_data();
        entry->set_key(key), entry->set_value(value);
    }
}

void fill_tensor(const OnnxTensor& in, const std::string& name, onnx::TensorProto& out) {
    out.set_name(name);
    for (std::int64_t d : in.dims) out.add_dims(d);
    auto raw = [&](const auto& values) { out.set_raw_data(values.data(), values.size() * sizeof(values[0])); };
    if (in.kind == OnnxTensor::Kind::float32) out.set_data_type(onnx::TensorProto::FLOAT), raw(in.floats);
    else if (in.kind == OnnxTensor::Kind::float64) out.set_data_type(onnx::TensorProto::DOUBLE), raw(in.doubles);
    else if (element_type(in) == onnx::TensorProto::INT64) out.set_data_type(onnx::TensorProto::INT64), raw(in.integers);
    else {   // a narrower type
        out.set_data_type(element_type(in));
        if (element_type(in) == onnx::TensorProto::UINT32 || element_type(in) == onnx::TensorProto::UINT64)
            for (std::int64_t v : in.integers) out.add_uint64_data(static_cast<std::uint64_t>(v));
        else for (std::int64_t v : in.integers) out.add_int32_data(static_cast<std::int32_t>(v));
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
};

void fill_value(const OnnxValue& in, onnx::ValueInfoProto& out) {
    out.set_name(in.name);
    auto* type = out.mutable_type()->mutable_tensor_type();
    type->set_elem_type(in.type);
    type->mutable_shape();   // a scalar has one, too
    for (std::size_t i = 0; i < in.shape.size(); ++i) {
        auto* dim = type->mutable_shape()->add_dim();
        if (in.shape[i] >= 0) dim->set_dim_value(in.shape[i]);
        else dim->set_dim_param(i < in.symbols.size() ? in.symbols[i] : "");
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
        else fill_tensor(tensor, name, *graph.add_initializer());
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
    return {[](std::string_view bytes, const std::string& folder, loopegg::OnnxModel& out) {
                return loopegg::guarded([&] { return loopegg::parse(bytes, folder, out); });
            },
            [](const loopegg::OnnxModel& model, std::string& out) { return loopegg::guarded([&] { return loopegg::serialize(model, out); }); }};
}
