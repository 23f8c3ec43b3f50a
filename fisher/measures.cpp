#include "fisher/measures.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "graph/flops.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

double fisher_by_layer(const MeasureInput& m) {
    double sum = 0;
    for (const auto& [name, score] : m.raw.fisher) sum += std::log(std::max(score, 1e-30));
    return m.raw.fisher.empty() ? 0 : std::exp(sum / static_cast<double>(m.raw.fisher.size()));
}

double ensemble(const MeasureInput& m) {
    double layers = static_cast<double>(m.raw.fisher.size()), even = std::log(fisher_by_layer(m) / (fisher_total(m.raw) / layers));
    return m.raw.naswot / static_cast<double>(m.raw.images) + 0.5 * even + 0.05 * m.raw.synflow + std::log(m.macs);
}

// Remembers parameters(node), which visits every weight of a restricted node, because candidates share most of their nodes.
std::int64_t counted_parameters(const Node& node) {
    if (node.domain.whole()) return parameters(node);
    static std::map<std::string, std::int64_t> known;
    if (known.size() > 100000) known.clear();
    std::string key = node.op + to_string(node.domain) + to_string(node.shape);
    for (const Parameter& p : parameters_of(node)) key += "," + to_string(p.shape);
    auto [place, fresh] = known.try_emplace(std::move(key), 0);
    if (fresh) place->second = parameters(node);
    return place->second;
}

constexpr MeasureSet nothing{false, false, false, false}, fisher_only{true, false, false, false}, codes_only{false, true, false, false},
    weights_only{false, false, true, false}, synflow_only{false, false, false, true};

bool slides(const Node& node) { return node.op == "conv2d" || node.op == "max_pool" || node.op == "avg_pool"; }

// From how far along one side an output gathers, on the widest way through the network: each window of k pixels adds the variance of a uniform draw of one
// of them. Global pools and products of activations gather from everywhere, but they do so in every variant.
double spread_of(const Graph& graph) {
    struct Way {
        double variance = 0, step = 1;
    };
    std::map<std::string, Way> ways;
    double widest = 0;
    for (const Node& node : graph.nodes) {
        Way here;
        for (const std::string& input : node.inputs)
            if (auto from = ways.find(input); from != ways.end() && (from->second.variance > here.variance || from->second.step > here.step))
                here = from->second;
        if (slides(node)) {
            const double dilation = node.op == "conv2d" ? static_cast<double>(node.integers("dilation")[0]) : 1;
            const double kernel = static_cast<double>(node.integers("kernel")[0]), apart = dilation * here.step;
            here.variance += (kernel * kernel - 1) / 12 * apart * apart;
            here.step *= static_cast<double>(node.integers("stride")[0]);
        }
        widest = std::max(widest, here.variance);
        ways[node.name] = here;
    }
    return std::sqrt(widest);
}

// How much strides skip. A value of which some reader reads all pixels counts as read.
double unread_of(const Graph& graph) {
    std::map<std::string, double> read;
    for (const Node& node : graph.nodes) {
        double share = 1;
        if (slides(node))
            for (std::size_t d = 0; d < 2; ++d)
                share *= std::min(1.0, static_cast<double>(node.integers("kernel")[d]) / static_cast<double>(node.integers("stride")[d]));
        for (const std::string& input : node.inputs) read[input] = std::max(read[input], share);
    }
    double sum = 0;
    for (const auto& [value, share] : read) sum -= std::log(share);
    return sum;
}

std::int64_t places_of(const Node& node) {
    if (node.op == "conv2d") return node.shape[2] * node.shape[3];
    return node.shape.empty() ? 1 : std::max<std::int64_t>(1, element_count(node.shape) / node.shape.back());
}

// The multiply-accumulates that a node would have if every output read every input channel.
double dense_macs(const Graph& graph, const Node& node) {
    if (node.op != "conv2d") return static_cast<double>(macs(node));
    const std::vector<std::int64_t> kernel = node.integers("kernel");
    return static_cast<double>(element_count(node.shape) * graph.shape_of(node.inputs[0])[1] * kernel[0] * kernel[1]);
}

std::int64_t channels_of(const Node& node, const Shape& shape) { return node.op == "conv2d" ? shape[1] : node.op == "linear" ? shape.back() : 0; }

SiteWork work_of(const Graph& graph, const Node& node) {
    SiteWork site{node.name, static_cast<double>(macs(node)), places_of(node), static_cast<double>(counted_parameters(node)), dense_macs(graph, node)};
    site.reads = static_cast<double>(channels_of(node, graph.shape_of(node.inputs[0])));
    site.writes = static_cast<double>(channels_of(node, node.shape));
    return site;
}

// The convolution that brings back the channels which a site no longer computes. All of them come through the channels that the site computes, so it is as
// narrow as before.
void add_restoring(SiteWork& site, const SiteWork& restoring) {
    site.macs += restoring.macs, site.weights += restoring.weights, site.dense_macs += restoring.macs;
}

}  // namespace

MeasureInput sizes_of(const Graph& graph) {
    MeasureInput m;
    if (!graph.inputs.empty() && graph.inputs[0].shape.size() == 4)
        m.image_side = static_cast<double>(graph.inputs[0].shape[2]), m.spread = spread_of(graph), m.unread = unread_of(graph);
    if (!graph.outputs.empty())
        if (const Shape& out = graph.shape_of(graph.outputs[0]); out.size() == 2) m.classes = static_cast<double>(out[1]);
    for (const Node& node : graph.nodes) {
        m.params += static_cast<double>(counted_parameters(node));
        if (macs(node) == 0) continue;
        const SiteWork work = work_of(graph, node);
        m.macs += work.macs;
        if (!m.sites.empty() && node.name == m.sites.back().name + ".restore")
            add_restoring(m.sites.back(), work);
        else
            m.sites.push_back(work);
    }
    return m;
}

const std::vector<Measure>& measures() {
    static const std::vector<Measure> all{
        {"fisher", "Fisher Potential of the whole network", fisher_only, [](const MeasureInput& m) { return fisher_total(m.raw); }, false},
        {"fisher-layer", "geometric mean of the layers' Fisher Potential", fisher_only, fisher_by_layer, false},
        {"naswot", "how differently ReLUs code the images", codes_only, [](const MeasureInput& m) { return m.raw.naswot; }, true},
        {"synflow", "flow through absolute weights, no data", synflow_only, [](const MeasureInput& m) { return m.raw.synflow; }, true},
        {"snip", "sensitivity of the loss to each weight", weights_only, [](const MeasureInput& m) { return m.raw.snip; }, false},
        {"grad-norm", "norm of the weight gradients", weights_only, [](const MeasureInput& m) { return m.raw.grad_norm; }, false},
        {"params", "trained values", nothing, [](const MeasureInput& m) { return m.params; }, false},
        {"macs", "multiply-accumulates", nothing, [](const MeasureInput& m) { return m.macs; }, false},
        {"ensemble", "codes, evenness of Fisher Potential over layers, flow and size together", {true, true, false, true}, ensemble, true},
    };
    return all;
}

const Measure& find_measure(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Measure& m : measures()) {
        if (m.name == name) return m;
        names.push_back(m.name);
    }
    throw UsageError(Diagnostic{fmt::format("there is no measure '{}'", name), {}, did_you_mean(name, names)});
}

MeasureSet operator|(const MeasureSet& a, const MeasureSet& b) {
    return {a.fisher || b.fisher, a.codes || b.codes, a.weights || b.weights, a.synflow || b.synflow};
}

double fisher_total(const RawScores& raw) {
    double sum = 0;
    for (const auto& [name, score] : raw.fisher) sum += score;
    return sum;
}

double ratio_of(const Measure& measure, double original, double variant) { return measure.logarithm ? std::exp(variant - original) : variant / original; }

std::vector<double> ranks(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> rank(values.size(), 0.5);
    if (values.size() < 2) return rank;
    for (std::size_t i = 0; i < order.size();) {
        std::size_t j = i;
        while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
        for (std::size_t k = i; k < j; ++k) rank[order[k]] = static_cast<double>(i + j - 1) / 2.0 / static_cast<double>(values.size() - 1);
        i = j;
    }
    return rank;
}

double spearman(std::span<const double> a, std::span<const double> b) {
    std::vector<double> x = ranks(a), y = ranks(b);
    double xy = 0, xx = 0, yy = 0;  // ranks have mean 1/2
    for (std::size_t i = 0; i < x.size(); ++i) xy += (x[i] - 0.5) * (y[i] - 0.5), xx += (x[i] - 0.5) * (x[i] - 0.5), yy += (y[i] - 0.5) * (y[i] - 0.5);
    return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

double area_under_curve(std::span<const double> of_first, std::span<const double> of_second) {
    if (of_first.empty() || of_second.empty()) return std::numeric_limits<double>::quiet_NaN();
    double wins = 0;
    for (double a : of_first)
        for (double b : of_second) wins += a > b ? 1 : a == b ? 0.5 : 0;
    return wins / static_cast<double>(of_first.size() * of_second.size());
}

Interval interval_of(std::span<const double> values) {
    constexpr double student[] = {0, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};  // two-sided 90%, by degrees of freedom
    std::size_t n = values.size();
    require(n > 0, "an interval of no values");
    double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n);
    if (n == 1) return {mean, std::numeric_limits<double>::infinity()};
    double square = 0;
    for (double v : values) square += (v - mean) * (v - mean);
    double t = n - 1 < std::size(student) ? student[n - 1] : 1.645;
    return {mean, t * std::sqrt(square / static_cast<double>(n - 1) / static_cast<double>(n))};
}

}  // namespace loopegg
