// A run as stages of `optimize` see it, on a machine that a test makes up.
#pragma once
#include "optimize/run/run.hpp"

namespace loopegg {

struct TestRun {
    TestRun(OptimizeRequest request, ReadNetwork read, Measurer& machine)
        : run{request, find_target(request.target), rules_for(request, read.network.graph), std::move(read), {}, 0, nullptr, {machine}, KernelPool(),
              progress} {}

    Progress progress{Progress::Mode::quiet};
    Run run;
};

}  // namespace loopegg
