/* Reads the file of a network's weights, and refuses another network's.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Different for different weights, whatever their number. */
static inline uint64_t loopeggrt_fingerprint(const float* values, int64_t count) {
    uint64_t h = 0x9e3779b97f4a7c15ull;
    for (int64_t i = 0; i + 1 < count; i += 2) {
        uint64_t two;
        memcpy(&two, values + i, sizeof two);
        h = (h ^ two) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}

/* 1 where the file holds so many floats with this fingerprint and nothing else. */
static inline int loopeggrt_read_weights(const char* path, float* to, int64_t count, uint64_t fingerprint) {
    FILE* file = fopen(path, "rb");
    if (!file) return 0;
    const int whole = fread(to, sizeof(float), (size_t)count, file) == (size_t)count && fgetc(file) == EOF;
    fclose(file);
    return whole && loopeggrt_fingerprint(to, count) == fingerprint;
}
