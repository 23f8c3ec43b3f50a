// Options that several commands share.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "graph/load.hpp"
#include "nest/term/rounding.hpp"
#include "rules/judged.hpp"
#include "store/address.hpp"

namespace loopegg {

// Options of every command that reads a network from a file: what the file leaves open, and what the user allows.
struct ReadingOptions {
    std::vector<std::string> shapes;
    OnnxReading how;
    OnnxReading read() const {
        OnnxReading all = how;
        for (const std::string& s : shapes) add_shape(all, s);
        return all;
    }
};

// `own_batch`: the command has a --batch of its own.
inline std::shared_ptr<ReadingOptions> add_reading_options(CLI::App& app, bool own_batch = false) {
    auto o = std::make_shared<ReadingOptions>();
    app.add_option("--shape", o->shapes, "shape of an input that an ONNX file leaves open: NAME=1x3x224x224 (repeatable)");
    if (!own_batch) app.add_option("--batch", o->how.batch, "batch size of inputs that an ONNX file leaves open (default: 1)")->check(CLI::Range(1, 65536));
    app.add_flag("--as-float32", o->how.as_float32, "compute a float16 or quantized model in float32");
    return o;
}

inline void say_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
}

// Options that allow numbers with fewer digits, and say how far that may move outputs.
inline void add_allow_option(CLI::App& app, std::vector<std::string>& allowed) {
    app.add_option("--allow", allowed,
                   "allow rounding operands for a matrix unit of the target: " + join(rounding_names(), ", ") +
                       " (default: float32 everywhere, whatever --rules contain)")
        ->allow_extra_args(false);
}

inline void add_rounding_options(CLI::App& app, std::vector<std::string>& allowed, double& most) {
    add_allow_option(app, allowed);
    app.add_option("--max-rounding-error", most, "maximum error of an output due to --allow, as a share of the largest output")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1.0));
}

// The option '--store', the same for every command that keeps what it learns.
inline CLI::Option* add_store_option(CLI::App& app) {
    return app
        .add_option_function<std::string>(
            "--store", use_store,
            "where measurements are stored: an SQLite file, or postgresql://[USER@]HOST[:PORT]/DATABASE (default: LOOPEGG_STORE, or the cache folder)")
        ->type_name("PLACE");
}

// The option '--unproved', the same for every command that reads rule files.
inline void add_unproved_option(CLI::App& app) {
    app.add_flag_callback("--unproved", admit_unproved_rules, "use rules that the judge could neither prove nor refute; the result lists them");
}

// What took the place of --guard and --capacity, for those who type them.
inline void add_old_guard_options(CLI::App& app) {
    const auto refused = [](const char* why) { return CLI::Validator([why](std::string&) { return std::string(why); }, std::string()); };
    static std::string unused;
    app.add_option("--guard", unused)
        ->group("")
        ->check(refused("rule files state what networks must keep: ':when (expected-loss <= 1)' is the default, '--rules paper' replaces fisher-paper, and "
                        "':when (fisher-band >= 0.52)' replaces fisher-band"));
    app.add_option("--capacity", unused)->group("")->check(refused("--max-loss sets how many points may be lost; a capacity of a half was one point"));
}

}  // namespace loopegg
