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

static int has_unit(uint32_t unit) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (unit == loopeggrt_vnni) return (int)(c >> 11 & 1u);
    if (unit == loopeggrt_amx_bf16 || unit == loopeggrt_amx_int8)
        return (d >> (unit == loopeggrt_amx_bf16 ? 22 : 25) & 1u) && (d >> 24 & 1u) && ask_for_tiles() == 0;
    return unit == loopeggrt_avx512_bf16 && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1u);
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

static int has_unit(uint32_t unit) {
    enum { dotprod = 20, i8mm = 13, bf16 = 14 }; /* bits of HWCAP, and of HWCAP2 */
    if (unit == loopeggrt_dotprod) return (int)(getauxval(AT_HWCAP) >> dotprod & 1u);
    if (unit == loopeggrt_i8mm) return (int)(getauxval(AT_HWCAP2) >> i8mm & 1u);
    return unit == loopeggrt_arm_bf16 && (getauxval(AT_HWCAP2) >> bf16 & 1u);
}
#else
static int has_unit(uint32_t unit) { return (void)unit, 0; }
#endif

static const struct {
    uint32_t unit;
    const char* words;
} units_in_words[] = {{loopeggrt_amx_bf16, "AMX with bf16 (amx_bf16)"},
                      {loopeggrt_amx_int8, "AMX with int8 (amx_int8)"},
                      {loopeggrt_vnni, "AVX-512 with dot products of int8 (avx512_vnni)"},
                      {loopeggrt_avx512_bf16, "AVX-512 with dot products of bf16 (avx512_bf16)"},
                      {loopeggrt_dotprod, "dot products of int8 (asimddp)"},
                      {loopeggrt_i8mm, "matrix products of int8 (i8mm)"},
                      {loopeggrt_arm_bf16, "matrix products of bf16 (bf16)"}};
enum { known = sizeof units_in_words / sizeof units_in_words[0] };

uint32_t loopeggrt_missing_units(uint32_t units) {
    uint32_t missing = units;
    for (int i = 0; i < known; ++i)
        if ((units & units_in_words[i].unit) && has_unit(units_in_words[i].unit)) missing &= ~units_in_words[i].unit;
    return missing;
}

const char* loopeggrt_units_in_words(uint32_t units) {
    for (int i = 0; i < known; ++i)
        if (units & units_in_words[i].unit) return units_in_words[i].words;
    return units == 0 ? "" : "an unknown unit";
}
