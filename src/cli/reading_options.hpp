// Options of every command that reads a network from a file: what the file leaves open, and what the user allows.
#pragma once
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "graph/load.hpp"

namespace loopegg {

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
    app.add_option("--shape", o->shapes, "the shape of an input that an ONNX file leaves open: NAME=1x3x224x224; may be given for each input");
    if (!own_batch) app.add_option("--batch", o->how.batch, "the batch size of inputs that an ONNX file leaves open; otherwise 1")->check(CLI::Range(1, 65536));
    app.add_flag("--as-float32", o->how.as_float32, "compute a float16 or quantized model in float32");
    return o;
}

inline void say_notes(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
}

}  // namespace loopegg
