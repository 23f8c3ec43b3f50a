#include "backends/lower/default_schedule.hpp"

#include "backends/target/target_rules.hpp"

namespace loopegg {

Term arrange(const Term& nest, const Target& target) { return schedule_rules(target)->schedules(complete(nest), 1).front(); }

Term arrange_for_one_core(const Term& nest, Target target) {
    target.machine.cores = 1;
    target.allowed.clear();
    return arrange(nest, target);
}

Term default_nest(const Statement& s, const Target& target) { return arrange(nest_of(s), target); }
Term default_nest(const Node& node, const Target& target) { return arrange(nest_of(node), target); }

}  // namespace loopegg
