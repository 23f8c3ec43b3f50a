// Writes the C source of a network on a GPU: its kernels and steps as tables. runtime/gpu_network.h does the rest.
#include <fmt/format.h>

#include "backends/network/network_source.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr const char* types = R"(#include "network.h"

#include <stdint.h>
#include <string.h>

typedef struct {
    const unsigned char* image;   /* a cubin */
    const char* symbol;
    unsigned grid[3], block[3];
} kernel;
typedef struct {
    int constant;
    long offset;
} operand;
typedef struct {
    int kernel;        /* -1: a copy */
    int first, count;  /* operands; of a copy, how many dimensions it has */
    int first_dim;
} step;

)";

std::string place(const PlacedOperand& o) { return fmt::format("{{{}, {}}}", o.constant ? 1 : 0, o.offset); }

std::string bytes(const std::string& image) {
    std::string out;
    out.reserve(image.size() * 4);
    for (std::size_t i = 0; i < image.size(); ++i) {
        out += std::to_string(static_cast<unsigned char>(image[i]));
        out += i % 40 == 39 ? ",\n" : ",";
    }
    return out;
}

std::string three(const std::array<std::int64_t, 3>& a) { return fmt::format("{{{}, {}, {}}}", a[0], a[1], a[2]); }

}  // namespace

std::string gpu_network_source(const PlacedNetwork& n, const std::vector<std::string>& cubins) {
    std::string s = fmt::format("/* {}: compiled by loopegg. Build: cc -O2 -shared -fPIC network.c -o network.so -ldl */\n", comment_text(n.name)) + types;
    std::vector<std::string> kernels, operands, dims, steps, offsets, places, input_sizes, output_sizes;
    for (std::size_t k = 0; k < n.kernels.size(); ++k) {  // the driver needs aligned images
        s += fmt::format("static const unsigned char image{}[] __attribute__((aligned(64))) = {{\n{}0}};\n", k, bytes(cubins[k]));
        kernels.push_back(
            fmt::format("{{image{}, \"{}\", {}, {}}}", k, n.kernels[k].symbol, three(n.kernels[k].launch.grid), three(n.kernels[k].launch.block)));
    }
    for (const PlacedStep& step : n.steps) {
        const std::size_t first = operands.size(), first_dim = dims.size();
        if (step.kernel >= 0)  // in the order of the kernel's own arguments
            for (int a : n.kernels[static_cast<std::size_t>(step.kernel)].arguments) operands.push_back(place(step.operands[static_cast<std::size_t>(a)]));
        else
            for (const PlacedOperand& o : step.operands) operands.push_back(place(o));
        if (step.kernel < 0)
            for (std::size_t d = 0; d < step.shape.size(); ++d)
                for (std::int64_t x : {step.shape[d], step.to_strides[d], step.from_strides[d]}) dims.push_back(std::to_string(x));
        const std::size_t count = step.kernel < 0 ? step.shape.size() : operands.size() - first;
        steps.push_back(fmt::format("{{{}, {}, {}, {}}} /* {} */", step.kernel, first, count, first_dim, comment_text(step.site)));
    }
    for (std::int64_t o : n.input_offsets) offsets.push_back(std::to_string(o));
    for (const PlacedOperand& o : n.output_places) places.push_back(place(o));
    for (const GraphInput& i : n.inputs) input_sizes.push_back(std::to_string(element_count(i.shape)));
    for (const GraphInput& o : n.outputs) output_sizes.push_back(std::to_string(element_count(o.shape)));
    s += fmt::format("\nenum {{ kernel_count = {}, step_count = {}, operand_count = {}, input_count = {}, output_count = {} }};\n", n.kernels.size(),
                     n.steps.size(), operands.size(), n.inputs.size(), n.outputs.size());
    s += fmt::format("static const long arena_floats = {}, weight_floats = {};\nstatic const uint64_t weight_fingerprint = {}ull;\n", n.arena, n.weights.size(),
                     weights_fingerprint(n.weights));
    s += c_table("kernel", "kernels", kernels, "{0}") + c_table("operand", "operands", operands, "{0, 0}") + c_table("long", "dims", dims, "0");
    s += c_table("step", "steps", steps, "{0, 0, 0, 0}") + c_table("long", "input_offsets", offsets, "0") +
         c_table("operand", "output_places", places, "{0, 0}");
    s += c_table("long", "input_sizes", input_sizes, "0") + c_table("long", "output_sizes", output_sizes, "0");
    return s + "\n#include \"gpu_network.h\"\n";
}

}  // namespace loopegg
