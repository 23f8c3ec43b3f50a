#include "backends/measure/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <system_error>
#include <thread>

#include <nlohmann/json.hpp>

#include "backends/board/pack_candidate.hpp"
#include "backends/kernel/aligned_floats.hpp"
#include "backends/kernel/kernel_cache.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/measure/cold_weights.hpp"
#include "backends/measure/rpc.hpp"
#include "backends/measure/samples.hpp"
#include "backends/network/network.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/npy.hpp"
#include "graph/weights.hpp"
#include "nest/domain/domain.hpp"

namespace loopegg {
namespace {

using Json = nlohmann::json;

// Something that can be run again and again. A nest takes its weights from `cold`, where that is given. A network has its own weights.
struct Subject {
    std::function<void(ColdWeights* cold)> run;
    std::int64_t batch = 1;
    std::function<std::vector<double>()> run_steps{};  // only for a network
    std::shared_ptr<LoadedNetwork> network{};
};

// References are kept, because tuning asks for one statement again and again, in many schedules over the same instances.
const std::vector<float>& wanted_output(const Term& nest, const Statement& s, const std::vector<std::vector<float>>& operands) {
    static std::map<std::string, std::vector<float>> known;
    if (known.size() > 32) known.clear();
    const std::string key = to_string(s.term) + " " + to_string(domain_of(nest));
    auto found = known.find(key);
    if (found == known.end()) found = known.emplace(key, reference_output(nest, operands)).first;
    return found->second;
}

// A failure of the candidate's own: the candidate will fail again whenever it is tried.
class OwnFailure : public UserError {
public:
    using UserError::UserError;
};

Kernel compiled(const Term& nest, const Target& target, const KernelPool& pool) {
    if (fault_here(FaultPlace::compile)) throw std::bad_alloc();
    try {
        return pool.compile(nest, target).kernel;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::system_error&) {
        throw;
    } catch (const std::exception& e) {
        throw OwnFailure(e.what());
    }
}

Subject build(const Term& nest, const std::string& target, const KernelPool& pool) {
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compiled(nest, find_target(target), pool);
    auto loaded = std::make_shared<LoadedKernel>(kernel);
    const auto operands = sample_operands(s, 1);
    auto buffers = std::make_shared<std::vector<GuardedBuffer>>();
    auto addresses = std::make_shared<std::vector<float*>>();
    buffers->reserve(s.buffers.size());
    for (std::size_t b = 0; b < s.buffers.size(); ++b)
        buffers->emplace_back(b == 0 ? std::vector<float>(static_cast<std::size_t>(kernel.parameters[b].elements), 0.0f)
                                     : to_storage(kernel.parameters[b], operands[b]));
    for (GuardedBuffer& b : *buffers) addresses->push_back(b.data());
    (*loaded)(*addresses);
    for (GuardedBuffer& b : *buffers)
        if (!b.intact()) throw OwnFailure("the kernel writes outside its buffers");
    const auto got = from_storage(kernel.parameters[0], (*buffers)[0].span());
    if (std::string wrong = difference(s, got, wanted_output(nest, s, operands)); !wrong.empty()) throw OwnFailure(wrong);
    std::vector<std::pair<std::size_t, std::int64_t>> weights;  // place, floats
    for (std::size_t b = 0; b < s.buffers.size(); ++b)
        if (s.buffers[b].kind == BufferKind::weight) weights.emplace_back(b, kernel.parameters[b].elements);
    return {[loaded, buffers, addresses, weights](ColdWeights* cold) {
        for (const auto& [place, floats] : weights) (*addresses)[place] = cold ? cold->next(floats) : (*buffers)[place].data();
        (*loaded)(*addresses);
    }};
}

// Writes everything that a board needs to check and time the nest, as one file.
void pack(const Term& nest, const std::string& target, const KernelPool& pool, const Json& request) {
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compiled(nest, find_target(target), pool);
    const auto operands = sample_operands(s, 1);
    BoardMessage m =
        pack_candidate(kernel, s, operands, wanted_output(nest, s, operands), {request.at("samples"), request.at("seconds"), request.at("memory")});
    m.add_count("id", request.at("place"));
    if (request.contains("on_board")) m.add("fault", request["on_board"].get<std::string>());
    write_scratch(request.at("file").get<std::string>(), m.encode());
}

std::int64_t batch_of(const std::vector<GraphInput>& inputs) { return inputs.empty() || inputs[0].shape.empty() ? 1 : inputs[0].shape[0]; }

Subject open(const std::string& folder) {
    auto network = std::make_shared<LoadedNetwork>(folder);
    auto memory = std::make_shared<std::vector<AlignedFloats>>();  // the network uses it as it is
    for (const GraphInput& in : network->inputs()) memory->emplace_back(normal_tensor(in.shape, 1, in.name).values);
    for (const GraphInput& out : network->outputs()) memory->emplace_back(static_cast<std::size_t>(element_count(out.shape)));
    auto in = std::make_shared<std::vector<const float*>>();
    auto out = std::make_shared<std::vector<float*>>();
    for (std::size_t i = 0; i < memory->size(); ++i)
        if (i < network->inputs().size())
            in->push_back((*memory)[i].data());
        else
            out->push_back((*memory)[i].data());
    return {[network, memory, in, out](ColdWeights*) { network->run(*in, *out); }, batch_of(network->inputs()),
            [network, memory, in, out] { return network->run_steps(*in, *out); }, network};
}

void infer(LoadedNetwork& network, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
    std::vector<Tensor> in;
    for (const std::string& file : inputs) in.push_back(read_npy(file));
    const std::vector<Tensor> out = network.run(in);
    for (std::size_t i = 0; i < outputs.size(); ++i) write_scratch(outputs[i], write_npy(out.at(i)));
}

// The term of a nest. A text that is no nest is an own failure, on any machine.
Term own_term(const std::string& text) {
    try {
        return complete(parse_term(text));
    } catch (const UserError& e) {
        throw OwnFailure(e.what());
    }
}

Json on_board(const Term& nest, const std::string& target, int samples) {
    const BoardTimes times = measure_over_rpc(nest, find_target(target), samples);
    if (!times.wrong.empty()) throw OwnFailure(times.wrong);
    return {{"ms", times.ms}};
}

// Times every call by itself, for percentiles, and gives the most memory that this process ever held.
Json profile(const Subject& subject, double seconds) {
    for (int i = 0; i < 3; ++i) subject.run(nullptr);
    std::vector<double> ms;
    const double start = monotonic_seconds();
    while (ms.size() < 20 || (monotonic_seconds() - start < seconds && ms.size() < 300)) {  // 300: three calls are beyond the last percentile
        const double t = monotonic_seconds();
        subject.run(nullptr);
        ms.push_back((monotonic_seconds() - t) * 1e3);
    }
    // getrusage would be wrong here: its maximum begins with what the parent held when it forked.
    long peak_kb = 0;
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) peak_kb = std::strtol(line.c_str() + 6, nullptr, 10);
    return {{"ms", ms}, {"batch", subject.batch}, {"peak_kb", peak_kb}};
}

[[noreturn]] void hang() {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}
void commit_fault(const std::string& kind, int reply_fd) {
    if (kind == "crash") abort();
    if (kind == "hang") hang();
    if (kind == "memory") {
        std::vector<std::unique_ptr<char[]>> all;
        for (;;) all.emplace_back(new char[64 << 20]), std::fill_n(all.back().get(), 64 << 20, 1);
    }
    if (kind == "divide") raise(SIGFPE);
    volatile std::uintptr_t nowhere = 16;
    if (kind == "stray") *reinterpret_cast<volatile int*>(nowhere) = 1;
    if (kind == "garbage" && write(reply_fd, "\x01\xff not json {{{\n", 16) < 0) _exit(3);
}

// A worker that hangs does not outlive its parent: when the pipe of requests is closed because the parent is gone, the worker ends at once, and with it
// whatever it started. (The system's own signal for that comes when the thread that started us ends, not when the process ends.)
void die_with_parent() {
    std::thread([parent = getppid()] {
        pollfd requests{0, 0, 0};
        while (poll(&requests, 1, -1) < 0 && errno == EINTR) {
        }
        while (getppid() == parent && (requests.revents & POLLHUP)) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the parent lives
        if (getppid() != parent) {
            if (getpgrp() == getpid()) kill(0, SIGKILL);
            _exit(1);
        }
    }).detach();
}

}  // namespace

int run_worker(int reply_fd, const Confinement& confinement) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 1);
    if (!std::getenv("LOOPEGG_DEBUG")) dup2(null, 2);  // the parent says how a worker ended
    confine(confinement);
    die_with_parent();
    const bool faults = std::getenv("LOOPEGG_FAULTS") != nullptr;
    std::map<std::int64_t, Subject> subjects;
    std::unique_ptr<ColdWeights> cold;  // all candidates share it, because the reads of other candidates push a candidate's weights out of the caches
    for (std::string line; std::getline(std::cin, line);) {
        Json reply{{"ok", true}};
        try {
            const Json request = Json::parse(line);
            const std::int64_t id = request.at("id");
            reply["id"] = id;
            const std::string op = request.at("op");
            if (faults && request.contains("fault")) commit_fault(request["fault"], reply_fd);
            if (op == "build")
                subjects[id] = build(own_term(request.at("nest")), request.at("target"), KernelPool(request.value("pool", "")));
            else if (op == "pack")
                pack(own_term(request.at("nest")), request.at("target"), KernelPool(request.value("pool", "")), request);
            else if (op == "board")
                reply.update(on_board(own_term(request.at("nest")), request.at("target"), request.at("samples")));
            else if (op == "infer")
                infer(*subjects.at(id).network, request.at("inputs"), request.at("outputs"));
            else if (op == "open")
                subjects[id] = open(request.at("folder"));
            else if (op == "time") {
                if (fault_here(FaultPlace::measure)) throw UserError("the timer does not advance");
                const std::int64_t bytes = request.value("cold", std::int64_t{0});
                if (bytes > 0 && (!cold || cold->bytes() != bytes)) cold = std::make_unique<ColdWeights>(bytes);
                const Subject& subject = subjects.at(id);
                const Samples taken = take_samples([&] { subject.run(bytes > 0 ? cold.get() : nullptr); }, request.at("samples"));
                reply["ms"] = taken.ms, reply["clean"] = taken.clean;
            } else if (op == "profile")
                reply.update(profile(subjects.at(id), request.at("seconds")));
            else if (op == "steps") {
                for (int i = 0, runs = request.at("runs"); i < runs; ++i) reply["ms"].push_back(subjects.at(id).run_steps());
            } else if (op == "drop")
                subjects.erase(id);
            else
                throw UserError("unknown request");
        } catch (const OwnFailure& e) {
            reply["ok"] = false, reply["why"] = e.what(), reply["own"] = true;
        } catch (const std::bad_alloc&) {
            reply["ok"] = false, reply["why"] = "out of memory";
        } catch (const std::exception& e) {
            reply["ok"] = false, reply["why"] = e.what();
        }
        const std::string text = reply.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
        for (std::size_t at = 0; at < text.size();) {
            const ssize_t n = write(reply_fd, text.data() + at, text.size() - at);
            if (n <= 0) return 1;
            at += static_cast<std::size_t>(n);
        }
    }
    return 0;
}

}  // namespace loopegg
