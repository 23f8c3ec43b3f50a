#include "optimize/mixture.hpp"

#include <map>

#include "optimize/named_sequences.hpp"

namespace loopegg {

std::vector<AtMost> mixture_limits(const std::vector<std::vector<std::size_t>>& families, const std::vector<std::vector<SiteOption>>& options,
                                   const std::vector<Variant>& variants) {
    std::vector<AtMost> limits;
    for (const std::vector<std::size_t>& family : families) {
        std::map<std::string, AtMost> by_kind;
        for (std::size_t site : family)
            for (std::size_t o = 0; o < options[site].size(); ++o) {
                const Domain& domain = variants[options[site][o].variant].domain;
                if (!domain.whole() && options[site][o].only_with.empty()) by_kind[restriction_kind(domain)].options.emplace_back(site, o);
            }
        for (auto& [kind, alike] : by_kind) {
            alike.count = (family.size() + 1) / 2;
            limits.push_back(std::move(alike));
        }
    }
    return limits;
}

}  // namespace loopegg
