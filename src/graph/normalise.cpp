#include "graph/normalise.hpp"

#include <algorithm>
#include <set>

#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

bool names_only(const Domain& domain, const std::vector<Axis>& axes, const std::set<std::string>& allowed) {
    std::vector<Axis> named = axes_named_by(domain, axes);
    return std::all_of(named.begin(), named.end(), [&](const Axis& a) { return allowed.contains(a.name); });
}

// Splits a domain of one part into the conditions on channels and those on the kernel; false when some condition mixes them.
bool split_domain(const Domain& domain, Domain& channels, Domain& kernel) {
    if (domain.parts.size() != 1) return false;
    auto of_kernel = [](const Digit& d) { return d.axis == "kh" || d.axis == "kw"; };
    DomainPart c, k;
    for (const DigitRange& r : domain.parts[0].ranges) (of_kernel(r.digit) ? k : c).ranges.push_back(r);
    for (const DigitPair& p : domain.parts[0].diagonals) {
        if (of_kernel(p.first) != of_kernel(p.second)) return false;
        (of_kernel(p.first) ? k : c).diagonals.push_back(p);
    }
    if (k == DomainPart{}) return false;
    channels = c == DomainPart{} ? Domain{} : Domain{{c}, domain.restore};
    kernel = {{k}};
    return true;
}

bool same_outputs(Node& node, const Shape& before) {
    try {
        node.shape = operator_of(node).infer(node);
    } catch (const NodeProblem&) {
        return false;
    }
    return node.shape == before;
}

Node normal_form(Node node) {
    if (node.op != "conv2d" || node.domain.whole()) return node;
    if (auto groups = as_groups(node)) {
        node.attrs["groups"] = *groups;
        node.domain = {};
        return node;
    }
    Node made = node;
    Domain channels, kernel;
    if (!split_domain(node.domain, channels, kernel)) return node;
    made.domain = kernel;
    auto part = as_kernel(made);
    if (!part) return node;
    made.attrs["kernel"] = part->kernel, made.attrs["padding"] = part->padding, made.attrs["dilation"] = part->dilation;
    made.domain = channels;
    return same_outputs(made, node.shape) ? normal_form(made) : node;
}

}  // namespace

std::optional<std::int64_t> as_groups(const Node& node) {
    std::vector<Axis> axes = axes_of(node);
    if (node.op != "conv2d" || node.domain.whole() || node.domain.restore != Restore::none || !names_only(node.domain, axes, {"co", "ci"})) return std::nullopt;
    std::int64_t outs = axes[2].extent, ins = axes[3].extent;
    std::vector<char> mask = projection(node.domain, axes, {"co", "ci"});
    std::int64_t width = std::count(mask.begin(), mask.begin() + ins, 1);  // inputs of the first output
    if (width == 0 || ins % width || outs % (ins / width)) return std::nullopt;
    std::int64_t blocks = ins / width;
    for (std::int64_t co = 0; co < outs; ++co)
        for (std::int64_t ci = 0; ci < ins; ++ci)
            if (static_cast<bool>(mask[static_cast<std::size_t>(co * ins + ci)]) != (co / (outs / blocks) == ci / width)) return std::nullopt;
    return blocks * node.integer("groups");
}

std::optional<KernelPart> as_kernel(const Node& node) {
    std::vector<Axis> axes = axes_of(node);
    if (node.op != "conv2d" || node.domain.whole() || !names_only(node.domain, axes, {"kh", "kw"})) return std::nullopt;
    std::vector<Axis> kernel{axes[6], axes[7]};
    std::vector<Box> all = boxes(node.domain, kernel);
    if (all.size() != 1) return std::nullopt;
    KernelPart part;
    for (std::size_t d = 0; d < 2; ++d) {
        const StridedRun& run = all[0].runs[d];
        std::int64_t dilation = node.integers("dilation")[d], padding = node.integers("padding")[d] - run.lo * dilation;
        if (padding < 0) return std::nullopt;
        part.kernel.push_back(run.count);
        part.padding.push_back(padding);
        part.dilation.push_back(run.count == 1 ? 1 : dilation * run.stride);
    }
    return part;
}

Graph normalise(Graph graph) {
    for (Node& node : graph.nodes) node = normal_form(std::move(node));
    complete(graph);
    return graph;
}

}  // namespace loopegg
