#include "backends/network/rounding_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/kernel/kernel_cache.hpp"
#include "base/scratch.hpp"
#include "graph/int8_scales_name.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

std::vector<Tensor> outputs_of(const ScheduledNetwork& what, std::span<const std::vector<Tensor>> inputs, KernelCache& kernels) {
    const ScratchFile folder(".network");
    compile_network(what, find_target("host"), folder.path(), nullptr, &kernels);
    LoadedNetwork network(folder.path());
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& one : inputs) all.push_back(network.run(one)[0]);
    std::filesystem::remove_all(folder.path());
    return all;
}

std::ptrdiff_t answer(std::span<const float> row) { return std::max_element(row.begin(), row.end()) - row.begin(); }

void add_differences(RoundingError& error, const std::vector<Tensor>& exact, const std::vector<Tensor>& got) {
    double most = 0, sum = 0, count = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const std::size_t rows = exact[i].shape.empty() ? 1 : static_cast<std::size_t>(exact[i].shape[0]),
                          width = exact[i].values.size() / std::max<std::size_t>(1, rows);
        for (std::size_t k = 0; k < exact[i].values.size(); ++k) {
            const double off = std::fabs(static_cast<double>(got[i].values[k]) - exact[i].values[k]);
            most = std::max(most, std::fabs(static_cast<double>(exact[i].values[k])));
            error.largest = std::isfinite(off) ? std::max(error.largest, off) : std::numeric_limits<double>::infinity();
            sum += off, ++count;
        }
        for (std::size_t r = 0; r < rows; ++r, ++error.outputs)
            error.same_answer += answer(std::span(exact[i].values).subspan(r * width, width)) == answer(std::span(got[i].values).subspan(r * width, width));
    }
    if (most > 0) error.largest /= most, error.mean = sum / count / most;
}

// Many errors of one network: float32 outputs are computed once, and every kernel is compiled once.
class Trials {
public:
    Trials(const Graph& graph, const Weights& weights, std::span<const std::vector<Tensor>> inputs) : graph_(graph), weights_(weights), inputs_(inputs) {}

    RoundingError error(const Schedules& rounded) {
        RoundingError e;
        e.sites = static_cast<int>(rounded.size());
        if (rounded.empty()) return e;
        if (exact_.empty()) exact_ = outputs_of({graph_, weights_, {}}, inputs_, kernels_);
        add_differences(e, exact_, outputs_of({graph_, weights_, rounded}, inputs_, kernels_));
        return e;
    }

private:
    const Graph& graph_;
    const Weights& weights_;
    const std::span<const std::vector<Tensor>> inputs_;
    std::vector<Tensor> exact_;
    KernelCache kernels_;
};

}  // namespace

Schedules rounded_here(const Graph& graph, const Schedules& schedules, const Target& target) {
    const bool may = !target.allowed.empty() || std::any_of(schedules.begin(), schedules.end(), [](const auto& s) { return rounds_operands(s.second); });
    if (!may) return {};
    Schedules rounded;
    const std::map<std::string, Term> there = fused_nests(graph, schedules, target), here = fused_nests(graph, {}, find_target("host"));
    for (const auto& [site, nest] : there)
        if (rounds_operands(nest)) {
            const std::string kind = *roundings_of(nest).begin();
            rounded[site] = kind == "int8" ? nest : with_rounded_operands(here.at(site), kind);  // int8 sums are whole numbers, the same on every processor
        }
    return rounded;
}

RoundingError rounding_error(const Graph& graph, const Weights& weights, const Schedules& schedules, const Target& target,
                             std::span<const std::vector<Tensor>> inputs) {
    return Trials(graph, weights, inputs).error(rounded_here(graph, schedules, target));
}

RoundedSites round_within(double limit, const Graph& graph, const Weights& weights, const Target& target, std::span<const std::vector<Tensor>> inputs) {
    Target plain = target;
    plain.allowed.clear();
    const std::map<std::string, Term> wide = fused_nests(graph, {}, plain);
    Schedules here = rounded_here(graph, {}, target);
    RoundedSites out;
    for (auto site = here.begin(); site != here.end();) {
        const bool lacks_scales = roundings_of(site->second).contains("int8") && !weights.contains(int8_scales_name(site->first));
        if (lacks_scales) out.kept[site->first] = wide.at(site->first);
        site = lacks_scales ? here.erase(site) : std::next(site);
    }
    Trials trials(graph, weights, inputs);
    std::vector<std::pair<double, std::string>> sites;  // the most sensitive first
    const RoundingError all = trials.error(here);
    if (!(all.largest <= limit)) {
        for (const auto& [site, nest] : here) sites.emplace_back(trials.error({{site, nest}}).largest, site);
        std::sort(sites.rbegin(), sites.rend());
    }
    const auto without = [&](std::size_t dropped) {
        Schedules some = here;
        for (std::size_t i = 0; i < dropped; ++i) some.erase(sites[i].second);
        return some;
    };
    std::size_t low = 0, high = sites.size();  // dropping all of them is within every limit
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (trials.error(without(middle)).largest <= limit)
            high = middle;
        else
            low = middle + 1;
    }
    out.error = sites.empty() ? all : trials.error(without(low));
    for (const auto& [site, nest] : without(low)) out.kinds[site] = *roundings_of(nest).begin();
    for (std::size_t i = 0; i < low; ++i) out.kept[sites[i].second] = wide.at(sites[i].second);
    return out;
}

}  // namespace loopegg
