// One board over ssh. The connection copies the worker there where the board lacks it, starts it, asks it, and leaves it when it does not answer.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "backends/board/board_message.hpp"
#include "backends/target/board_address.hpp"
#include "backends/target/machine_facts.hpp"
#include "base/error.hpp"

namespace loopegg {

// A board cannot be used now. A `lasting` one will not come back by itself: its key is unknown, ssh may not enter, or its architecture is another.
class BoardAway : public UserError {
public:
    BoardAway(Diagnostic d, bool lasting) : UserError(std::move(d)), lasting_(lasting) {}
    bool lasting() const { return lasting_; }

private:
    bool lasting_;
};

// What a board says when it is greeted.
struct BoardHello {
    MachineFacts facts{};
    std::string conditions{};  // "governor ondemand, 51.2 °C", as far as it tells
};

class BoardConnection {
public:
    explicit BoardConnection(BoardAddress address) : address_(std::move(address)) {}
    ~BoardConnection() { close(); }
    BoardConnection(const BoardConnection&) = delete;
    BoardConnection& operator=(const BoardConnection&) = delete;

    // Asks the board for its architecture, as 'uname -m' says it. Throws BoardAway.
    std::string architecture();
    // Starts the worker there. Throws BoardAway, also when `over` becomes true meanwhile.
    BoardHello open(const std::string& architecture, const std::filesystem::path& worker, const std::atomic<bool>* over = nullptr);
    bool is_open() const { return pid_ > 0; }
    // Sends a whole message and waits for the answer to it. Every 'state busy' begins the time anew. Throws BoardAway after it closed the connection.
    BoardMessage ask(const std::string& message, const std::string& id, double seconds, const std::function<void()>& busy = {});
    void close();
    const BoardAddress& address() const { return address_; }

private:
    void start(const std::string& command);
    // `copied`: on the way in, the worker is copied whatever lies there; on the way out, no copy that lay there was started.
    BoardHello greeted(const std::string& architecture, const std::string& name, const std::string& bytes, bool& copied);
    std::string line(double deadline);  // that begins with 'loopegg: ', without it
    void send(std::string_view bytes, double deadline);
    bool receive(double deadline);                   // more bytes; false: none will come
    [[noreturn]] void lost(const std::string& why);  // says it with what ssh said, and closes

    BoardAddress address_;
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1, errors_ = -1;
    std::string pending_, said_;
    const std::atomic<bool>* over_ = nullptr;
};

// "governor ondemand, 51.2 °C" of a message; "" where the board's system tells neither.
std::string conditions_of(const BoardMessage& m);

}  // namespace loopegg
