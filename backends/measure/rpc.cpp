#include "backends/measure/rpc.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cstdint>
#include <cstring>
#include <string>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/tvm_adapter.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"
#include "extract/measurer.hpp"
#include "nest/term/grammar.hpp"

#include <nlohmann/json.hpp>

namespace loopegg {
namespace {

// Asks TVM's RPC tracker from C++. The tracker knows which boards are free and answers with the address of one.

struct RpcServer {
    std::string host;
    int port = 0;
    std::string key;  // what the server expects to be greeted with
};

constexpr std::int32_t tracker_magic = 0x2f271;
enum TrackerCode { success = 0, request = 4 };  // tvm/rpc/base.py

class Connection {
public:
    Connection(const std::string& host, int port, double seconds) : where_(host + ":" + std::to_string(port)) {
        addrinfo hints{}, *all = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &all) != 0) fail("the host is not known");
        for (const addrinfo* a = all; a && socket_ < 0; a = a->ai_next) {
            socket_ = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
            if (socket_ >= 0 && connect(socket_, a->ai_addr, a->ai_addrlen) != 0) close(socket_), socket_ = -1;
        }
        freeaddrinfo(all);
        if (socket_ < 0) fail("nothing answers there");
        const timeval limit{static_cast<time_t>(seconds), 0};
        setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    ~Connection() {
        if (socket_ >= 0) close(socket_);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void send(const void* from, std::size_t bytes) const {
        for (const char* at = static_cast<const char*>(from); bytes > 0;) {
            const ssize_t n = ::send(socket_, at, bytes, MSG_NOSIGNAL);
            if (n <= 0) fail("the connection broke");
            at += n, bytes -= static_cast<std::size_t>(n);
        }
    }
    void receive(void* to, std::size_t bytes) const {
        for (char* at = static_cast<char*>(to); bytes > 0;) {
            const ssize_t n = recv(socket_, at, bytes, 0);
            if (n <= 0) fail("no answer: is a server with this key registered and free?");
            at += n, bytes -= static_cast<std::size_t>(n);
        }
    }
    [[noreturn]] void fail(const std::string& why) const { throw UserError("the TVM RPC tracker at " + where_ + ": " + why); }

private:
    std::string where_;
    int socket_ = -1;
};

// Waits until the tracker at host:port has a server for the key. Throws UserError when nothing answers there.
RpcServer ask_tracker(const std::string& host, int port, const std::string& key, double seconds = 60) {
    const Connection tracker(host, port, seconds);
    std::int32_t magic = tracker_magic, length = 0;
    tracker.send(&magic, sizeof magic);
    tracker.receive(&magic, sizeof magic);
    if (magic != tracker_magic) tracker.fail("it is no tracker");
    const std::string question = nlohmann::json::array({request, key, "", 1}).dump();
    length = static_cast<std::int32_t>(question.size());
    tracker.send(&length, sizeof length);
    tracker.send(question.data(), question.size());
    tracker.receive(&length, sizeof length);
    if (length < 0 || length > 1 << 20) tracker.fail("it answers nonsense");
    std::string answer(static_cast<std::size_t>(length), 0);
    tracker.receive(answer.data(), answer.size());
    try {
        const auto j = nlohmann::json::parse(answer);
        if (j.at(0).get<int>() != success) tracker.fail("it has nothing for the key '" + key + "'");
        return {j.at(1).at(0), j.at(1).at(1), j.at(1).at(2)};
    } catch (const nlohmann::json::exception&) {
        tracker.fail("it answers nonsense");
    }
}

namespace ffi = tv::ffi;
using tv::Fn;

// Links the object to a shared library of its own architecture. LLVM's linker links for any architecture, GNU's for this machine alone.
std::string shared_library(const std::string& object) {
    ScratchFile from(".o"), to(".so");
    write_scratch(from.path(), object);
    const std::string linker = elf_architecture(object) == native_architecture() ? "ld" : "ld.lld";
    run_or_throw({linker, "-shared", "-o", to.path().string(), from.path().string()}, "linking for " + elf_architecture(object));
    return read_file(to.path());
}

// HOST:PORT is a server. HOST:PORT/KEY is a tracker, which names a free server of that key.
RpcServer server_of(const Target& target) {
    const auto slash = target.address.find('/');
    const auto parts = split(target.address.substr(0, slash), ':');
    const int port = parts.size() == 2 ? number_in<int>(parts[1]).value_or(0) : 0;
    if (port <= 0) throw UserError("the address of target '" + target.name + "' is '" + target.address + "', expected HOST:PORT or HOST:PORT/KEY");
    if (slash == target.address.npos) return {parts[0], port, ""};
    return ask_tracker(parts[0], port, target.address.substr(slash + 1));
}

ffi::Module connect(const Target& target) {
    const RpcServer server = server_of(target);
    try {
        return tv::call(Fn::rpc_connect, server.host, server.port, server.key, false).cast<ffi::Module>();
    } catch (const std::exception& e) {
        throw UserError("no TVM RPC server answers at " + target.address + " (target '" + target.name + "'): " + tv::brief(e));
    }
}

}  // namespace

BoardTimes measure_over_rpc(const Term& given, const Target& target, int samples) {
    Kernel kernel;
    const Term nest = complete(given);
    const Statement s = statement_of(nest_parts(nest).statement);
    try {
        kernel = compile_nest(nest, target, "candidate");
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return {{}, e.what()};
    }
    const ffi::Module session = connect(target);
    try {
        const std::string library = shared_library(kernel.code);
        (*session->GetFunction("tvm.rpc.server.upload"))("candidate.so", ffi::Bytes(library));
        const auto module = tv::call(Fn::rpc_load, session, "candidate.so").cast<ffi::Module>();
        const int index = tv::call(Fn::rpc_index, session).cast<int>();
        const DLDevice device{static_cast<DLDeviceType>(kDLCPU + (index + 1) * 128), 0};
        const auto operands = sample_operands(s, 1);
        std::vector<ffi::Tensor> tensors;
        std::vector<tv::Any> arguments;
        for (std::size_t b = 0; b < s.buffers.size(); ++b) {
            const std::vector<std::int64_t> shape = kernel.parameters[b].readers.empty() ? s.buffers[b].stored_shape() : Shape{kernel.parameters[b].elements};
            tensors.push_back(tv::call(Fn::tensor_alloc, ffi::Shape(shape), ffi::StringToDLDataType("float32"), device, nullptr).cast<ffi::Tensor>());
            std::vector<float> values =
                b == 0 ? std::vector<float>(static_cast<std::size_t>(kernel.parameters[b].elements), 0.0f) : to_storage(kernel.parameters[b], operands[b]);
            tv::call(Fn::tensor_from_bytes, tensors.back(), static_cast<void*>(values.data()), static_cast<std::int64_t>(values.size() * sizeof(float)));
            arguments.emplace_back(tensors.back());
        }
        std::vector<ffi::AnyView> views(arguments.begin(), arguments.end());
        tv::Any nothing;
        (*module->GetFunction("candidate")).CallPacked(views.data(), static_cast<std::int32_t>(views.size()), &nothing);
        std::vector<float> got(static_cast<std::size_t>(kernel.parameters[0].elements));
        tv::call(Fn::tensor_to_bytes, tensors[0], static_cast<void*>(got.data()), static_cast<std::int64_t>(got.size() * sizeof(float)));
        if (std::string wrong = difference(s, from_storage(kernel.parameters[0], got), reference_output(nest, operands)); !wrong.empty()) return {{}, wrong};
        const auto evaluator =
            tv::call(Fn::time_evaluator, module, "candidate", static_cast<int>(device.device_type), 0, 1, samples, 2, 100, 0, 1, 0, "").cast<ffi::Function>();
        tv::Any raw;
        evaluator.CallPacked(views.data(), static_cast<std::int32_t>(views.size()), &raw);
        const std::string bytes = raw.cast<ffi::Bytes>();
        std::vector<double> ms;
        for (std::size_t at = 0; at + sizeof(double) <= bytes.size(); at += sizeof(double)) {
            double seconds = 0;
            std::memcpy(&seconds, bytes.data() + at, sizeof seconds);
            ms.push_back(seconds * 1e3);
        }
        if (ms.empty()) throw UserError("it gave no times");
        for (double t : ms)
            if (!is_valid_latency(t, 0, 1)) throw UserError("it gave an impossible time: " + std::to_string(t) + " ms");
        return {ms, ""};
    } catch (const ffi::Error& e) {
        throw UserError(tv::brief(e));
    }
}

}  // namespace loopegg
