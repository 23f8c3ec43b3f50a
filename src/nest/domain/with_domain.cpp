#include "nest/domain/with_domain.hpp"

#include <algorithm>

#include "graph/normalise.hpp"
#include "graph/operators.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/plan/site_form.hpp"

namespace loopegg {

NarrowedDomain narrowed(const Domain& domain, const std::vector<Axis>& axes) {
    const auto co = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.name == "co"; });
    if (co == axes.end()) throw Refusal("only output channels come back by a 1x1 convolution, and there are none");
    if (domain.parts.size() != 1) throw Refusal("channels come back by a 1x1 convolution where the domain is in one piece");
    DomainPart part = domain.parts[0];
    // A range of the topmost digit that begins at its first value keeps the leading channels. The kept channels have digits, too.
    std::int64_t kept = co->extent;
    auto leads = [&](const DigitRange& r) { return r.digit.axis == "co" && r.lo == 0 && r.digit.stride * r.digit.radix == kept; };
    for (auto r = part.ranges.begin(); (r = std::find_if(part.ranges.begin(), part.ranges.end(), leads)) != part.ranges.end(); part.ranges.erase(r))
        kept = r->digit.stride * r->hi;
    if (kept == co->extent) throw Refusal("a 1x1 convolution brings channels back where the first of them, and no others, are computed");
    auto fits = [&](const Digit& d) { return d.axis != "co" || kept % (d.stride * d.radix) == 0; };
    if (!std::all_of(part.ranges.begin(), part.ranges.end(), [&](const DigitRange& r) { return fits(r.digit); }) ||
        !std::all_of(part.diagonals.begin(), part.diagonals.end(), [&](const DigitPair& d) { return fits(d.first) && fits(d.second); }))
        throw Refusal("the channels that are computed are restricted in a way that speaks of the others");
    Domain rest;
    if (part != DomainPart{}) rest.parts.push_back(std::move(part));
    return {co->extent, kept, std::move(rest)};
}

Graph with_domains(const Graph& graph, std::span<const std::pair<std::string, Domain>> domains) {
    Graph changed = graph;
    for (const auto& [site, domain] : domains) {
        Node* node = changed.find(site);
        require(node != nullptr, "a restricted site is not in the graph");
        if (domain.restore == Restore::pointwise) {
            const NarrowedDomain narrow = narrowed(domain, axes_of(*node));
            restore_pointwise(changed, site, narrow.kept);
            complete(changed);
            set_domain(*changed.find(site), narrow.rest);
        } else {
            set_domain(*node, domain);
        }
    }
    return normalise(std::move(changed));
}

Graph with_domain(const Graph& graph, const std::string& site, const Domain& domain) {
    const std::pair<std::string, Domain> one{site, domain};
    return with_domains(graph, {&one, 1});
}

const Node& restoring_node(const Graph& restricted, const std::string& site) {
    const auto it = std::find_if(restricted.nodes.begin(), restricted.nodes.end(), [&](const Node& n) { return n.inputs == std::vector<std::string>{site}; });
    require(it != restricted.nodes.end(), "no convolution brings the channels of a site back");
    return *it;
}

}  // namespace loopegg
