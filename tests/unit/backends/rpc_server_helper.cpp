// A TVM RPC server in C++ for one client, as TVM's Python server would be: prints its port, serves, ends.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "backends/lower/tvm_adapter.hpp"

using namespace loopegg;

namespace {

bool receive(int from, void* to, std::size_t bytes) {
    for (char* at = static_cast<char*>(to); bytes > 0;) {
        const ssize_t n = read(from, at, bytes);
        if (n <= 0) return false;
        at += n, bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    tv::load();
    const std::string folder = std::string(argv[1]) + "/";
    tv::ffi::Function::SetGlobal("tvm.rpc.server.workpath",
                                 tv::ffi::Function::FromTyped([folder](tv::ffi::String f) { return tv::ffi::String(folder + std::string(f)); }), true);
    tv::ffi::Function::SetGlobal("tvm.rpc.server.load_module",
                                 tv::ffi::Function::FromTyped([folder](tv::ffi::String f) { return tv::ffi::Module::LoadFromFile(folder + std::string(f)); }),
                                 true);
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listening, reinterpret_cast<sockaddr*>(&address), size) || listen(listening, 1) ||
        getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size))
        return 1;
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    const int client = accept(listening, nullptr, nullptr);
    std::int32_t magic = 0, length = 0;
    if (!receive(client, &magic, 4) || !receive(client, &length, 4)) return 1;
    std::string key(static_cast<std::size_t>(length), 0);
    if (!receive(client, key.data(), key.size())) return 1;
    const std::int32_t accepted = 0xFF271;
    const std::string name = "server:";
    length = static_cast<std::int32_t>(name.size());
    if (write(client, &accepted, 4) < 0 || write(client, &length, 4) < 0 || write(client, name.data(), name.size()) < 0) return 1;
    tv::ffi::Function::GetGlobalRequired("rpc.ServerLoop")(client);
    return 0;
}
