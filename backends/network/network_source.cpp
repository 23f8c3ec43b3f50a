#include "backends/network/network_source.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/quote.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

std::string sizes(const std::vector<GraphInput>& all) {
    std::vector<std::string> r;
    for (const GraphInput& i : all) r.push_back(std::to_string(element_count(i.shape)));
    return join(r, ", ");
}

constexpr const char* prologue = R"(#include "network.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "loopegg_runtime.h"

struct loopegg_network {
    float *arena, *weights;
};
typedef struct {
    int kernel;        /* -1: a copy */
    int first, count;  /* operands, or the dimensions of a copy after its two operands */
} step;
typedef struct {
    int space;  /* 0: the arena, 1: the weights, then the inputs, then the outputs */
    long offset;
} operand;
typedef struct {
    long extent, to, from;
} dimension;
typedef struct {
    const char* node;
    int output, inputs, first_dim;
    long count;
} opaque;
)";

constexpr const char* epilogue = R"(
/* Large pages, where the system gives them: weights are read once in a run, and with small pages much of that is address translation. */
static float* floats(long count) {
    const size_t page = (size_t)2 << 20, bytes = (size_t)count * sizeof(float) + 64, align = bytes < page ? 64 : page;
    const size_t all = (bytes + align - 1) / align * align;
    float* memory = aligned_alloc(align, all);
#ifdef MADV_HUGEPAGE
    if (memory && align == page) madvise(memory, all, MADV_HUGEPAGE);
#endif
    return memory;
}

loopegg_network* loopegg_open(const char* weights_file) {
    loopegg_network* n = calloc(1, sizeof *n);
    FILE* file = fopen(weights_file, "rb");
    if (n) n->arena = floats(arena_floats), n->weights = floats(weight_floats);
    int ok = n && n->arena && n->weights && file && fread(n->weights, sizeof(float), weight_floats, file) == (size_t)weight_floats && fgetc(file) == EOF;
    ok = ok && fingerprint(n->weights, weight_floats) == weight_fingerprint;
    if (file) fclose(file);
    if (!ok) return loopegg_close(n), NULL;
    memset(n->arena, 0, (size_t)arena_floats * sizeof(float));
    return n;
}

void loopegg_close(loopegg_network* n) {
    if (!n) return;
    free(n->arena);
    free(n->weights);
    free(n);
}

static void copy(float* to, const float* from, const dimension* d, int rank) {
    if (rank == 1 && d->to == 1 && d->from == 1) {
        memcpy(to, from, (size_t)d->extent * sizeof(float));
        return;
    }
    for (long i = 0; i < d->extent; ++i) {
        if (rank == 1) to[i * d->to] = from[i * d->from];
        else copy(to + i * d->to, from + i * d->from, d + 1, rank - 1);
    }
}

/* Whether kernels may use the caller's memory as it is: it begins at a multiple of 64 bytes, and 64 bytes more are in its last page, because kernels read
   whole vectors. */
static int usable(const float* values, long count) {
    const uintptr_t begin = (uintptr_t)values, last = begin + (uintptr_t)count * sizeof(float) - 1;
    return begin % 64 == 0 && 4095 - last % 4096 >= 64;
}

static int apart(const float* a, long count_a, const float* b, long count_b) {
    const uintptr_t begin_a = (uintptr_t)a, begin_b = (uintptr_t)b;
    return begin_a + (uintptr_t)count_a * sizeof(float) <= begin_b || begin_b + (uintptr_t)count_b * sizeof(float) <= begin_a;
}

/* Inputs and outputs are in the caller's memory where that is usable, and copied into and out of the arena elsewhere. */
static void find_spaces(loopegg_network* n, const float* const* inputs, float* const* outputs, float** spaces) {
    spaces[0] = n->arena;
    spaces[1] = n->weights;
    for (int i = 0; i < input_count; ++i) {
        int in_place = usable(inputs[i], input_sizes[i]);
        for (int o = 0; o < output_count; ++o) in_place = in_place && apart(inputs[i], input_sizes[i], outputs[o], output_sizes[o]);
        spaces[2 + i] = in_place ? (float*)(uintptr_t)inputs[i] : memcpy(n->arena + input_offsets[i], inputs[i], (size_t)input_sizes[i] * sizeof(float));
    }
    for (int o = 0; o < output_count; ++o) {
        int in_place = usable(outputs[o], output_sizes[o]);
        for (int other = 0; other < output_count; ++other)
            in_place = in_place && (other == o || apart(outputs[o], output_sizes[o], outputs[other], output_sizes[other]));
        spaces[2 + input_count + o] = in_place ? outputs[o] : n->arena + output_offsets[o];
    }
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static float* at(float* const* spaces, operand o) { return spaces[o.space] + o.offset; }

int loopegg_run_steps(loopegg_network* n, const float* const* inputs, float* const* outputs, double* ms) {
    loopegg_tensor tensors[most_operands];
    loopegg_argument arguments[most_operands];
    float* spaces[2 + input_count + output_count];
    find_spaces(n, inputs, outputs, spaces);
    double began = ms ? now_ms() : 0;
    for (int s = 0; s < step_count; ++s) {
        if (ms && s > 0) {
            const double ended = now_ms();
            ms[s - 1] = ended - began;
            began = ended;
        }
        const step* now = &steps[s];
        const operand* o = &operands[now->first];
        if (now->kernel == -2) {
            const opaque* p = &opaques[now->count];
            const float* values[64];
            for (int i = 0; i < p->inputs; ++i) values[i] = at(spaces, o[1 + i]);
            if (loopegg_run_opaque(p->node, p->output, p->inputs, values, &opaque_dims[p->first_dim], at(spaces, o[0]), p->count)) return -1;
            continue;
        }
        if (now->kernel < 0) {
            copy(at(spaces, o[0]), at(spaces, o[1]), &dimensions[now->count >> 8], now->count & 255);
            continue;
        }
        for (int i = 0; i < now->count; ++i) {
            tensors[i].data = at(spaces, o[i]);
            arguments[i].type = 7;
            arguments[i].pad = 0;
            arguments[i].tensor = &tensors[i];
        }
        if (kernels[now->kernel](NULL, arguments, now->count, NULL)) return -1;
    }
    if (ms && step_count > 0) ms[step_count - 1] = now_ms() - began;
    for (int i = 0; i < output_count; ++i) {
        const float* made = at(spaces, output_places[i]);
        if (made != outputs[i]) memcpy(outputs[i], made, (size_t)output_sizes[i] * sizeof(float));
    }
    return 0;
}

int loopegg_run(loopegg_network* n, const float* const* inputs, float* const* outputs) { return loopegg_run_steps(n, inputs, outputs, NULL); }

int loopegg_steps(void) { return step_count; }
int loopegg_inputs(void) { return input_count; }
int loopegg_outputs(void) { return output_count; }
long loopegg_input_size(int index) { return input_sizes[index]; }
long loopegg_output_size(int index) { return output_sizes[index]; }
)";

// A C string in pieces, because compilers limit the length of one literal.
std::string c_string(const std::string& text) {
    std::string out = "\"";
    std::size_t piece = 0;
    for (char c : text) {
        if (++piece % 1000 == 0) out += "\"\n    \"";
        if (c == '"' || c == '\\')
            out += std::string("\\") + c;
        else if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126 || c == '?')
            out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out + "\"";
}

std::string place(const PlacedNetwork& n, const PlacedOperand& o) {
    if (o.port < 0) return fmt::format("{{{}, {}}}", o.constant ? 1 : 0, o.offset);
    const auto port = static_cast<std::size_t>(o.port);
    const std::int64_t begin = port < n.inputs.size() ? n.input_offsets[port] : n.output_places[port - n.inputs.size()].offset;
    return fmt::format("{{{}, {}}}", 2 + port, o.offset - begin);
}

}  // namespace

const char* const fingerprint_in_c = R"(/* Tells these weights from all others, whatever their number. */
static uint64_t fingerprint(const float* values, long count) {
    uint64_t h = 0x9e3779b97f4a7c15ull;
    for (long i = 0; i + 1 < count; i += 2) {
        uint64_t two;
        memcpy(&two, values + i, sizeof two);
        h = (h ^ two) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}
)";

// The same function as fingerprint_in_c. The number of weights is even, and the byte order is that of the target, which is little-endian as all of ours.
std::uint64_t weights_fingerprint(const std::vector<float>& values) {
    std::uint64_t h = 0x9e3779b97f4a7c15ull;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
        std::uint64_t two = 0;
        std::memcpy(&two, values.data() + i, sizeof two);
        h = (h ^ two) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}

std::string network_source(const PlacedNetwork& n) {
    std::string s = fmt::format("/* {}: compiled by loopegg. Build: cc -O2 -shared -fPIC network.c loopegg_runtime.c *.o -o network.so -lm -lpthread */\n",
                                comment_text(n.name)) +
                    prologue;
    std::vector<std::string> kernels, operands, dimensions, steps, offsets, output_offsets, places, opaques, dims;
    for (const Kernel& k : n.kernels) {
        s += fmt::format("extern int {}(void*, const loopegg_argument*, int32_t, void*);\n", k.symbol);
        kernels.push_back(k.symbol);
    }
    std::size_t most = 2;
    for (const PlacedStep& step : n.steps) {
        const std::size_t first = operands.size();
        for (const PlacedOperand& o : step.operands) operands.push_back(place(n, o));
        most = std::max(most, step.operands.size());
        std::size_t length = step.operands.size();
        if (step.kernel == -2) {
            length = opaques.size();
            opaques.push_back(fmt::format("{{{}, {}, {}, {}, {}}}", c_string(step.opaque), step.output, step.read_shapes.size(), dims.size(), step.shape[0]));
            for (const Shape& shape : step.read_shapes) {
                dims.push_back(std::to_string(shape.size()));
                for (std::int64_t d : shape) dims.push_back(std::to_string(d));
            }
        } else if (step.kernel < 0) {
            length = dimensions.size() << 8 | step.shape.size();
            for (std::size_t d = 0; d < step.shape.size(); ++d)
                dimensions.push_back(fmt::format("{{{}, {}, {}}}", step.shape[d], step.to_strides[d], step.from_strides[d]));
        }
        steps.push_back(fmt::format("{{{}, {}, {}}} /* {} */", step.kernel, first, length, comment_text(step.site)));
    }
    if (dimensions.empty()) dimensions.push_back("{0, 0, 0}");
    s += opaques.empty() ? "static int loopegg_run_opaque(const char* node, int output, int inputs, const float* const* values, const long* dims, float* out, "
                           "long count) {\n"
                           "    (void)node, (void)output, (void)inputs, (void)values, (void)dims, (void)out, (void)count;\n    return -1;\n}\n"
                         : "extern int loopegg_run_opaque(const char*, int, int, const float* const*, const long*, float*, long);\n";
    if (opaques.empty()) opaques.push_back("{0, 0, 0, 0, 0}");
    if (dims.empty()) dims.push_back("0");
    if (kernels.empty()) kernels.push_back("0");
    if (operands.empty()) operands.push_back("{0, 0}");
    if (steps.empty()) steps.push_back("{0, 0, 0}");
    for (std::int64_t o : n.input_offsets) offsets.push_back(std::to_string(o));
    for (const PlacedOperand& o : n.output_places) {
        places.push_back(place(n, o));
        output_offsets.push_back(std::to_string(o.port < 0 ? 0 : o.offset));
    }
    s += fmt::format("\nenum {{ step_count = {}, input_count = {}, output_count = {}, most_operands = {} }};\n", n.steps.size(), n.inputs.size(),
                     n.outputs.size(), most);
    s += fmt::format("static const long arena_floats = {}, weight_floats = {};\nstatic const uint64_t weight_fingerprint = {}ull;\n", n.arena, n.weights.size(),
                     weights_fingerprint(n.weights));
    s += "static const loopegg_kernel kernels[] = {" + join(kernels, ", ") + "};\n";
    s += "static const operand operands[] = {\n    " + join(operands, ",\n    ") + "};\n";
    s += "static const opaque opaques[] = {\n    " + join(opaques, ",\n    ") + "};\nstatic const long opaque_dims[] = {" + join(dims, ", ") + "};\n";
    s += "static const dimension dimensions[] = {" + join(dimensions, ", ") + "};\n";
    s += "static const step steps[] = {\n    " + join(steps, ",\n    ") + "};\n";
    s += "static const long input_offsets[] = {" + join(offsets, ", ") + "}, input_sizes[] = {" + sizes(n.inputs) + "}, output_sizes[] = {" + sizes(n.outputs) +
         "};\n";
    s += "static const long output_offsets[] = {" + join(output_offsets, ", ") + "};\n";
    s += "static const operand output_places[] = {" + join(places, ", ") + "};\n";
    return s + "\n" + fingerprint_in_c + epilogue;
}

std::string network_header(const PlacedNetwork& n, const Target& target) {
    constexpr const char* on_a_gpu = R"(
/* On the device: the network is one CUDA graph. Write the inputs to their addresses there, launch, and read the outputs. `stream`: a CUstream of the
   device's primary context, on which this is enqueued; NULL: the call waits until it is done. 0 when done. */
int loopegg_launch(loopegg_network* network, void* stream);
unsigned long long loopegg_input_address(const loopegg_network* network, int index);
unsigned long long loopegg_output_address(const loopegg_network* network, int index);

const char* loopegg_error(void); /* why the last call failed */
)";
    constexpr const char* in_place =
        "\n   Memory at a multiple of 64 bytes is used as it is, unless it ends within 64 bytes of the end of a page; other memory is copied.";
    return fmt::format(R"(/* {}: a network compiled by loopegg. Link or dlopen network.so; it needs nothing but {}. */
#pragma once
#ifdef __cplusplus
extern "C" {{
#endif

typedef struct loopegg_network loopegg_network;

loopegg_network* loopegg_open(const char* weights_file); /* NULL: no memory, {}not these weights */
void loopegg_close(loopegg_network* network);

/* Arrays of addresses: {} input(s), {} output(s), float32, row-major. 0 when done. One call at a time per {}.{} */
int loopegg_run(loopegg_network* network, const float* const* inputs, float* const* outputs);

/* The same, and how many milliseconds each step took: {} of them, in the order of "steps" in network.json. */
int loopegg_run_steps(loopegg_network* network, const float* const* inputs, float* const* outputs, double* ms);
{}
int loopegg_steps(void);
int loopegg_inputs(void);
int loopegg_outputs(void);
long loopegg_input_size(int index);  /* floats */
long loopegg_output_size(int index);

void loopegg_set_threads(int count); /* {} */

#ifdef __cplusplus
}}
#endif
)",
                       comment_text(n.name), target.gpu() ? "libc and the driver of the GPU (libcuda.so.1)" : "libc, libm and pthreads",
                       target.gpu() ? "no device, or " : "or ", n.inputs.size(), n.outputs.size(), target.gpu() ? "network" : "process",
                       target.gpu() ? "" : in_place, n.steps.size(), target.gpu() ? on_a_gpu : "",
                       target.gpu() ? "of no use on a GPU" : "0: as many as the machine has cores");
}

}  // namespace loopegg
