#include "backends/lower/default_schedule.hpp"

#include "rewrite/site_rules.hpp"

namespace loopegg {

Term arrange(const Term& nest, const Target& target) { return SiteRules::of(target.rules, target.vectors())->schedule(complete(nest)); }

Term default_nest(const Statement& s, const Target& target) { return arrange(nest_of(s), target); }
Term default_nest(const Node& node, const Target& target) { return arrange(nest_of(node), target); }

}  // namespace loopegg
