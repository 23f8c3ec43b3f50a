// The boards of one target. The pool hands each candidate to a board that is free. When a board goes away, time is lost, but no candidate.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/board/board_connection.hpp"
#include "backends/target/target.hpp"
#include "store/address.hpp"
#include "store/board_health.hpp"

namespace loopegg {

// What a board answered about one candidate.
struct BoardAnswer {
    std::vector<double> ms{};
    int clean = 0;
    std::string why{};         // why there are no times
    bool own = false;          // the candidate itself is wrong, on every board
    bool moment = false;       // the candidate's process died or was late, which may be the board's fault: another try shows it
    std::string conditions{};  // "governor ondemand, 51.2 °C"
    std::string machine{};     // "board pi@10.0.0.7, governor ondemand, 51.2 °C"
    double seconds = 0;        // that the board took
};

struct BoardPoolOptions {
    StoreAddress store{};                                 // keeps the boards' health
    double seconds = 60;                                  // for one candidate on a board
    double patience = 120;                                // seconds to wait while no board answers; then the run ends
    std::function<void(const std::string& line)> note{};  // what a waiting person should know; called by one thread at a time
};

class BoardPool {
public:
    BoardPool(const Target& target, BoardPoolOptions options);
    ~BoardPool();

    // Connects to every board, and builds the worker. Throws UserError unless at least one board answers.
    void open();

    // Asks about the candidates 0 to count-1. `pack` prepares a candidate: it gives a file with a request (board_trial.hpp) whose id is the candidate's
    // number, or none where there is nothing to ask. `packers` threads call `pack` at once, each with its own number. One thread at a time calls `answer`. A
    // candidate whose board went away is given to another board, three times at most. A candidate that died or was late is tried once more. Throws UserError
    // when no board answers for `patience` seconds, and whatever `pack` throws.
    void run(std::size_t count, int packers, const std::function<std::optional<std::filesystem::path>(std::size_t candidate, int packer)>& pack,
             const std::function<void(std::size_t candidate, const BoardAnswer&)>& answer);

    std::size_t size() const { return boards_.size(); }

private:
    struct Board;
    struct Run;
    void serve(Board& board, Run& run);
    BoardAnswer ask(Board& board, const std::filesystem::path& package, const std::string& id, Run& run);
    bool connect(Board& board, Run* run);  // false: the board is away
    void tell(Board& board, const BoardNews& news);
    void note(const std::string& line);

    const Target target_;
    BoardPoolOptions options_;
    std::filesystem::path worker_;
    std::vector<std::unique_ptr<Board>> boards_;
    std::mutex notes_;
};

}  // namespace loopegg
