#include "backends/board/board_trial.hpp"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "backends/kernel/aligned_floats.hpp"
#include "backends/kernel/object_image.hpp"
#include "backends/kernel/on_team.hpp"
#include "backends/measure/samples.hpp"
#include "backends/measure/sensors.hpp"
#include "backends/runtime/loopegg_runtime.h"

// The helpers that generated code reaches through pointers of the same name in its own object.
extern "C" {
extern void* __TVMBackendParallelLaunch;
extern void* __TVMBackendAllocWorkspace;
extern void* __TVMBackendFreeWorkspace;
}

namespace loopegg {
namespace {

constexpr std::int64_t max_floats = std::int64_t{1} << 32;

// A worker is linked statically, so no loader finds functions by name for it. These are the functions that generated code may call.
void* function_named(const char* name) {
    using One = float (*)(float);
    using Two = float (*)(float, float);
    static const struct {
        const char* name;
        One function;
    } one[]{{"expf", expf},     {"exp2f", exp2f},
            {"logf", logf},     {"log2f", log2f},
            {"log10f", log10f}, {"sqrtf", sqrtf},
            {"tanhf", tanhf},   {"sinhf", sinhf},
            {"coshf", coshf},   {"sinf", sinf},
            {"cosf", cosf},     {"tanf", tanf},
            {"asinf", asinf},   {"acosf", acosf},
            {"atanf", atanf},   {"erff", erff},
            {"floorf", floorf}, {"ceilf", ceilf},
            {"truncf", truncf}, {"roundf", roundf},
            {"rintf", rintf},   {"nearbyintf", nearbyintf},
            {"fabsf", fabsf}};
    static const struct {
        const char* name;
        Two function;
    } two[]{{"powf", powf}, {"fmodf", fmodf}, {"atan2f", atan2f}, {"fminf", fminf}, {"fmaxf", fmaxf}};
    for (const auto& f : one)
        if (strcmp(f.name, name) == 0) return reinterpret_cast<void*>(f.function);
    for (const auto& f : two)
        if (strcmp(f.name, name) == 0) return reinterpret_cast<void*>(f.function);
    if (strcmp(name, "fmaf") == 0) return reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(fmaf));
    if (strcmp(name, "memcpy") == 0) return reinterpret_cast<void*>(memcpy);
    if (strcmp(name, "memmove") == 0) return reinterpret_cast<void*>(memmove);
    if (strcmp(name, "memset") == 0) return reinterpret_cast<void*>(memset);
    return nullptr;
}

BoardMessage answer(const char* state, std::string why = {}) {
    BoardMessage m;
    m.add("state", std::string(state));
    if (!why.empty()) m.add("why", std::move(why));
    return m;
}

std::span<const float> floats_at(const std::string& bytes, std::size_t& at, std::int64_t count, std::vector<float>& room) {
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(float);
    if (size > bytes.size() - at) throw BadMessage("a request has fewer bytes than it says");
    room.resize(static_cast<std::size_t>(count));
    if (size) std::memcpy(room.data(), bytes.data() + at, size);
    at += size;
    return room;
}

std::string difference(std::span<const float> got, std::span<const float> wanted, double tolerance) {
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (wanted[i] != wanted[i]) continue;  // NaN: nobody reads this element
        const double allowed = tolerance * std::max(1.0f, fabsf(wanted[i]));
        if (fabs(static_cast<double>(got[i]) - wanted[i]) <= allowed) continue;
        return "wrong output: stored element " + std::to_string(i) + " is " + std::to_string(got[i]) + " and should be " + std::to_string(wanted[i]);
    }
    return "";
}

// Commits a fault that a test asks for in place of a kernel.
void commit_fault(const std::string& kind) {
    if (kind == "crash") abort();
    if (kind == "hang")
        for (;;) sleep(1);
    if (kind == "divide") raise(SIGFPE);
}

BoardMessage tried(const BoardMessage& request) {
    const std::string fault = request.text("fault");
    commit_fault(fault);
    std::size_t at = static_cast<std::size_t>(request.count("object", static_cast<std::int64_t>(request.bytes.size())));
    std::string why;
    const auto image = ObjectImage::load(std::string_view(request.bytes).substr(0, at), why, function_named);
    if (!image) return answer("wrong", "the board's worker cannot load the kernel: " + why);
    auto give = [&](const char* name, void* value) {
        if (void* slot = image->find(name)) *static_cast<void**>(slot) = value;
    };
    give("__TVMBackendParallelLaunch", __TVMBackendParallelLaunch);
    give("__TVMBackendAllocWorkspace", __TVMBackendAllocWorkspace);
    give("__TVMBackendFreeWorkspace", __TVMBackendFreeWorkspace);
    void* const entry = image->find(request.text("symbol"));
    if (!entry) return answer("wrong", "the kernel has no entry '" + request.text("symbol") + "'");

    std::vector<GuardedBuffer> buffers;
    std::vector<loopegg_tensor> tensors;
    std::vector<loopegg_argument> arguments;
    std::vector<float> room;
    const std::vector<std::string> sizes = request.all("buffer");
    if (sizes.empty()) throw BadMessage("a request has no buffers");
    std::int64_t floats = 0;  // the sizes must fit the bytes: the operands, and an expected output as large as the output
    for (const std::string& size : sizes) floats += count_of(size, max_floats);
    if (floats != static_cast<std::int64_t>((request.bytes.size() - at) / sizeof(float))) throw BadMessage("a request has other bytes than it says");
    for (std::size_t b = 0; b < sizes.size(); ++b) {
        const std::int64_t count = count_of(sizes[b], max_floats);
        if (b == 0) room.assign(static_cast<std::size_t>(count), 0.0f);
        buffers.emplace_back(b == 0 ? std::span<const float>(room) : floats_at(request.bytes, at, count, room));
    }
    for (GuardedBuffer& b : buffers) tensors.push_back({b.data(), {}});
    for (loopegg_tensor& t : tensors) arguments.push_back({7, 0, &t});
    const OnTeam team(request.count("turns", std::int64_t{1} << 40));
    const auto run = [&] { return reinterpret_cast<loopegg_kernel>(entry)(nullptr, arguments.data(), static_cast<std::int32_t>(arguments.size()), nullptr); };

    if (run() != 0) return answer("wrong", "the kernel reported an error");
    if (fault == "wrong") *buffers[0].data() += 1;
    for (GuardedBuffer& b : buffers)
        if (!b.intact()) return answer("wrong", "the kernel writes outside its buffers");
    const auto wanted = floats_at(request.bytes, at, static_cast<std::int64_t>(buffers[0].span().size()), room);
    if (std::string wrong = difference(buffers[0].span(), wanted, request.number("tolerance", 0)); !wrong.empty()) return answer("wrong", wrong);

    const int samples = static_cast<int>(request.count("samples", 10000));
    // Tests of a pool's rate put a fixed time in the kernel's place.
    const Samples taken = fault.starts_with("sleep ") ? (usleep(static_cast<useconds_t>(count_of(fault.substr(6), 1000000)) * 1000),
                                                         Samples{std::vector<double>(static_cast<std::size_t>(samples), 1.0), samples})
                                                      : take_samples([&] { run(); }, samples);
    BoardMessage m = answer("timed");
    for (double ms : taken.ms) m.add("ms", ms);
    m.add_count("clean", taken.clean);
    const Sensors sensors;
    if (const std::string governor = sensors.governor(); !governor.empty()) m.add("governor", governor);
    if (const auto celsius = sensors.temperature()) m.add("celsius", *celsius);
    return m;
}

}  // namespace

BoardMessage run_trial(const BoardMessage& request) try { return tried(request); } catch (const std::bad_alloc&) {
    return answer("failed", "the board has too little memory for it");
} catch (const std::exception& e) {
    return answer("failed", e.what());
}

}  // namespace loopegg
