#include "backends/lower/default_schedule.hpp"

#include <algorithm>

#include "backends/lower/schedule_pieces.hpp"
#include "backends/target/schedule_rules.hpp"
#include "base/error.hpp"
#include "nest/run/loop_tree.hpp"

namespace loopegg {
namespace {

Term arranged(const Statement& s, const Term& sched, const Target& target) {
    if (sched.is("cat", 2)) return Term("cat", {arranged(s, sched[0], target), arranged(s, sched[1], target)});
    const auto all = pieces(s, sched);
    if (!all) return sched;
    if (s.keeps_an_order()) return sched;
    return cpu_schedule(s, *all, target.machine).value_or(sched);
}

}  // namespace

Term arrange(const Term& nest, const Target& target) {
    const Term whole = complete(nest);
    if (target.gpu()) return schedule_rules(target)->schedules(whole, 1).front();
    const NestParts parts = nest_parts(whole);
    const Statement s = statement_of(parts.statement);
    const Term better("nest", {parts.statement, arranged(s, parts.schedule, target)});
    const Term result = parts.restore.empty() ? better : Term("restore", {Term(parts.restore), better});
    try {
        resolve(result);
        return result;
    } catch (const UserError&) {
        return whole;
    }
}

Term default_nest(const Statement& s, const Target& target) { return arrange(nest_of(s), target); }
Term default_nest(const Node& node, const Target& target) { return arrange(nest_of(node), target); }

}  // namespace loopegg
