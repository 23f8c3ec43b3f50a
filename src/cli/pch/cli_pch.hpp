// What every command's file includes, compiled once: these headers cost more than the commands do.
#pragma once
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
