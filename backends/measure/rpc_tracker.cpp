#include "backends/measure/rpc_tracker.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace loopegg {
namespace {

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

}  // namespace

RpcServer ask_tracker(const std::string& host, int port, const std::string& key, double seconds) {
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

}  // namespace loopegg
