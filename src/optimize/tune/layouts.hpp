// How values are stored in memory between sites: as they are, or in blocks of channels, whichever makes the network faster (the phase 'layouts').
#pragma once
#include "backends/network/network.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

struct Layouts {
    Schedules schedules;
    std::string note{};  // what was gained; empty where the schedules are the same
};

// The same schedules, or others for the sites that write or read a value in blocks of channels. Nests are timed
// (predicted for a target without a machine) in every
// layout that their neighbours can have (layout_times.hpp), and an integer program picks the layout of each value: the smallest sum of the times of the
// nests. A value is offered in blocks where all that write and read it can take blocks by the rules: convolutions, rows of Winograd's nests, pools, batch
// norms, means. Joins, views and functions of each element take any layout as it comes (value_orders.hpp). Restricted sites and what is at the border of the
// network keep values as they are.
Layouts with_layouts(const Run& run, const Graph& graph, const Schedules& schedules, const Effort& effort);

}  // namespace loopegg
