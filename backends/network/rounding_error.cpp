#include "backends/network/rounding_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/lower/default_schedule.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "graph/int8_scales_name.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/value.hpp"

namespace loopegg {
namespace {

constexpr std::size_t images_alone = 8;  // that each site is judged on by itself

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

void add_differences(RoundingError& error, const std::vector<Tensor>& exact, const std::vector<Tensor>& got, std::span<const std::int64_t> labels) {
    double most = 0, sum = 0, count = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t rows = exact[i].shape.empty() ? 1 : static_cast<std::size_t>(exact[i].shape[0]),
                          width = exact[i].values.size() / std::max<std::size_t>(1, rows);
        for (std::size_t k = 0; k < exact[i].values.size(); ++k) {
            const double off = std::fabs(static_cast<double>(got[i].values[k]) - exact[i].values[k]);
            most = std::max(most, std::fabs(static_cast<double>(exact[i].values[k])));
            error.largest = std::isfinite(off) ? std::max(error.largest, off) : std::numeric_limits<double>::infinity();
            sum += off, ++count;
        }
        for (std::size_t r = 0; r < rows; ++r, ++error.outputs) {
            const std::ptrdiff_t before = answer(std::span(exact[i].values).subspan(r * width, width)),
                                 after = answer(std::span(got[i].values).subspan(r * width, width));
            error.same_answer += before == after;
            if (before == after) continue;
            const bool known = !labels.empty();
            const std::int64_t label = known ? labels[static_cast<std::size_t>(error.outputs)] : before;
            error.lost += before == label, error.won += after == label;
        }
    }
    if (most > 0) error.largest /= most, error.mean = sum / count / most;
}

// Many errors of one network: float32 outputs are computed once, and every kernel is compiled once.
class Trials {
public:
    Trials(const Graph& graph, const Weights& weights, const JudgedInputs& judged, KernelCache& kernels)
        : graph_(graph), weights_(weights), judged_(judged), kernels_(kernels) {}

    RoundingError error(const Schedules& rounded, std::size_t most = std::numeric_limits<std::size_t>::max()) {
        RoundingError e;
        e.sites = static_cast<int>(rounded.size());
        if (rounded.empty()) return e;
        const std::span<const std::vector<Tensor>> all = judged_.inputs;
        if (exact_.empty()) exact_ = outputs_of({graph_, weights_, {}}, all, kernels_);
        add_differences(e, exact_, outputs_of({graph_, weights_, rounded}, all.first(std::min(most, all.size())), kernels_), judged_.labels);
        return e;
    }

private:
    const Graph& graph_;
    const Weights& weights_;
    const JudgedInputs& judged_;
    KernelCache& kernels_;
    std::vector<Tensor> exact_;
};

bool values_in_blocks(const Term& nest) {
    const Statement s = statement_of(nest_parts(nest).statement);
    return std::any_of(s.buffers.begin(), s.buffers.end(), [](const Buffer& b) { return b.kind != BufferKind::weight && !b.blocking.empty(); });
}

// The nest with a default schedule in float32, and values as they lie.
Term default_in_float32(const Term& nest, const Target& plain) {
    return rounds_operands(nest) ? default_nest(statement_of(nest_parts(nest).statement), plain) : nest;
}

}  // namespace

double RoundingError::points() const { return outputs == 0 ? 0 : 100.0 * (lost - won) / outputs; }

double RoundingError::uncertainty() const {
    constexpr double ninety_percent = 1.645;
    return outputs == 0 ? 0 : 100 * ninety_percent * std::sqrt(lost + won + 1.0) / outputs;  // no image that changes is no proof that none would
}

std::set<std::string> RoundedSites::wide() const {
    std::set<std::string> all;
    for (const auto& [site, rounding] : sites)
        if (rounding.wide) all.insert(site);
    return all;
}

std::map<std::string, std::string> RoundedSites::kinds() const {
    std::map<std::string, std::string> all;
    for (const auto& [site, rounding] : sites)
        if (!rounding.wide) all[site] = rounding.kind;
    return all;
}

Schedules rounded_here(const Graph& graph, const Schedules& schedules, const Target& target) {
    const bool may = !target.allowed.empty() || std::any_of(schedules.begin(), schedules.end(), [](const auto& s) { return rounds_operands(s.second); });
    if (!may) return {};
    Schedules rounded;
    const std::map<std::string, Term> there = fused_nests(graph, schedules, target), here = fused_nests(graph, {}, find_target("host"));
    for (const auto& [site, nest] : there)
        if (rounds_operands(nest)) {
            // int8 sums are whole numbers, the same on every processor, and nests in a row round what the first of them makes.
            const std::string kind = *roundings_of(nest).begin();
            rounded[site] = kind == "int8" || nest.is("prepare", 2) ? nest : with_rounded_operands(here.at(site), kind);
        }
    return rounded;
}

RoundingError rounding_error(const ScheduledNetwork& network, const Target& target, const JudgedInputs& judged, KernelCache& kernels) {
    const auto& [graph, weights, schedules] = network;
    return Trials(graph, weights, judged, kernels).error(rounded_here(graph, schedules, target));
}

RoundedSites round_within(const RoundingLimits& limits, const ScheduledNetwork& network, const Target& target, const JudgedInputs& judged,
                          KernelCache& kernels) {
    const auto& [graph, weights, schedules] = network;
    Schedules here = rounded_here(graph, schedules, target);
    RoundedSites out;
    std::erase_if(here, [&](const auto& s) {
        const bool lacks_scales = roundings_of(s.second).contains("int8") && !weights.contains(int8_scales_name(s.first));
        if (lacks_scales) out.sites[s.first] = {"int8", std::nullopt, true};
        return lacks_scales;
    });
    Trials trials(graph, weights, judged, kernels);
    out.all = out.error = trials.error(here);
    std::vector<std::pair<double, std::string>> sites;  // the most sensitive first
    for (const auto& [site, nest] : here) {
        const double alone = here.size() == 1 ? out.all.largest : trials.error({{site, nest}}, images_alone).largest;
        out.sites[site] = {*roundings_of(nest).begin(), alone};
        sites.emplace_back(alone, site);
    }
    if (limits.allow(out.all)) return out;
    std::sort(sites.rbegin(), sites.rend());
    const auto without = [&](std::size_t dropped) {
        Schedules some = here;
        for (std::size_t i = 0; i < dropped; ++i) some.erase(sites[i].second);
        return some;
    };
    std::size_t low = 1, high = sites.size();  // dropping all of them is within every limit
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (limits.allow(trials.error(without(middle))))
            high = middle;
        else
            low = middle + 1;
    }
    out.error = trials.error(without(low));
    for (std::size_t i = 0; i < low; ++i) out.sites[sites[i].second].wide = true;
    return out;
}

Schedules in_float32(const std::set<std::string>& sites, const Graph& graph, Schedules schedules, const Target& target, const Schedules& wide) {
    Target plain = target;
    plain.allowed.clear();
    for (const auto& [site, nest] : fused_nests(graph, schedules, target)) {
        if (!rounds_operands(nest)) continue;
        const auto known = wide.find(site);
        if (!sites.contains(site)) {
            schedules[site] = nest;  // the default schedule of a machine that may round is another one than that of a machine that may not
        } else if (nest.is("prepare", 2)) {
            std::vector<Term> nests = nests_of(nest[1]);
            for (Term& each : nests) each = default_in_float32(each, plain);
            Term row("site", {nests.front()});
            for (std::size_t i = 1; i < nests.size(); ++i) row = Term("then", {row, nests[i]});
            schedules[site] = Term("prepare", {nest[0], row});
        } else if (known != wide.end() && !values_in_blocks(nest)) {
            schedules[site] = known->second;
        } else if (!graph.find(site)->domain.whole()) {
            schedules.erase(site);
            schedules[site] = fused_nests(graph, schedules, plain).at(site);
        } else {
            schedules[site] = default_in_float32(nest, plain);
        }
    }
    return schedules;
}

}  // namespace loopegg
