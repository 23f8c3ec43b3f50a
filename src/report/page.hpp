// One self-contained HTML page about one run: how much faster the network is, whether that is safe, what changed, and why to believe it.
#pragma once
#include <filesystem>
#include <string>

#include "report/run.hpp"

namespace loopegg {

// The whole page. The page loads nothing from the network, because style, script, plotting library and numbers are all inside.
std::string report_page(const FinishedRun& run);

// The page of a run whose files are in `files` until all of them are written, and then in `folder`.
std::string report_page(const std::filesystem::path& files, const std::filesystem::path& folder);

// "resnet34-cifar10 runs 1.63x faster on host: 4.93 ms instead of 8.03 ms", without markup.
std::string headline(const FinishedRun& run);

}  // namespace loopegg
