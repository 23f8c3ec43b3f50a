/* Matrix units that kernels may use: whether this processor has them, and the kernel's leave to use their registers.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "loopegg_runtime.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>

/* Linux saves the tiles of a process only if the process asked for that once: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
static long ask_for_tiles(void) {
    enum { arch_prctl = 158, request_state = 0x1023, tile_data = 18 };
    long result = arch_prctl;
    __asm__ volatile("syscall" : "+a"(result) : "D"((long)request_state), "S"((long)tile_data) : "rcx", "r11", "memory");
    return result;
}

static int has_tiles_of_bf16(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1u) && (d >> 24 & 1u) && ask_for_tiles() == 0;
}
#else
static int has_tiles_of_bf16(void) { return 0; }
#endif

uint32_t loopeggrt_missing_units(uint32_t units) {
    uint32_t missing = units;
    if ((units & loopeggrt_amx_bf16) && has_tiles_of_bf16()) missing &= ~(uint32_t)loopeggrt_amx_bf16;
    return missing;
}

const char* loopeggrt_units_in_words(uint32_t units) { return units == 0 ? "" : units == loopeggrt_amx_bf16 ? "AMX with bf16 (amx_bf16)" : "an unknown unit"; }
