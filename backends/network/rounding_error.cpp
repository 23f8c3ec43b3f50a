#include "backends/network/rounding_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/scratch.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

std::vector<Tensor> outputs_of(const Graph& graph, const Weights& weights, const Schedules& schedules, std::span<const std::vector<Tensor>> inputs) {
    const ScratchFile folder(".network");
    compile_network({graph, weights, schedules}, find_target("host"), folder.path());
    LoadedNetwork network(folder.path());
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& one : inputs) all.push_back(network.run(one)[0]);
    std::filesystem::remove_all(folder.path());
    return all;
}

std::ptrdiff_t answer(std::span<const float> row) { return std::max_element(row.begin(), row.end()) - row.begin(); }

}  // namespace

Schedules rounded_here(const Graph& graph, const Schedules& schedules, const Target& target) {
    const bool may = !target.allowed.empty() || std::any_of(schedules.begin(), schedules.end(), [](const auto& s) { return rounds_operands(s.second); });
    if (!may) return {};
    Schedules rounded;
    const std::map<std::string, Term> there = fused_nests(graph, schedules, target), here = fused_nests(graph, {}, find_target("host"));
    for (const auto& [site, nest] : there)
        if (rounds_operands(nest)) rounded[site] = with_rounded_operands(here.at(site), *roundings_of(nest).begin());
    return rounded;
}

RoundingError rounding_error(const Graph& graph, const Weights& weights, const Schedules& schedules, const Target& target,
                             std::span<const std::vector<Tensor>> inputs) {
    RoundingError error;
    const Schedules rounded = rounded_here(graph, schedules, target);
    error.sites = static_cast<int>(rounded.size());
    if (rounded.empty()) return error;
    const std::vector<Tensor> exact = outputs_of(graph, weights, {}, inputs), got = outputs_of(graph, weights, rounded, inputs);
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
    return error;
}

}  // namespace loopegg
