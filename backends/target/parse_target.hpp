// Reads the text of a target's file, and complains with place and words. This file does not need TVM.
#pragma once
#include <functional>

#include "backends/target/target.hpp"
#include "base/source.hpp"

namespace loopegg {

// What '"native": true' stands for in a target's file: this machine, as TVM and the system know it.
struct HostFacts {
    nlohmann::json tvm;
    Machine machine;
};

// `host` is asked only where the file says native. Throws UserError with the place of what is wrong.
Target parse_target(const SourcePtr& source, const std::function<HostFacts()>& host);

}  // namespace loopegg
