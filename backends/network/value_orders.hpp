// Which values of a network are in memory in one order, because a step or a view knows nothing of the order and takes it as it comes.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "backends/network/network_plan.hpp"

namespace loopegg {

// Two values that are alike: both are operands of a step that works in any order, or one is a piece of the other.
struct SameOrder {
    std::string a, b;
    std::int64_t piece = 0;  // elements: no interleaved rows reach beyond a piece. 0: rows may reach anywhere

    bool takes(const MemoryOrder& order) const;
};

struct ValueOrders {
    std::vector<SameOrder> alike;
    std::set<std::string> logical;  // values that someone knows in their logical order: the caller, copies that break pieces, code of a node's own
};

ValueOrders value_orders(const NetworkPlan& plan, const Graph& graph);

// Whether the step is a nest that takes any order as it comes, so that its values are alike.
bool takes_any_order(const NetworkPlan::Step& step);

// Whether the value is between nests of one site, which know it by shapes of their own.
bool is_scratch(const std::string& value);

// Throws InternalFault where a value is read in another order than it is written in.
void require_one_order(const NetworkPlan& plan, const Graph& graph);

}  // namespace loopegg
