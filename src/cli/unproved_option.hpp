// The option '--unproved', the same for every command that reads rule files.
#pragma once
#include <CLI/CLI.hpp>

#include "rules/unproved.hpp"

namespace loopegg {

inline void add_unproved_option(CLI::App& app) {
    app.add_flag_callback("--unproved", admit_unproved_rules, "use rules that the judge could neither prove nor refute; the result names them");
}

}  // namespace loopegg
