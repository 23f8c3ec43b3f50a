// A program of its own: an ONNX model comes by standard input, is checked, and goes to standard output in the opset that is asked for.
//
// ONNX's checker, shape inference and version converter trust what they read. Here they may fall, hang or ask for memory without end, and cost
// this process alone.
#include <sys/resource.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>
#include <onnx/version_converter/convert.h>

#include "base/confine.hpp"
#include "base/regular_file.hpp"

int main(int count, char** words) {
    const int opset = count == 2 ? std::atoi(words[1]) : 0;
    if (opset < 7 || opset > 17) {
        std::cerr << "usage: loopegg_onnx_upgrade OPSET < MODEL > MODEL (loopegg starts it)\n";
        return 2;
    }
    loopegg::Confinement limits;
    limits.memory_mb = 2048, limits.programs = false;
    loopegg::confine(limits);
    const rlimit seconds{20, 20}, written{rlim_t{256} << 20, rlim_t{256} << 20};
    ::setrlimit(RLIMIT_CPU, &seconds), ::setrlimit(RLIMIT_FSIZE, &written);
    try {
        const std::string bytes = loopegg::read_standard_input();
        onnx::ModelProto model;
        if (!model.ParseFromString(bytes)) {
            std::cerr << "it is no ONNX model\n";
            return 1;
        }
        onnx::checker::check_model(model);
        onnx::shape_inference::InferShapes(model);  // the converter asks for the shape that a softmax reads
        if (!onnx::version_conversion::ConvertVersion(model, opset).SerializeToOstream(&std::cout)) return 1;
        return std::cout.flush() ? 0 : 1;
    } catch (const std::exception& e) {
        std::cerr << e.what() << "\n";
        return 1;
    }
}
