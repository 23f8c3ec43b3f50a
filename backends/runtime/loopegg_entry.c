/* What a compiled network offers: the functions of network.h, which the library shows under names with the network's prefix.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "loopegg_network.h"

int loopeggrt_abi(void) { return loopeggrt_abi_version; }
const char* loopeggrt_lacks(void) { return loopeggrt_units_in_words(loopeggrt_missing_units(loopeggrt_tables.units)); }
loopegg_network* loopeggrt_open(const char* weights_file) { return loopeggrt_network_open(&loopeggrt_tables, weights_file); }
void loopeggrt_close(loopegg_network* network) { loopeggrt_network_close(network); }
loopegg_context* loopeggrt_create(loopegg_network* network, int threads) { return loopeggrt_context_create(&loopeggrt_tables, network, threads); }
void loopeggrt_destroy(loopegg_context* context) { loopeggrt_context_destroy(context); }
int loopeggrt_threads(const loopegg_context* context) { return loopeggrt_context_threads(context); }
int loopeggrt_run(loopegg_context* context, const float* const* inputs, float* const* outputs) { return loopeggrt_context_run(context, inputs, outputs, 0); }
int loopeggrt_run_steps(loopegg_context* context, const float* const* inputs, float* const* outputs, double* ms) {
    return loopeggrt_context_run(context, inputs, outputs, ms);
}
int loopeggrt_steps(void) { return loopeggrt_tables.steps; }
int loopeggrt_inputs(void) { return loopeggrt_tables.inputs; }
int loopeggrt_outputs(void) { return loopeggrt_tables.outputs; }
long loopeggrt_input_size(int index) { return (long)loopeggrt_tables.input_sizes[index]; }
long loopeggrt_output_size(int index) { return (long)loopeggrt_tables.output_sizes[index]; }
