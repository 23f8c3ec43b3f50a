#include "graph/onnx/plain_domain.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"
#include "graph/place.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

// An even run of numbers, if they are one.
std::optional<StridedRun> as_run(const Ints& values) {
    if (values.empty()) return std::nullopt;
    const std::int64_t step = values.size() > 1 ? values[1] - values[0] : 1;
    for (std::size_t i = 1; i < values.size(); ++i)
        if (values[i] - values[i - 1] != step) return std::nullopt;
    if (step < 1) return std::nullopt;
    return StridedRun{values[0], static_cast<std::int64_t>(values.size()), step};
}

Ints listed(const StridedRun& run) {
    Ints out;
    for (std::int64_t i = 0; i < run.count; ++i) out.push_back(run.lo + i * run.stride);
    return out;
}

class PlainExpansion {
public:
    explicit PlainExpansion(const Node& node) : node_(node), axes_(axes_of(node)), conv_(node.op == "conv2d") {}

    std::optional<DomainExpansion> run() {
        if (node_.op != "conv2d" && node_.op != "linear") return std::nullopt;
        if (!read_boxes() || !read_sources()) return std::nullopt;
        const std::string x = window();
        if (x.empty()) return std::nullopt;
        std::string y = sums(x);
        y = restored(y);
        if (out_.nodes.empty() || out_.nodes.back().outputs[0] != y) y = emit("Identity", "same", {y});
        out_.nodes.back().name = out_.nodes.back().outputs[0] = node_.name;
        return std::move(out_);
    }

private:
    // Channels that are computed, each with the inputs that it sums; nothing else may differ between them.
    struct Channel {
        std::int64_t index;  // among all outputs
        Ints inputs;         // among all inputs
    };
    struct Class {  // outputs that sum the same inputs
        Ints outputs, inputs;
    };

    bool read_boxes() {
        std::map<std::int64_t, Ints> reads;
        const std::vector<Box> all = boxes(node_.domain, axes_);
        if (all.empty()) return false;
        const std::size_t co = conv_ ? 2 : 1, ci = conv_ ? 3 : 2;
        const std::int64_t CO = axes_[co].extent, CI = axes_[ci].extent;
        if (conv_)
            place_ = {all[0].runs[0], all[0].runs[4], all[0].runs[5]}, kernel_ = {all[0].runs[6], all[0].runs[7]};
        else
            place_ = {all[0].runs[0]};
        for (const Box& box : all) {
            if (conv_ &&
                (std::vector<StridedRun>{box.runs[0], box.runs[4], box.runs[5]} != place_ || std::vector<StridedRun>{box.runs[6], box.runs[7]} != kernel_))
                return false;
            if (!conv_ && box.runs[0] != place_[0]) return false;
            for (std::int64_t g : conv_ ? listed(box.runs[1]) : Ints{0})
                for (std::int64_t o : listed(box.runs[co]))
                    for (std::int64_t i : listed(box.runs[ci])) reads[g * CO + o].push_back(g * CI + i);
        }
        if (!(place_[0] == StridedRun{0, axes_[0].extent, 1})) return false;  // every image, every row
        for (auto& [o, inputs] : reads) {
            std::sort(inputs.begin(), inputs.end());
            computed_.push_back({o, inputs});
        }
        return true;
    }

    // Where each output comes from, one list a dimension.
    bool read_sources() {
        const Ints sources = output_sources(node_.domain, axes_);
        Shape shape = conv_ ? node_.shape : Shape{axes_[0].extent, axes_[1].extent};
        Ints strides(shape.size(), 1);
        for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
        maps_.clear();
        for (std::int64_t d : shape) maps_.emplace_back(at(d), -1);
        auto place = [&](std::int64_t flat, std::size_t d) { return flat / strides[d] % shape[d]; };
        for (std::size_t i = 0; i < sources.size(); ++i)
            if (sources[i] >= 0)
                for (std::size_t d = 0; d < shape.size(); ++d) maps_[d][at(place(static_cast<std::int64_t>(i), d))] = place(sources[i], d);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            std::int64_t flat = 0;
            for (std::size_t d = 0; d < shape.size() && flat >= 0; ++d) {
                const std::int64_t from = maps_[d][at(place(static_cast<std::int64_t>(i), d))];
                flat = from < 0 ? -1 : flat + from * strides[d];
            }
            if (flat != sources[i]) return false;
        }
        for (std::size_t d = 2; d < maps_.size(); ++d)
            if (std::count(maps_[d].begin(), maps_[d].end(), -1)) return false;
        return true;
    }

    std::string emit(const std::string& op, const std::string& what, std::vector<std::string> inputs, std::map<std::string, OnnxAttr> attrs = {}) {
        const std::string name = fmt::format("{}/{}{}", node_.name, what, out_.nodes.size());
        out_.nodes.push_back({op, name, std::move(inputs), {name}, std::move(attrs)});
        return name;
    }
    std::string constant(const std::string& what, OnnxTensor t) {
        const std::string name = fmt::format("{}/{}#{}", node_.name, what, out_.constants.size());
        out_.constants.emplace_back(name, std::move(t));
        return name;
    }
    std::string integers(const std::string& what, Ints values) {
        return constant(what, {OnnxTensor::Kind::int64, {static_cast<std::int64_t>(values.size())}, {}, {}, values});
    }
    std::string sliced(const std::string& x, const std::vector<std::pair<std::int64_t, StridedRun>>& cuts) {
        Ints starts, ends, axes, steps;
        for (const auto& [axis, run] : cuts)
            starts.push_back(run.lo), ends.push_back(run.lo + (run.count - 1) * run.stride + 1), axes.push_back(axis), steps.push_back(run.stride);
        return emit("Slice", "slice", {x, integers("starts", starts), integers("ends", ends), integers("axes", axes), integers("steps", steps)});
    }
    // Elements of one axis: all, an even run, or any.
    std::string taken(const std::string& x, std::int64_t axis, const Ints& places, std::int64_t extent) {
        const auto run = as_run(places);
        if (run && *run == StridedRun{0, extent, 1}) return x;
        if (run) return sliced(x, {{axis, *run}});
        return emit("Gather", "take", {x, integers("places", places)}, {{"axis", axis}});
    }

    // The rows and columns that the outputs need, and the padding around them.
    std::string window() {
        if (!conv_) return node_.inputs[0];
        const Shape& in = node_.input_shapes[0];
        std::vector<std::pair<std::int64_t, StridedRun>> cuts;
        for (std::size_t d = 0; d < 2; ++d) {
            const StridedRun &o = place_[1 + d], &k = kernel_[d];
            const std::int64_t stride = node_.integers("stride")[d], dilation = node_.integers("dilation")[d], size = in[2 + d];
            const std::int64_t first = o.lo * stride + k.lo * dilation - node_.integers("padding")[d];
            const std::int64_t last = first + (o.count - 1) * o.stride * stride + (k.count - 1) * k.stride * dilation;
            const std::int64_t from = std::max<std::int64_t>(first, 0), to = std::min(last, size - 1);
            if (from > to) return "";
            // Beyond the last window nothing need be cut off: a stride does not reach it.
            const std::int64_t step = o.count > 1 ? o.stride * stride : 1;
            const bool cut_end = o.count > 1 ? size - 1 - last >= step : to != size - 1;
            if (from > 0 || cut_end) cuts.push_back({static_cast<std::int64_t>(2 + d), StridedRun{from, (cut_end ? to : size - 1) - from + 1, 1}});
            if (d == 0) height_ = cuts.empty() ? size : cuts[0].second.count;
            strides_.push_back(step), dilations_.push_back(k.count > 1 ? k.stride * dilation : 1);
            before_.push_back(from - first), after_.push_back(last > size - 1 ? last - (size - 1) : 0);
        }
        return cuts.empty() ? node_.inputs[0] : sliced(node_.inputs[0], cuts);
    }

    std::vector<Class> classes() const {
        std::map<Ints, Class> found;
        for (const Channel& c : computed_) found[c.inputs].outputs.push_back(c.index), found[c.inputs].inputs = c.inputs;
        std::vector<Class> all;
        for (auto& [inputs, c] : found) all.push_back(std::move(c));
        std::sort(all.begin(), all.end(), [](const Class& a, const Class& b) { return a.outputs[0] < b.outputs[0]; });
        return all;
    }

    // The weights [outputs, inputs of a group, ...] of some outputs and of places among a group's inputs.
    std::string weights(const Ints& outputs, const Ints& inputs) {
        const Shape whole = parameters_of(node_)[0].shape;
        std::string w = taken(node_.name + ".weight", 0, outputs, whole[0]);
        w = taken(w, 1, inputs, whole[1]);
        std::vector<std::pair<std::int64_t, StridedRun>> cuts;
        for (std::size_t d = 0; conv_ && d < 2; ++d)
            if (kernel_[d] != StridedRun{0, whole[2 + d], 1}) cuts.push_back({static_cast<std::int64_t>(2 + d), kernel_[d]});
        return cuts.empty() ? w : sliced(w, cuts);
    }
    std::string operation(const std::string& x, const std::string& w, const Ints& outputs, std::int64_t groups) {
        const bool bias = node_.flag("bias");
        const std::string b = bias ? taken(node_.name + ".bias", 0, outputs, parameters_of(node_)[0].shape[0]) : "";
        if (conv_) {
            std::vector<std::string> in{x, w};
            if (bias) in.push_back(b);
            return emit("Conv", "conv", in,
                        {{"kernel_shape", Ints{kernel_[0].count, kernel_[1].count}},
                         {"strides", strides_},
                         {"dilations", dilations_},
                         {"pads", Ints{before_[0], before_[1], after_[0], after_[1]}},
                         {"group", groups}});
        }
        std::string y = emit("MatMul", "matmul", {x, emit("Transpose", "turned", {w}, {{"perm", Ints{1, 0}}})});
        return bias ? emit("Add", "biased", {y, b}) : y;
    }
    std::int64_t channel_axis() const { return conv_ ? 1 : static_cast<std::int64_t>(node_.shape.size()) - 1; }
    std::int64_t inputs_count() const { return conv_ ? node_.input_shapes[0][1] : node_.input_shapes[0].back(); }

    // All computed channels, in the order of order_.
    std::string sums(const std::string& x) {
        std::vector<Class> all = classes();
        const std::int64_t groups = conv_ ? node_.integer("groups") : 1, per_group = inputs_count() / groups;
        if (conv_ && even(all)) return grouped(x, all);
        double sliced_work = 0, whole_work = 0;
        for (const Class& c : all) sliced_work += static_cast<double>(c.outputs.size() * c.inputs.size());
        for (const Channel& c : computed_) whole_work += static_cast<double>(per_group), (void)c;
        const bool small =
            std::all_of(all.begin(), all.end(), [&](const Class& c) { return as_run(c.inputs) && c.inputs.back() / per_group == c.inputs[0] / per_group; });
        if (small && all.size() <= 4 && sliced_work < 0.8 * whole_work) return concatenated(x, all);
        return masked(x);
    }

    // One grouped operator does it: equal parts of the outputs read equal, disjoint parts of the inputs.
    bool even(const std::vector<Class>& all) const {
        std::map<std::int64_t, int> seen;
        for (const Class& c : all) {
            if (c.outputs.size() != all[0].outputs.size() || c.inputs.size() != all[0].inputs.size()) return false;
            for (std::int64_t i : c.inputs)
                if (++seen[i] > 1) return false;
        }
        return true;
    }
    std::string grouped(const std::string& x, const std::vector<Class>& all) {
        Ints inputs, places;
        const std::int64_t per_group = inputs_count() / node_.integer("groups");
        bool same_places = true;  // within their groups of the weight
        for (const Class& c : all) {
            Ints within;
            for (std::int64_t i : c.inputs) within.push_back(i % per_group);
            if (places.empty()) places = within;
            same_places = same_places && places == within;
            order_.insert(order_.end(), c.outputs.begin(), c.outputs.end());
            inputs.insert(inputs.end(), c.inputs.begin(), c.inputs.end());
        }
        std::string w;
        if (same_places) {
            w = weights(order_, places);
        } else {  // each part of the weight by itself; all of it is constant
            std::vector<std::string> parts;
            for (const Class& c : all) {
                Ints within;
                for (std::int64_t i : c.inputs) within.push_back(i % per_group);
                parts.push_back(weights(c.outputs, within));
            }
            w = parts.size() == 1 ? parts[0] : emit("Concat", "weights", parts, {{"axis", std::int64_t{0}}});
        }
        return operation(shuffled(x, inputs), w, order_, static_cast<std::int64_t>(all.size()));
    }
    // Input channels in another order. What a transpose says is a transpose.
    std::string shuffled(const std::string& x, const Ints& inputs) {
        const std::int64_t n = inputs_count();
        if (static_cast<std::int64_t>(inputs.size()) == n && n > 1 && inputs[0] == 0 && inputs[1] > 1 && n % inputs[1] == 0) {
            const std::int64_t step = inputs[1], rows = n / step;
            bool turned = true;
            for (std::int64_t i = 0; i < n && turned; ++i) turned = inputs[at(i)] == i % rows * step + i / rows;
            if (turned) {
                std::string y = emit("Reshape", "apart", {x, integers("apart", {0, rows, step, -1})});
                y = emit("Transpose", "turned", {y}, {{"perm", Ints{0, 2, 1, 3}}});
                return emit("Reshape", "together", {y, integers("together", {0, n, height_, -1})});
            }
        }
        return taken(x, 1, inputs, n);
    }

    std::string concatenated(const std::string& x, const std::vector<Class>& all) {
        std::vector<std::string> parts;
        const std::int64_t per_group = inputs_count() / (conv_ ? node_.integer("groups") : 1);
        for (const Class& c : all) {
            Ints within;
            for (std::int64_t i : c.inputs) within.push_back(i % per_group);
            parts.push_back(operation(taken(x, channel_axis(), c.inputs, inputs_count()), weights(c.outputs, within), c.outputs, 1));
            order_.insert(order_.end(), c.outputs.begin(), c.outputs.end());
        }
        return parts.size() == 1 ? parts[0] : emit("Concat", "all", parts, {{"axis", channel_axis()}});
    }

    // The whole operator, with zeros where nothing is summed; of its outputs only the computed ones, as far as groups allow that.
    std::string masked(const std::string& x) {
        const std::int64_t groups = conv_ ? node_.integer("groups") : 1, per_group = inputs_count() / groups, outs = parameters_of(node_)[0].shape[0];
        Ints all(at(per_group));
        std::iota(all.begin(), all.end(), 0);
        order_.clear();
        if (groups == 1)
            for (const Channel& c : computed_) order_.push_back(c.index);
        else
            order_.resize(at(outs)), std::iota(order_.begin(), order_.end(), 0);
        OnnxTensor mask{OnnxTensor::Kind::int64, {static_cast<std::int64_t>(order_.size()), per_group}};
        mask.type = 9;
        mask.integers.assign(order_.size() * at(per_group), 0);
        std::map<std::int64_t, std::size_t> row;
        for (std::size_t i = 0; i < order_.size(); ++i) row[order_[i]] = i;
        for (const Channel& c : computed_)
            for (std::int64_t i : c.inputs) mask.integers[row.at(c.index) * at(per_group) + at(i % per_group)] = 1;
        if (conv_) mask.dims.push_back(1), mask.dims.push_back(1);
        std::string w = weights(order_, all);
        if (std::count(mask.integers.begin(), mask.integers.end(), 0))
            w = emit("Where", "kept", {constant("mask", mask), w, constant("zero", {OnnxTensor::Kind::float32, {}, {0.0f}})});
        return operation(x, w, order_, groups);
    }

    // Outputs that no instance computes come back, one dimension after another.
    std::string restored(std::string y) {
        std::map<std::int64_t, std::int64_t> where;  // of a computed channel
        for (std::size_t i = 0; i < order_.size(); ++i) where[order_[i]] = static_cast<std::int64_t>(i);
        Ints channels;
        for (std::int64_t from : maps_[1]) channels.push_back(from < 0 ? -1 : where.at(from));
        y = spread(y, channel_axis(), channels, static_cast<std::int64_t>(order_.size()));
        if (!conv_) return y;
        Ints places[2];
        for (std::size_t d = 0; d < 2; ++d)
            for (std::int64_t from : maps_[2 + d]) places[d].push_back((from - place_[1 + d].lo) / place_[1 + d].stride);
        const Ints times{repeats(places[0], place_[1].count), repeats(places[1], place_[2].count)};
        y = enlarged(y, times);
        for (std::size_t d = 0; d < 2; ++d)
            if (times[d] == 0) y = spread(y, static_cast<std::int64_t>(2 + d), places[d], place_[1 + d].count);
        return y;
    }
    // Each row and each column so many times; 0 leaves a dimension to others. One operator does both.
    std::string enlarged(std::string y, const Ints& times) {
        if (times[0] <= 1 && times[1] <= 1) return y;
        OnnxTensor scales{OnnxTensor::Kind::float32, {4}, {1, 1, 1, 1}};
        for (std::size_t d = 0; d < 2; ++d) scales.floats[2 + d] = static_cast<float>(std::max<std::int64_t>(times[d], 1));
        y = emit("Resize", "larger", {y, "", constant("scales", scales)},
                 {{"mode", std::string("nearest")}, {"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
        std::vector<std::pair<std::int64_t, StridedRun>> cuts;
        for (std::size_t d = 0; d < 2; ++d)
            if (times[d] > 0 && place_[1 + d].count * times[d] != node_.shape[2 + d])
                cuts.push_back({static_cast<std::int64_t>(2 + d), StridedRun{0, node_.shape[2 + d], 1}});
        return cuts.empty() ? y : sliced(y, cuts);
    }
    std::string spread(const std::string& y, std::int64_t axis, const Ints& places, std::int64_t have) {
        const auto n = static_cast<std::int64_t>(places.size());
        bool same = n == have, tiled = n % have == 0;
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < n; ++i) same = same && places[at(i)] == i, tiled = tiled && places[at(i)] == i % have;
        if (same) return y;
        if (tiled) return emit("Concat", "again", std::vector<std::string>(at(n / have), y), {{"axis", axis}});
        while (kept < n && places[at(kept)] == kept) ++kept;
        if (kept == have && std::all_of(places.begin() + kept, places.end(), [](std::int64_t p) { return p < 0; })) {  // zeros behind
            Ints pads(2 * node_.shape.size(), 0);
            pads[node_.shape.size() + at(axis)] = n - have;
            return emit("Pad", "zeros", {y, integers("pads", pads)});
        }
        Ints index = places;
        for (std::int64_t& p : index) p = std::max<std::int64_t>(p, 0);
        const bool zeros = std::count(places.begin(), places.end(), -1) > 0;
        const std::string made = emit("Gather", "take", {y, integers("places", index)}, {{"axis", axis}});
        if (!zeros) return made;
        OnnxTensor mask{OnnxTensor::Kind::float32, {n}};
        for (std::int64_t p : places) mask.floats.push_back(p < 0 ? 0.0f : 1.0f);
        for (std::size_t d = at(axis) + 1; d < node_.shape.size(); ++d) mask.dims.push_back(1);
        return emit("Mul", "cleared", {made, constant("mask", mask)});
    }
    // 0 0 1 1 2 2: two. 0 when it is no such list.
    static std::int64_t repeats(const Ints& index, std::int64_t have) {
        std::int64_t r = 1;
        while (at(r) < index.size() && index[at(r)] == 0) ++r;
        for (std::size_t i = 0; i < index.size(); ++i)
            if (index[i] != static_cast<std::int64_t>(i) / r) return 0;
        return have * r >= static_cast<std::int64_t>(index.size()) ? r : 0;
    }

    const Node& node_;
    std::vector<Axis> axes_;
    bool conv_;
    DomainExpansion out_;
    std::vector<StridedRun> place_, kernel_;  // n oh ow, or n; kh kw
    std::vector<Channel> computed_;
    std::vector<Ints> maps_;  // of the output's dimensions: where each place comes from, -1 for zero
    Ints strides_, dilations_, before_, after_, order_;
    std::int64_t height_ = 0;  // of what the windows walk over
};

}  // namespace

std::optional<DomainExpansion> plain_domain(const Node& node) { return PlainExpansion(node).run(); }

}  // namespace loopegg
