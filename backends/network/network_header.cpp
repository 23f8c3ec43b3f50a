// Writes network.h: what a program includes that runs the network.
#include <fmt/format.h>

#include "backends/network/network_source.hpp"
#include "base/quote.hpp"

namespace loopegg {
namespace {

constexpr const char* header_text = R"(/* {name}: a network compiled by loopegg. Link or dlopen network.so; it needs nothing but {needs}. */
#pragma once
#ifdef __cplusplus
extern "C" {{
#endif

/* Changes when a program that was built with an older header would no longer work. NAME_abi() answers that of the library. */
#define LOOPEGG_ABI {abi}

/* Names begin with the network's own prefix, so that several networks live in one process. LOOPEGG_NAME(run) is NAME_run, for code that is
   written for any network; where several headers are included, it is that of the first one. */
#ifndef LOOPEGG_NAME
#define LOOPEGG_NAME(name) NAME_##name
#endif

typedef struct loopegg_network loopegg_network; /* the weights, which all its contexts read */
typedef struct loopegg_context loopegg_context; /* what a call needs{context}. Make one for each thread that calls. */

int NAME_abi(void);
{lacks}
/* Reads the weights. NULL: no memory, {no_device}not the weights of this network. They are freed when the network is closed and its last context destroyed. */
loopegg_network* NAME_open(const char* weights_file);
void NAME_close(loopegg_network* network);

/* {threads}
   NULL: no memory, or a network of another library. */
loopegg_context* NAME_create(loopegg_network* network, int threads);
void NAME_destroy(loopegg_context* context);
int NAME_threads(const loopegg_context* context);

/* Arrays of addresses: {inputs} input(s), {outputs} output(s), float32, row-major.{in_place}
   0: done. 1: another thread runs this context now. -1: it failed. */
int NAME_run(loopegg_context* context, const float* const* inputs, float* const* outputs);

/* The same, and how many milliseconds each step took: {steps} of them, in the order of "steps" in network.json. */
int NAME_run_steps(loopegg_context* context, const float* const* inputs, float* const* outputs, double* ms);
{on_a_gpu}
int NAME_steps(void);
int NAME_inputs(void);
int NAME_outputs(void);
long NAME_input_size(int index); /* floats */
long NAME_output_size(int index);

#ifdef __cplusplus
}}
#endif
)";

constexpr const char* on_a_gpu = R"(
/* On the device: the network is one CUDA graph. Write the inputs to their addresses there, launch, and read the outputs. `stream`: a CUstream of the
   device's primary context, on which this is enqueued; NULL: the call waits until it is done. 0 when done. */
int NAME_launch(loopegg_context* context, void* stream);
unsigned long long NAME_input_address(const loopegg_context* context, int index);
unsigned long long NAME_output_address(const loopegg_context* context, int index);

const char* NAME_error(void); /* why the last call of this thread failed */
)";

constexpr const char* lacks = R"(
/* What the code needs and this machine does not offer, in words; "" where nothing is missing. NAME_open answers NULL where something is. */
const char* NAME_lacks(void);
)";

constexpr const char* in_place =
    "\n   Memory at a multiple of 64 bytes is used as it is, unless it ends within 64 bytes of the end of a page; other memory is copied.";

}  // namespace

std::string network_header(const PlacedNetwork& n, const Target& target) {
    const bool gpu = target.gpu();
    std::string filled = fmt::format(
        header_text, fmt::arg("name", comment_text(n.name)),
        fmt::arg("needs", gpu ? "libc and the driver of the GPU (libcuda.so.1)" : "libc, libm and pthreads"), fmt::arg("abi", network_abi),
        fmt::arg("context", gpu ? ": memory and a stream of the device" : ": memory for values, and threads"),
        fmt::arg("no_device", gpu ? "no device, or " : "or "),
        fmt::arg("threads",
                 gpu ? "`threads` is of no use on a GPU."
                     : "Threads for the parallel loops of one call, the caller's included. 0: LOOPEGG_THREADS, or the processors that this process may "
                       "use (its\n   affinity mask and the quotas of its control groups). Helpers sleep between calls."),
        fmt::arg("inputs", n.inputs.size()), fmt::arg("outputs", n.outputs.size()), fmt::arg("in_place", gpu ? "" : in_place),
        fmt::arg("steps", n.steps.size()), fmt::arg("on_a_gpu", gpu ? on_a_gpu : ""), fmt::arg("lacks", gpu ? "" : lacks));
    return with_prefix(std::move(filled), network_prefix(n.name));
}

}  // namespace loopegg
