#include "backends/lower/default_schedule.hpp"

#include <algorithm>

#include "backends/lower/schedule_pieces.hpp"
#include "base/error.hpp"
#include "nest/run/loop_tree.hpp"

namespace loopegg {
namespace {

Term arranged(const Statement& s, const Term& sched, const Target& target, bool alone) {
    if (sched.is("cat", 2)) return Term("cat", {arranged(s, sched[0], target, false), arranged(s, sched[1], target, false)});
    const auto all = pieces(s, sched);
    if (!all) return sched;
    if (std::any_of(s.axes.begin(), s.axes.end(), [](const Iterator& a) { return a.role == AxisRole::sequential; })) return sched;
    if (target.gpu()) return gpu_schedule(s, *all, target.machine, alone);
    return cpu_schedule(s, *all, target.machine).value_or(sched);
}

}  // namespace

Term arrange(const Term& nest, const Target& target) {
    const Term whole = complete(nest);
    const NestParts parts = nest_parts(whole);
    const Statement s = statement_of(parts.statement);
    const Term better("nest", {parts.statement, arranged(s, parts.schedule, target, true)});
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
