/* Runs a network that 'loopegg compile MODEL --out DIR' wrote, from C.
 *
 *     cc -IDIR examples/run_network.c DIR/network.so -Wl,-rpath,$PWD/DIR -o run_network && ./run_network DIR/weights.bin
 */
#include <stdio.h>
#include <stdlib.h>

#include "network.h"

int main(int argc, char** argv) {
    loopegg_network* network = LOOPEGG_NAME(open)(argc > 1 ? argv[1] : "weights.bin");
    loopegg_context* context = network ? LOOPEGG_NAME(create)(network, 0) : NULL;
    if (!context) return fprintf(stderr, "cannot open the weights\n"), 1;
    const int inputs = LOOPEGG_NAME(inputs)(), outputs = LOOPEGG_NAME(outputs)();
    float **in = calloc((size_t)inputs, sizeof *in), **out = calloc((size_t)outputs, sizeof *out);
    for (int i = 0; i < inputs; ++i) {
        in[i] = malloc((size_t)LOOPEGG_NAME(input_size)(i) * sizeof(float));
        for (long k = 0; k < LOOPEGG_NAME(input_size)(i); ++k) in[i][k] = 1.0f;
    }
    for (int i = 0; i < outputs; ++i) out[i] = malloc((size_t)LOOPEGG_NAME(output_size)(i) * sizeof(float));
    const int failed = LOOPEGG_NAME(run)(context, (const float* const*)in, out);
    for (long k = 0; !failed && k < LOOPEGG_NAME(output_size)(0) && k < 10; ++k) printf("%g\n", out[0][k]);
    for (int i = 0; i < inputs; ++i) free(in[i]);
    for (int i = 0; i < outputs; ++i) free(out[i]);
    free(in), free(out);
    LOOPEGG_NAME(destroy)(context);
    LOOPEGG_NAME(close)(network);
    return failed != 0;
}
