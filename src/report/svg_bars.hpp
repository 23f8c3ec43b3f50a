// Stacked horizontal bars as a small static SVG, for texts that cannot run a script (docs/, a README).
#pragma once
#include <string>
#include <vector>

namespace loopegg {

struct Bar {
    std::string label;
    std::vector<double> parts;  // one per series
    std::string note;           // stands after the bar
};

std::string svg_bars(const std::string& title, const std::vector<std::string>& series, const std::vector<Bar>& bars);

}  // namespace loopegg
