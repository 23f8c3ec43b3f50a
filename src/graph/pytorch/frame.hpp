// The parts of network.py that are the same for all networks, built in from the files next to this one.
#pragma once
#include <string_view>

namespace loopegg {

extern const std::string_view network_head_py, network_domain_py, network_opaque_py, network_tail_py;

}  // namespace loopegg
