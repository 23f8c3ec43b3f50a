// Options that allow numbers with fewer digits, and say how far that may move outputs.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {

inline void add_allow_option(CLI::App& app, std::vector<std::string>& allowed) {
    app.add_option("--allow", allowed, "a rounding of operands that a matrix unit of the target multiplies: " + join(rounding_names(), ", "))
        ->allow_extra_args(false);
}

inline void add_rounding_options(CLI::App& app, std::vector<std::string>& allowed, double& most) {
    add_allow_option(app, allowed);
    app.add_option("--max-rounding-error", most, "how far --allow may move an output from float32's, as a share of the largest one")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1.0));
}

}  // namespace loopegg
