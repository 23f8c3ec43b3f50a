#include "optimize/families.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/hidden_widths.hpp"

namespace loopegg {
namespace {

std::string without_input_channels(const Term& statement) { return to_string(with_size(statement, "ci", Term("*"))); }

}  // namespace

std::vector<std::vector<std::size_t>> families_of(const Graph& graph, const Sites& sites, std::size_t most) {
    std::vector<std::pair<bool, bool>> role(sites.all.size());  // writes a hidden width, reads one
    for (const HiddenWidth& h : hidden_widths(graph)) role[sites.index_of(h.writer)].first = role[sites.index_of(h.reader)].second = true;
    std::map<std::tuple<std::string, bool, bool>, std::vector<std::size_t>> families;
    for (std::size_t s = 0; s < sites.all.size(); ++s)
        if (!sites.all[s].kept) families[{without_input_channels(sites.all[s].statement), role[s].first, role[s].second}].push_back(s);
    std::vector<std::vector<std::size_t>> runs;
    for (const auto& [key, members] : families) {
        const std::size_t pieces = (members.size() + most - 1) / most;
        for (std::size_t p = 0; p < pieces; ++p) {
            const auto at = [&](std::size_t piece) { return members.begin() + static_cast<std::ptrdiff_t>(members.size() * piece / pieces); };
            runs.emplace_back(at(p), at(p + 1));
        }
    }
    std::sort(runs.begin(), runs.end());
    return runs;
}

std::vector<Verdict> verdict_of_each_site(const Verdict& joint, const std::vector<std::string>& sites, const std::vector<std::int64_t>& saved) {
    require(sites.size() == saved.size() && !sites.empty(), "a verdict is shared by the sites that it is about");
    if (sites.size() == 1) return {joint};
    const double all = static_cast<double>(std::accumulate(saved.begin(), saved.end(), std::int64_t{0}));
    std::vector<Verdict> out;
    for (std::int64_t mine : saved) {
        Verdict v = joint;
        if (const auto kept = joint.evidence.find("kept"); kept != joint.evidence.end() && kept->is_number()) {
            for (const char* key : {"kept", "kept_by_size", "low", "high"})
                if (const auto it = joint.evidence.find(key); it != joint.evidence.end() && it->is_number())
                    v.evidence[key] = std::pow(std::max(it->get<double>(), 1e-9), static_cast<double>(mine) / all);
            v.why = fmt::format("its share of {:.3f} that {} sites keep together: {}", kept->get<double>(), sites.size(), joint.why);
            v.evidence["together"] = {{"sites", sites}, {"kept", *kept}};
        }
        out.push_back(std::move(v));
    }
    return out;
}

}  // namespace loopegg
