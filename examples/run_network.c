/* Runs a network that 'loopegg compile MODEL --out DIR' wrote, from C.
 *
 *     cc -IDIR examples/run_network.c DIR/network.so -Wl,-rpath,$PWD/DIR -o run_network && ./run_network DIR/weights.bin
 */
#include <stdio.h>
#include <stdlib.h>

#include "network.h"

int main(int argc, char** argv) {
    loopegg_network* network = loopegg_open(argc > 1 ? argv[1] : "weights.bin");
    if (!network) return fprintf(stderr, "cannot open the weights\n"), 1;
    const int inputs = loopegg_inputs(), outputs = loopegg_outputs();
    float **in = calloc((size_t)inputs, sizeof *in), **out = calloc((size_t)outputs, sizeof *out);
    for (int i = 0; i < inputs; ++i) {
        in[i] = malloc((size_t)loopegg_input_size(i) * sizeof(float));
        for (long k = 0; k < loopegg_input_size(i); ++k) in[i][k] = 1.0f;
    }
    for (int i = 0; i < outputs; ++i) out[i] = malloc((size_t)loopegg_output_size(i) * sizeof(float));
    const int failed = loopegg_run(network, (const float* const*)in, out);
    for (long k = 0; !failed && k < loopegg_output_size(0) && k < 10; ++k) printf("%g\n", out[0][k]);
    for (int i = 0; i < inputs; ++i) free(in[i]);
    for (int i = 0; i < outputs; ++i) free(out[i]);
    free(in), free(out);
    loopegg_close(network);
    return failed != 0;
}
