// Runs a network that 'loopegg compile MODEL --out DIR' wrote, from C++.
//   c++ -std=c++17 -IDIR examples/run_network.cpp DIR/network.so -Wl,-rpath,$PWD/DIR -o run_network && ./run_network DIR/weights.bin
#include <cstdio>
#include <vector>

#include "network.h"

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: run_network weights.bin\n"), 2;
    loopegg_network* network = LOOPEGG_NAME(open)(argv[1]);
    loopegg_context* context = network ? LOOPEGG_NAME(create)(network, 0) : nullptr;
    if (!context) return std::fprintf(stderr, "cannot open %s\n", argv[1]), 1;
    std::vector<float> input(static_cast<std::size_t>(LOOPEGG_NAME(input_size)(0)), 1.0f), output(static_cast<std::size_t>(LOOPEGG_NAME(output_size)(0)));
    const float* inputs[] = {input.data()};
    float* outputs[] = {output.data()};
    const int failed = LOOPEGG_NAME(run)(context, inputs, outputs);
    for (std::size_t i = 0; i < output.size() && i < 10; ++i) std::printf("%g\n", output[i]);
    LOOPEGG_NAME(destroy)(context);
    LOOPEGG_NAME(close)(network);
    return failed ? 1 : 0;
}
