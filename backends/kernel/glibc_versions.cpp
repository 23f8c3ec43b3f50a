#include "backends/kernel/glibc_versions.hpp"

#include <elf.h>

namespace loopegg {
namespace {

constexpr const char *libc = "libc.so.6", *libm = "libm.so.6", *loader = "ld-linux-x86-64.so.2";

// Where x86_64 is null, the function has the version with which glibc began there. On aarch64 glibc began with 2.17.
struct Row {
    const char *name, *library, *x86_64, *aarch64;
};
// clang-format off
constexpr Row rows[] = {
    {"__errno_location",       libc, nullptr,       nullptr},
    {"__isoc99_fscanf",        libc, "GLIBC_2.7",   nullptr},
    {"__sched_cpucount",       libc, "GLIBC_2.6",   nullptr},
    {"__tls_get_addr",         loader, "GLIBC_2.3", nullptr},
    {"aligned_alloc",          libc, "GLIBC_2.16",  nullptr},
    {"atoi",                   libc, nullptr,       nullptr},
    {"calloc",                 libc, nullptr,       nullptr},
    {"clock_gettime",          libc, "GLIBC_2.17",  nullptr},
    {"fclose",                 libc, nullptr,       nullptr},
    {"fgetc",                  libc, nullptr,       nullptr},
    {"fgets",                  libc, nullptr,       nullptr},
    {"fopen",                  libc, nullptr,       nullptr},
    {"fread",                  libc, nullptr,       nullptr},
    {"free",                   libc, nullptr,       nullptr},
    {"getc",                   libc, nullptr,       nullptr},
    {"getenv",                 libc, nullptr,       nullptr},
    {"getpid",                 libc, nullptr,       nullptr},
    {"madvise",                libc, nullptr,       nullptr},
    {"malloc",                 libc, nullptr,       nullptr},
    {"memcpy",                 libc, "GLIBC_2.14",  nullptr},
    {"memmove",                libc, nullptr,       nullptr},
    {"memset",                 libc, nullptr,       nullptr},
    {"pthread_create",         libc, "GLIBC_2.34",  "GLIBC_2.34"},
    {"pthread_join",           libc, "GLIBC_2.34",  "GLIBC_2.34"},
    {"pthread_setaffinity_np", libc, "GLIBC_2.34",  "GLIBC_2.34"},
    {"sched_getaffinity",      libc, "GLIBC_2.3.4", nullptr},
    {"sched_getcpu",           libc, "GLIBC_2.6",   nullptr},
    {"sched_yield",            libc, nullptr,       nullptr},
    {"snprintf",               libc, nullptr,       nullptr},
    {"strchr",                 libc, nullptr,       nullptr},
    {"strcmp",                 libc, nullptr,       nullptr},
    {"strcspn",                libc, nullptr,       nullptr},
    {"strlen",                 libc, nullptr,       nullptr},
    {"strstr",                 libc, nullptr,       nullptr},
    {"strtol",                 libc, nullptr,       nullptr},
    {"strtoll",                libc, nullptr,       nullptr},
    {"syscall",                libc, nullptr,       nullptr},
    {"sysconf",                libc, nullptr,       nullptr},
    {"acosf",                  libm, nullptr,       nullptr},
    {"acoshf",                 libm, nullptr,       nullptr},
    {"asinf",                  libm, nullptr,       nullptr},
    {"asinhf",                 libm, nullptr,       nullptr},
    {"atan2f",                 libm, nullptr,       nullptr},
    {"atanf",                  libm, nullptr,       nullptr},
    {"atanhf",                 libm, nullptr,       nullptr},
    {"ceilf",                  libm, nullptr,       nullptr},
    {"cosf",                   libm, nullptr,       nullptr},
    {"coshf",                  libm, nullptr,       nullptr},
    {"erff",                   libm, nullptr,       nullptr},
    {"exp2f",                  libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"expf",                   libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"expm1f",                 libm, nullptr,       nullptr},
    {"fabsf",                  libm, nullptr,       nullptr},
    {"floorf",                 libm, nullptr,       nullptr},
    {"fmaf",                   libm, nullptr,       nullptr},
    {"fmaxf",                  libm, nullptr,       nullptr},
    {"fminf",                  libm, nullptr,       nullptr},
    {"fmodf",                  libm, nullptr,       nullptr},
    {"log10f",                 libm, nullptr,       nullptr},
    {"log1pf",                 libm, nullptr,       nullptr},
    {"log2f",                  libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"logf",                   libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"nearbyintf",             libm, nullptr,       nullptr},
    {"powf",                   libm, "GLIBC_2.27",  "GLIBC_2.27"},
    {"rintf",                  libm, nullptr,       nullptr},
    {"roundf",                 libm, nullptr,       nullptr},
    {"sinf",                   libm, nullptr,       nullptr},
    {"sinhf",                  libm, nullptr,       nullptr},
    {"sqrtf",                  libm, nullptr,       nullptr},
    {"tanf",                   libm, nullptr,       nullptr},
    {"tanhf",                  libm, nullptr,       nullptr},
    {"truncf",                 libm, nullptr,       nullptr},
};
// clang-format on

}  // namespace

std::vector<const char*> glibc_function_names() {
    std::vector<const char*> names;
    for (const Row& row : rows) names.push_back(row.name);
    return names;
}

GlibcFunction glibc_function(std::uint16_t machine, std::string_view name) {
    for (const Row& row : rows) {
        if (name != row.name) continue;
        if (machine == EM_X86_64) return {row.library, row.x86_64 ? row.x86_64 : "GLIBC_2.2.5"};
        return {row.library, row.aarch64 ? row.aarch64 : "GLIBC_2.17"};
    }
    return {nullptr, nullptr};
}

}  // namespace loopegg
