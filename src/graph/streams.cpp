#include "graph/streams.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "graph/hidden_widths.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

bool restricts(const Node& node, std::initializer_list<std::string_view> axes) {
    const auto named = [&](const Digit& d) { return std::find(axes.begin(), axes.end(), d.axis) != axes.end(); };
    for (const DomainPart& part : node.domain.parts) {
        for (const DigitRange& r : part.ranges)
            if (named(r.digit)) return true;
        for (const DigitPair& p : part.diagonals)
            if (named(p.first) || named(p.second)) return true;
    }
    return false;
}

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
    std::int64_t n = 1;
    for (std::size_t d = first; d < last; ++d) n *= shape[d];
    return n;
}

// Walks the nodes in order and gives every value its channels; streams that are found to be one are united.
class StreamFinder {
public:
    explicit StreamFinder(const Graph& graph) : graph_(graph) {}

    Streams find() {
        for (const GraphInput& input : graph_.inputs)
            if (!input.shape.empty())
                of_[input.name] = {input.shape.size() == 4 ? 1 : input.shape.size() - 1,
                                   {made(input.name, input.shape.size() == 4 ? input.shape[1] : input.shape.back())}};
        for (const GraphInput& input : graph_.inputs) fix(input.name, "'" + input.name + "' is an input of the network");
        for (const Node& node : graph_.nodes) visit(node);
        for (const std::string& output : graph_.outputs) fix(output, "'" + output + "' is an output of the network: its channels must stay");
        return gathered();
    }

private:
    std::size_t made(const std::string& writer, std::int64_t width) {
        parent_.push_back(all_.size());
        all_.push_back({});
        all_.back().width = width, all_.back().writers.push_back(writer);
        return parent_.back();
    }

    std::size_t root(std::size_t s) {
        while (parent_[s] != s) s = parent_[s] = parent_[parent_[s]];
        return s;
    }

    void unite(std::size_t a, std::size_t b) {
        a = root(a), b = root(b);
        if (a == b) return;
        if (b < a) std::swap(a, b);
        Stream &into = all_[a], &from = all_[b];
        into.writers.insert(into.writers.end(), from.writers.begin(), from.writers.end());
        into.readers.insert(into.readers.end(), from.readers.begin(), from.readers.end());
        into.blocks = std::lcm(into.blocks, from.blocks), into.joined |= from.joined;
        if (into.fixed.empty()) into.fixed = from.fixed;
        parent_[b] = a;
    }

    void fix(const std::string& value, const std::string& why) {
        if (const auto it = of_.find(value); it != of_.end())
            for (std::size_t s : it->second.streams)
                if (Stream& stream = all_[root(s)]; stream.fixed.empty()) stream.fixed = why;
    }

    void join(const ChannelAxis& channels) {
        for (std::size_t s : channels.streams) all_[root(s)].joined = true;
    }

    const ChannelAxis* channels(const std::string& value) const {
        const auto it = of_.find(value);
        return it == of_.end() ? nullptr : &it->second;
    }

    // A site that reads `dimension` of its input.
    void read(const Node& node, std::size_t dimension, std::int64_t groups) {
        const ChannelAxis* in = channels(node.inputs[0]);
        if (!in) return;
        if (in->axis != dimension) return fix(node.inputs[0], "'" + node.name + "' reads another dimension");
        if (restricts(node, {"ci", "g"})) fix(node.inputs[0], "'" + node.name + "' reads these channels and is restricted already");
        if (groups > 1 && in->streams.size() > 1) fix(node.inputs[0], "'" + node.name + "' reads these channels in " + std::to_string(groups) + " groups");
        for (std::size_t s : in->streams) {
            Stream& stream = all_[root(s)];
            stream.readers.push_back(node.name), stream.blocks = std::lcm(stream.blocks, groups);
        }
    }

    void write(const Node& node, std::size_t dimension, std::int64_t groups) {
        of_[node.name] = {dimension, {made(node.name, node.shape[dimension])}};
        all_.back().blocks = groups;
        if (restricts(node, {"co", "g"})) fix(node.name, "the output channels of '" + node.name + "' are restricted already");
    }

    // What works on each channel by itself, whatever it does to the other dimensions.
    void pass(const Node& node) {
        if (const ChannelAxis* in = channels(node.inputs[0])) of_[node.name] = *in;
    }

    // Two values, dimensions matched from the last one, whose channels are added or put next to each other in another dimension: they are one.
    void tie(const Node& node) {
        std::optional<ChannelAxis> out;
        const std::size_t rank = node.shape.size();
        auto place = [&](std::size_t operand, std::size_t axis) { return axis + rank - node.input_shapes[operand].size(); };
        for (std::size_t i = 0; i < node.inputs.size() && !out; ++i)
            if (const ChannelAxis* c = channels(node.inputs[i]); c && node.input_shapes[i][c->axis] == node.shape[place(i, c->axis)])
                out = *c, out->axis = place(i, c->axis);
        if (!out) return;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const Shape& shape = node.input_shapes[i];
            if (out->axis + shape.size() < rank || shape[out->axis + shape.size() - rank] == 1) continue;  // stretched: the same for every channel
            const ChannelAxis* c = channels(node.inputs[i]);
            if (!c) c = parameter_channels(node.inputs[i], out->axis + shape.size() - rank);
            const bool alike = c && place(i, c->axis) == out->axis && c->places == out->places && same_widths(c->streams, out->streams);
            if (alike)
                for (std::size_t s = 0; s < out->streams.size(); ++s) unite(out->streams[s], c->streams[s]);
            else {
                of_[node.name] = *out;
                fix(node.name, "'" + node.name + "' puts these channels together with others that do not match one for one");
                fix(node.inputs[i], "'" + node.name + "' puts these channels together with others that do not match one for one");
            }
        }
        join(*out);
        of_[node.name] = *out;
    }

    bool same_widths(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](std::size_t x, std::size_t y) { return all_[root(x)].width == all_[root(y)].width; });
    }

    // A parameter's channels are determined by what it is added to.
    const ChannelAxis* parameter_channels(const std::string& name, std::size_t axis) {
        const Node* node = graph_.find(name);
        if (!node || node->op != "parameter") return nullptr;
        return &(of_[name] = {axis, {made(name, node->shape[axis])}});
    }

    void concatenate(const Node& node) {
        const std::int64_t written = node.integer("axis");
        const std::size_t axis = static_cast<std::size_t>(written < 0 ? written + static_cast<std::int64_t>(node.shape.size()) : written);
        ChannelAxis out{axis, {}};
        bool together = true;
        for (const std::string& input : node.inputs) {
            const ChannelAxis* c = channels(input);
            together &= c && c->axis == axis && c->places == 1;
            if (together) out.streams.insert(out.streams.end(), c->streams.begin(), c->streams.end());
        }
        if (together) {
            join(out);
            of_[node.name] = std::move(out);
            return;
        }
        const bool across = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& i) { return channels(i) && channels(i)->axis == axis; });
        if (!across) return tie(node);
        for (const std::string& input : node.inputs) fix(input, "'" + node.name + "' (concat) needs all of these channels");
    }

    // The dimension of the channels, where it is one dimension still.
    void reshape(const Node& node) {
        const ChannelAxis* in = channels(node.inputs[0]);
        if (!in) return;
        const Shape &before = node.input_shapes[0], &after = node.shape;
        const std::int64_t outer = product(before, 0, in->axis);
        for (std::size_t d = 0; d < after.size(); ++d)
            if (after[d] == before[in->axis] && product(after, 0, d) == outer) {
                of_[node.name] = {d, in->streams, in->places};
                return;
            }
        fix(node.inputs[0], "'" + node.name + "' (" + node.op + ") needs all of these channels");
    }

    void flatten(const Node& node) {
        const ChannelAxis* in = channels(node.inputs[0]);
        if (!in) return;
        const std::int64_t written = node.integer("axis");
        const std::size_t axis = static_cast<std::size_t>(written < 0 ? written + static_cast<std::int64_t>(node.input_shapes[0].size()) : written);
        if (in->axis < axis) return pass(node);
        if (in->axis > axis && product(node.input_shapes[0], axis, in->axis) > 1)
            return fix(node.inputs[0], "'" + node.name + "' (flatten) needs all of these channels");
        of_[node.name] = {axis, in->streams, in->places * product(node.input_shapes[0], in->axis + 1, node.input_shapes[0].size())};
    }

    void visit(const Node& node) {
        const std::string& op = node.op;
        if (op == "conv2d" && is_depthwise(node)) {
            read_depthwise(node);
        } else if (op == "conv2d") {
            const std::int64_t groups = node.integer("groups");
            read(node, 1, groups), write(node, 1, groups);
        } else if (op == "linear") {
            read(node, node.input_shapes[0].size() - 1, 1), write(node, node.shape.size() - 1, 1);
        } else if (op == "add" || op == "mul") {
            tie(node);
        } else if (op == "concat") {
            concatenate(node);
        } else if (op == "reshape") {
            reshape(node);
        } else if (op == "flatten") {
            flatten(node);
        } else if (op == "transpose") {
            if (const ChannelAxis* in = channels(node.inputs[0])) {
                const auto& order = node.integers("order");
                const auto at = std::find(order.begin(), order.end(), static_cast<std::int64_t>(in->axis));
                of_[node.name] = {static_cast<std::size_t>(at - order.begin()), in->streams, in->places};
            }
        } else if (keeps_channels_apart(op) || op == "global_avg_pool" || op == "layer_norm") {
            pass(node);
        } else {
            for (const std::string& input : node.inputs) fix(input, "'" + node.name + "' (" + op + ") needs all of these channels");
        }
    }

    void read_depthwise(const Node& node) {
        const ChannelAxis* in = channels(node.inputs[0]);
        if (!in || in->axis != 1) return write(node, 1, node.integer("groups"));
        if (restricts(node, {"g"})) fix(node.inputs[0], "'" + node.name + "' reads these channels and is restricted already");
        pass(node);
    }

    Streams gathered() {
        Streams out;
        std::map<std::size_t, std::size_t> index;
        for (std::size_t s = 0; s < all_.size(); ++s)
            if (root(s) == s) index[s] = out.all.size(), out.all.push_back(all_[s]);
        for (auto& [name, channels] : of_) {
            for (std::size_t& s : channels.streams) s = index.at(root(s));
            out.of[name] = channels;
        }
        return out;
    }

    const Graph& graph_;
    std::vector<Stream> all_;
    std::vector<std::size_t> parent_;
    std::map<std::string, ChannelAxis> of_;
};

}  // namespace

bool is_depthwise(const Node& node) {
    if (node.op != "conv2d") return false;
    const std::int64_t groups = node.integer("groups");
    return groups > 1 && groups == node.input_shapes[0][1] && groups == node.shape[1];
}

std::optional<std::size_t> Streams::written_by(const std::string& name) const {
    const auto it = of.find(name);
    if (it == of.end() || it->second.streams.size() != 1) return {};
    const std::size_t stream = it->second.streams[0];
    const auto& writers = all[stream].writers;
    return std::find(writers.begin(), writers.end(), name) == writers.end() ? std::nullopt : std::optional(stream);
}

Streams streams_of(const Graph& graph) { return StreamFinder(graph).find(); }

}  // namespace loopegg
