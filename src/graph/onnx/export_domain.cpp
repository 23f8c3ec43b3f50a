#include "graph/onnx/export_domain.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/plain_domain.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

class Expansion {
public:
    explicit Expansion(const Node& node) : node_(node), axes_(axes_of(node)) {}

    DomainExpansion run() {
        std::vector<Box> all = boxes(node_.domain, axes_);
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::string at = fmt::format("{}/box{}", node_.name, i);
            std::string y = node_.op == "conv2d" ? conv(at, all[i]) : node_.op == "linear" ? linear(at, all[i]) : matmul(at, all[i]);
            if (y.empty()) continue;  // it reads nothing but padding
            flats_.push_back(emit("Reshape", at + "/flat", {y, integers(at + "/flat_shape", {-1})}));
            shown_.push_back(all[i]);
        }
        gather();
        out_.description = write_node(node_);
        return std::move(out_);
    }

private:
    std::string emit(const std::string& op, const std::string& name, std::vector<std::string> inputs, std::map<std::string, OnnxAttr> attrs = {}) {
        out_.nodes.push_back({op, name, std::move(inputs), {name}, std::move(attrs)});
        return name;
    }
    std::string integers(const std::string& name, Ints values, Ints dims = {}) {
        if (dims.empty()) dims = {static_cast<std::int64_t>(values.size())};
        out_.constants.emplace_back(name, OnnxTensor{OnnxTensor::Kind::int64, std::move(dims), {}, {}, std::move(values)});
        return name;
    }
    // x[run] along some axes; the whole axis needs no slice.
    std::string slice(const std::string& at, std::string x, const Shape& shape, const std::vector<std::pair<std::int64_t, StridedRun>>& cuts) {
        Ints starts, ends, places, steps;
        for (const auto& [axis, run] : cuts) {
            if (run == StridedRun{0, shape[static_cast<std::size_t>(axis)], 1}) continue;
            starts.push_back(run.lo), ends.push_back(run.lo + (run.count - 1) * run.stride + 1), places.push_back(axis), steps.push_back(run.stride);
        }
        if (starts.empty()) return x;
        return emit("Slice", at,
                    {x, integers(at + "/starts", starts), integers(at + "/ends", ends), integers(at + "/axes", places), integers(at + "/steps", steps)});
    }

    // Some channels of some groups.
    struct GroupedChannels {
        std::int64_t groups;           // of the node
        const StridedRun &g, &within;  // the groups, and the channels within each of them
    };
    // These channels, as one axis of groups and one of channels.
    std::string channels(const std::string& at, const std::string& x, const Shape& shape, std::size_t axis, const GroupedChannels& chosen) {
        const auto& [groups, g, within] = chosen;
        if (groups == 1) return slice(at, x, shape, {{static_cast<std::int64_t>(axis), within}});
        Shape split = shape, merged = shape;
        split[axis] = groups;
        split.insert(split.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape[axis] / groups);
        merged[axis] = g.count * within.count;
        std::string y = emit("Reshape", at + "/split", {x, integers(at + "/split_shape", split)});
        y = slice(at, y, split, {{static_cast<std::int64_t>(axis), g}, {static_cast<std::int64_t>(axis) + 1, within}});
        return emit("Reshape", at + "/merge", {y, integers(at + "/merge_shape", merged)});
    }

    std::string conv(const std::string& at, const Box& box) {
        const StridedRun &n = box.runs[0], &g = box.runs[1], &co = box.runs[2], &ci = box.runs[3];
        Shape in = node_.input_shapes[0], weight = parameters_of(node_)[0].shape;
        Ints strides, dilations, before, after;
        std::vector<std::pair<std::int64_t, StridedRun>> window{{0, n}};
        for (std::size_t d = 0; d < 2; ++d) {
            const StridedRun &o = box.runs[4 + d], &k = box.runs[6 + d];
            std::int64_t stride = node_.integers("stride")[d], dilation = node_.integers("dilation")[d], size = in[2 + d];
            std::int64_t first = o.lo * stride + k.lo * dilation - node_.integers("padding")[d];
            std::int64_t last = first + (o.count - 1) * o.stride * stride + (k.count - 1) * k.stride * dilation;
            std::int64_t from = std::max<std::int64_t>(first, 0), to = std::min(last, size - 1);
            if (from > to) return "";
            window.push_back({static_cast<std::int64_t>(2 + d), StridedRun{from, to - from + 1, 1}});
            strides.push_back(o.count > 1 ? o.stride * stride : 1), dilations.push_back(k.count > 1 ? k.stride * dilation : 1);
            before.push_back(from - first), after.push_back(last - to);
        }
        std::int64_t groups = node_.integer("groups");
        std::string x = slice(at + "/window", node_.inputs[0], in, window);
        Shape seen = in;
        for (const auto& [axis, run] : window) seen[static_cast<std::size_t>(axis)] = run.count;
        x = channels(at + "/input", x, seen, 1, {groups, g, ci});
        std::string w = channels(at + "/out", node_.name + ".weight", weight, 0, {groups, g, co});
        w = slice(at + "/weight", w, weight, {{1, ci}, {2, box.runs[6]}, {3, box.runs[7]}});
        return emit("Conv", at, {x, w},
                    {{"kernel_shape", Ints{box.runs[6].count, box.runs[7].count}},
                     {"strides", strides},
                     {"dilations", dilations},
                     {"pads", Ints{before[0], before[1], after[0], after[1]}},
                     {"group", g.count}});
    }

    std::string linear(const std::string& at, const Box& box) {
        const StridedRun &n = box.runs[0], &co = box.runs[1], &ci = box.runs[2];
        Shape flat{axes_[0].extent, axes_[2].extent}, weight{axes_[1].extent, axes_[2].extent};
        std::string x = emit("Reshape", at + "/rows", {node_.inputs[0], integers(at + "/rows_shape", flat)});
        x = slice(at + "/input", x, flat, {{0, n}, {1, ci}});
        std::string w = slice(at + "/weight", node_.name + ".weight", weight, {{0, co}, {1, ci}});
        return emit("Gemm", at, {x, w}, {{"transB", std::int64_t{1}}});
    }

    std::string matmul(const std::string& at, const Box& box) {
        Shape a{axes_[0].extent, axes_[1].extent, axes_[3].extent}, b{axes_[0].extent, axes_[3].extent, axes_[2].extent};
        std::string x = emit("Reshape", at + "/left", {node_.inputs[0], integers(at + "/left_shape", a)});
        std::string y = emit("Reshape", at + "/right", {node_.inputs[1], integers(at + "/right_shape", b)});
        x = slice(at + "/rows", x, a, {{0, box.runs[0]}, {1, box.runs[1]}, {2, box.runs[3]}});
        y = slice(at + "/columns", y, b, {{0, box.runs[0]}, {1, box.runs[3]}, {2, box.runs[2]}});
        return emit("MatMul", at, {x, y});
    }

    // Concatenates the flat results, the bias and one zero, and gathers from them what each output sums: a layer for each box that an
    // output may get a value from. Restored outputs gather what their source gathers.
    void gather() {
        std::vector<std::int64_t> sources = output_sources(node_.domain, axes_);
        std::vector<Ints> places(sources.size());  // of each computed output
        std::int64_t base = 0;
        for (const Box& box : shown_) base = note_places(box, base, places);
        bool bias = node_.op != "matmul" && node_.flag("bias");
        std::int64_t bias_base = base, zero = base + (bias ? channels_count() : 0);
        std::vector<std::string> parts = flats_;
        if (bias) parts.push_back(node_.name + ".bias");
        std::string nothing = node_.name + "/zero";
        out_.constants.emplace_back(nothing, OnnxTensor{OnnxTensor::Kind::float32, {1}, {0.0f}});
        parts.push_back(nothing);
        std::string all = emit("Concat", node_.name + "/all", parts, {{"axis", std::int64_t{0}}});
        std::size_t layers = bias;
        for (const Ints& p : places) layers = std::max(layers, p.size() + bias);
        layers = std::max<std::size_t>(layers, 1);
        std::string sum;
        for (std::size_t layer = 0; layer < layers; ++layer) {
            Ints index(sources.size(), zero);
            for (std::size_t o = 0; o < sources.size(); ++o) {
                if (sources[o] < 0) continue;
                const Ints& from = places[static_cast<std::size_t>(sources[o])];
                if (layer < from.size())
                    index[o] = from[layer];
                else if (bias && layer == layers - 1)
                    index[o] = bias_base + channel_of(sources[o]);
            }
            std::string at = fmt::format("{}/layer{}", node_.name, layer);
            std::string name = layers == 1 ? node_.name : at;
            std::string y = emit("Gather", name, {all, integers(at + "/index", index, node_.shape)}, {{"axis", std::int64_t{0}}});
            sum = layer == 0 ? y : emit("Add", layer == layers - 1 ? node_.name : at + "/sum", {sum, y});
        }
    }

    // Adds, for each output of the box, where its value is in the concatenation; returns where the next box begins.
    std::int64_t note_places(const Box& box, std::int64_t base, std::vector<Ints>& places) const {
        std::vector<std::pair<StridedRun, std::int64_t>> outputs;  // run and extent
        for (std::size_t a = 0; a < axes_.size(); ++a)
            if (!axes_[a].reduction) outputs.emplace_back(box.runs[a], axes_[a].extent);
        std::int64_t count = 1;
        for (const auto& [run, extent] : outputs) count *= run.count;
        for (std::int64_t flat = 0; flat < count; ++flat) {
            std::int64_t rest = flat, index = 0, scale = 1;
            for (std::size_t a = outputs.size(); a-- > 0;) {
                const auto& [run, extent] = outputs[a];
                index += (run.lo + rest % run.count * run.stride) * scale;
                rest /= run.count;
                scale *= extent;
            }
            places[static_cast<std::size_t>(index)].push_back(base + flat);
        }
        return base + count;
    }

    std::int64_t channels_count() const { return node_.op == "conv2d" ? node_.shape[1] : node_.shape.back(); }
    std::int64_t channel_of(std::int64_t output) const {
        return node_.op == "conv2d" ? output / (node_.shape[2] * node_.shape[3]) % node_.shape[1] : output % node_.shape.back();
    }

    const Node& node_;
    std::vector<Axis> axes_;
    DomainExpansion out_;
    std::vector<std::string> flats_;
    std::vector<Box> shown_;  // the boxes behind flats_
};

}  // namespace

DomainExpansion expand_domain(const Node& node) {
    if (auto plain = plain_domain(node)) {
        plain->description = write_node(node);
        return std::move(*plain);
    }
    return Expansion(node).run();
}

Node described_node(const std::string& name, const std::string& description) {
    Node node = read_node(make_source(fmt::format("<loopegg.node.{}>", name), description));
    if (node.name != name) throw UserError(fmt::format("the description of node '{}' is about '{}'", name, node.name));
    return node;
}

}  // namespace loopegg
