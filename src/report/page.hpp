// One self-contained HTML page about one run: how much faster, is it safe, what changed, why believe it.
#pragma once
#include <string>

#include "report/run.hpp"

namespace loopegg {

// The whole page. It asks nothing of a network, because style, script, plotting library and numbers are all inside.
std::string report_page(const FinishedRun& run);

// "resnet34-cifar10 runs 1.63x faster on host: 4.93 ms instead of 8.03 ms", without markup.
std::string headline(const FinishedRun& run);

}  // namespace loopegg
