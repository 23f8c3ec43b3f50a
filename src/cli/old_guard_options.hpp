// What took the place of --guard and --capacity, for those who type them.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace loopegg {

inline void add_old_guard_options(CLI::App& app) {
    const auto refused = [](const char* why) { return CLI::Validator([why](std::string&) { return std::string(why); }, std::string()); };
    static std::string unused;
    app.add_option("--guard", unused)
        ->group("")
        ->check(refused("rule files say what networks must keep: ':when (expected-loss <= 1)' is the default, '--rules paper' was fisher-paper, and "
                        "':when (fisher-band >= 0.52)' was fisher-band"));
    app.add_option("--capacity", unused)->group("")->check(refused("--max-loss says how many points may be lost; a capacity of a half was one point"));
}

}  // namespace loopegg
