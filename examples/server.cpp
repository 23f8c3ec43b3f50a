// Serves a network that 'loopegg compile MODEL --out DIR' wrote over HTTP: POST the inputs as raw float32 numbers, one
// input after another, and the answer holds
// the outputs in the same way. Each worker thread has a context of its own, and all read the same weights.
//   c++ -std=c++17 -O2 -pthread -IDIR examples/server.cpp DIR/network.so -Wl,-rpath,$PWD/DIR -o server && ./server DIR/weights.bin 8080
// It listens on this machine alone. It prints the port (port 0: any that is free), and ends with its process.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "network.h"

namespace {

using Floats = std::vector<float>;

struct Tensors {
    std::vector<Floats> all;
    std::size_t bytes = 0;

    Tensors(int count, long (*size)(int)) {
        for (int i = 0; i < count; ++i) all.emplace_back(static_cast<std::size_t>(size(i))), bytes += all.back().size() * sizeof(float);
    }
};

bool send_all(int to, const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t sent = send(to, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += static_cast<std::size_t>(sent);
    }
    return true;
}

bool answer(int to, const char* status, const std::string& body) {
    return send_all(to, "HTTP/1.1 " + std::string(status) + "\r\nContent-Type: application/octet-stream\r\nContent-Length: " + std::to_string(body.size()) +
                            "\r\n\r\n" + body);
}

// One caller: its context, and the memory of its requests.
class Caller {
public:
    Caller(loopegg_network* network, int threads)
        : context_(LOOPEGG_NAME(create)(network, threads)),
          in_(LOOPEGG_NAME(inputs)(), LOOPEGG_NAME(input_size)),
          out_(LOOPEGG_NAME(outputs)(), LOOPEGG_NAME(output_size)) {}
    ~Caller() { LOOPEGG_NAME(destroy)(context_); }

    // Answers requests of one connection until the other side ends it, or sends what cannot be understood.
    void serve(int connection) {
        std::string got;
        while (context_ && one_request(connection, got)) {
        }
        close(connection);
    }

private:
    bool receive(int from, std::string& got) {
        char bytes[1 << 16];
        const ssize_t count = recv(from, bytes, sizeof bytes, 0);
        if (count > 0) got.append(bytes, static_cast<std::size_t>(count));
        return count > 0;
    }

    bool one_request(int connection, std::string& got) {
        std::size_t end = 0;
        while ((end = got.find("\r\n\r\n")) == std::string::npos)
            if (got.size() > 1 << 14 || !receive(connection, got)) return false;
        std::string head = got.substr(0, end);
        std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const std::size_t length = head.find("content-length:");
        if (length == std::string::npos || std::strtoull(head.c_str() + length + 15, nullptr, 10) != in_.bytes)
            return answer(connection, "400 Bad Request", "POST " + std::to_string(in_.bytes) + " bytes of float32 numbers\n"), false;
        while (got.size() < end + 4 + in_.bytes)
            if (!receive(connection, got)) return false;
        const bool done = answer(connection, "200 OK", outputs_for(got.data() + end + 4));
        got.erase(0, end + 4 + in_.bytes);
        return done;
    }

    std::string outputs_for(const char* bytes) {
        std::vector<const float*> from;
        std::vector<float*> to;
        for (Floats& values : in_.all) {
            std::memcpy(values.data(), bytes, values.size() * sizeof(float));
            bytes += values.size() * sizeof(float);
            from.push_back(values.data());
        }
        for (Floats& values : out_.all) to.push_back(values.data());
        LOOPEGG_NAME(run)(context_, from.data(), to.data());
        std::string body;
        for (const Floats& values : out_.all) body.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
        return body;
    }

    loopegg_context* context_;
    Tensors in_, out_;
};

int listen_on(unsigned short port) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    sockaddr_in here{};
    here.sin_family = AF_INET, here.sin_port = htons(port), here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    socklen_t size = sizeof here;
    if (bind(listener, reinterpret_cast<sockaddr*>(&here), size) || listen(listener, 64)) return std::perror("cannot listen"), -1;
    getsockname(listener, reinterpret_cast<sockaddr*>(&here), &size);
    std::printf("listening on 127.0.0.1:%d\n", ntohs(here.sin_port));
    std::fflush(stdout);
    return listener;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3 || argc > 5) return std::fprintf(stderr, "usage: server weights.bin PORT [CALLERS] [THREADS_OF_A_CALL]\n"), 2;
    const int callers = argc > 3 ? std::max(1, std::atoi(argv[3])) : 8, threads = argc > 4 ? std::atoi(argv[4]) : 0;
    loopegg_network* network = LOOPEGG_NAME(open)(argv[1]);
    if (!network) return std::fprintf(stderr, "cannot open %s\n", argv[1]), 1;
    const int listener = listen_on(static_cast<unsigned short>(std::atoi(argv[2])));
    if (listener < 0) return 1;
    std::vector<std::thread> all;
    for (int i = 0; i < callers; ++i)
        all.emplace_back([&] {
            Caller caller(network, threads);
            for (int connection; (connection = accept(listener, nullptr, nullptr)) >= 0;) caller.serve(connection);
        });
    for (std::thread& t : all) t.join();
    LOOPEGG_NAME(close)(network);
}
