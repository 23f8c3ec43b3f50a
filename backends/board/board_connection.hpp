// One board over ssh. The connection copies the worker to a board that lacks it, starts the worker, asks it, and gives it up when it does not answer.
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

#include <nlohmann/json.hpp>

namespace loopegg {

// A board cannot be used now. A `lasting` fault does not pass by itself: the board's key is unknown, ssh may not log in, or the architecture is another one.
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
    std::string conditions{};  // "governor ondemand, 51.2 °C", as far as the board reports it
};

class BoardConnection {
public:
    explicit BoardConnection(BoardAddress address) : address_(std::move(address)) {}
    ~BoardConnection() { close(); }
    BoardConnection(const BoardConnection&) = delete;
    BoardConnection& operator=(const BoardConnection&) = delete;

    // Asks the board for its architecture, as 'uname -m' says it. Throws BoardAway.
    std::string architecture();
    // Starts the worker on the board. Throws BoardAway, also when `over` becomes true meanwhile.
    BoardHello open(const std::string& architecture, const std::filesystem::path& worker, const std::atomic<bool>* over = nullptr);
    bool is_open() const { return pid_ > 0; }
    // Sends a whole message and waits for the answer to it. Every 'state busy' starts the time limit again. Closes the connection before it throws BoardAway.
    BoardMessage ask(const std::string& message, const std::string& id, double seconds, const std::function<void()>& busy = {});
    void close();
    const BoardAddress& address() const { return address_; }

private:
    void start(const std::string& command);
    // `copied`: true on entry copies the worker even if the board has one; true on return says that the worker was copied and no older copy was started.
    BoardHello greeted(const std::string& architecture, const std::string& name, const std::string& bytes, bool& copied);
    std::string line(double deadline);  // the next line that begins with 'loopegg: ', without these words
    void send(std::string_view bytes, double deadline);
    bool receive(double deadline);                   // more bytes; false: none will come
    [[noreturn]] void lost(const std::string& why);  // closes the connection and throws BoardAway with `why` and what ssh said

    BoardAddress address_;
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1, errors_ = -1;
    std::string pending_, said_;
    const std::atomic<bool>* over_ = nullptr;
};

// "governor ondemand, 51.2 °C" of a message; "" where the board's system reports neither.
std::string conditions_of(const BoardMessage& m);

// Turns what a board says about itself into the target that code for the board is compiled for.

// The members "tvm" and "machine" of a target's file. Throws UserError for an architecture that loopegg does not compile for.
nlohmann::json target_of_board(const MachineFacts& facts);

}  // namespace loopegg
