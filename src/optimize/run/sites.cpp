#include "optimize/run/sites.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "graph/flops.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

void mark_kept(Sites& sites, const std::vector<std::string>& keep) {
    for (const std::string& glob : keep) {
        bool any = false;
        for (Site& s : sites.all)
            if (glob_matches(glob, s.name)) s.kept = any = true;
        if (any) continue;
        std::vector<std::string> names;
        for (const Site& s : sites.all) names.push_back(s.name);
        throw UserError(
            Diagnostic{"--keep '" + glob + "' matches no site of the network ('loopegg show MODEL' lists the sites)", {}, did_you_mean(glob, names)});
    }
}

}  // namespace

bool Sites::all_kept(const SiteKind& kind) const {
    return std::all_of(kind.sites.begin(), kind.sites.end(), [&](std::size_t s) { return all[s].kept; });
}

std::size_t Sites::index_of(std::string_view name) const {
    auto it = std::find_if(all.begin(), all.end(), [&](const Site& s) { return s.name == name; });
    require(it != all.end(), "no such site");
    return static_cast<std::size_t>(it - all.begin());
}

Sites sites_of(const Graph& graph, const std::vector<std::string>& keep) {
    Sites sites;
    std::unordered_map<Term, std::size_t> kind_of;
    for (const Node& node : graph.nodes) {
        if (!is_site(node)) continue;
        Term nest = nest_of(node), statement = nest_parts(nest).statement;
        auto [it, fresh] = kind_of.emplace(nest, sites.kinds.size());
        if (fresh) sites.kinds.push_back({statement, nest, {}});
        sites.kinds[it->second].sites.push_back(sites.all.size());
        sites.all.push_back({node.name, node.op, node.shape, statement, macs(node), parameters(node), it->second, false});
    }
    mark_kept(sites, keep);
    return sites;
}

}  // namespace loopegg
