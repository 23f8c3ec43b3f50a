// Asks TVM's RPC tracker from C++. The tracker knows which boards are free and answers with the address of one.
#pragma once
#include <string>

namespace loopegg {

struct RpcServer {
    std::string host;
    int port = 0;
    std::string key;  // what the server expects to be greeted with
};

// Waits until the tracker at host:port has a server for the key. Throws UserError when nothing answers there.
RpcServer ask_tracker(const std::string& host, int port, const std::string& key, double seconds = 60);

}  // namespace loopegg
