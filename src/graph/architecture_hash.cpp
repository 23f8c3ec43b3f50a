#include "graph/architecture_hash.hpp"

#include <algorithm>

#include "graph/operators.hpp"

namespace loopegg {
namespace {

void add(Hasher& hasher, const std::vector<std::int64_t>& values) {
    hasher.add(static_cast<std::uint64_t>(values.size()));
    for (std::int64_t v : values) hasher.add(v);
}

void add(Hasher& hasher, const Attr& attr) {
    hasher.add(static_cast<std::uint64_t>(attr.index()));
    if (const auto* integer = std::get_if<std::int64_t>(&attr)) hasher.add(*integer);
    if (const auto* real = std::get_if<double>(&attr)) hasher.add(*real);
    if (const auto* flag = std::get_if<bool>(&attr)) hasher.add(static_cast<int>(*flag));
    if (const auto* text = std::get_if<std::string>(&attr)) hasher.add(std::string_view(*text));
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&attr)) add(hasher, *integers);
}

Hash128 site_hash(const Node& site) {
    Hasher hasher;
    hasher.add(std::string_view(site.op)).add(std::string_view(to_string(site.domain)));
    for (const auto& [name, value] : site.attrs)
        if (name != "bias") hasher.add(std::string_view(name)), add(hasher, value);
    for (const Parameter& p : parameters_of(site))
        if (p.shape.size() > 1) add(hasher, p.shape);
    return hasher.finish();
}

}  // namespace

Hash128 architecture_hash(const Graph& graph) {
    std::vector<Hash128> sites;
    for (const Node& node : graph.nodes)
        if (is_site(node)) sites.push_back(site_hash(node));
    std::sort(sites.begin(), sites.end());
    Hasher hasher;
    for (const Hash128& site : sites) hasher.add(site);
    return hasher.finish();
}

}  // namespace loopegg
