#include "backends/board/board_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backends/board/build_worker.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/progress.hpp"
#include "base/quote.hpp"
#include "base/team.hpp"
#include "extract/measurer.hpp"

namespace loopegg {
namespace {

constexpr int max_losses = 3;         // a candidate with which one board after another goes away is at fault, though that cannot be proven
constexpr int max_failures = 2;       // a board that paused for a while makes a candidate late once, and hardly twice
constexpr double slack_seconds = 30;  // for the way to the board and back
constexpr double longest_pause = 15;  // between two tries to reach a board that is away

BoardAnswer lost_answer(std::string why) {
    BoardAnswer a;
    a.why = std::move(why);
    return a;
}

}  // namespace

struct BoardPool::Board {
    explicit Board(BoardAddress a) : connection(std::move(a)) {}
    BoardConnection connection;
    std::string why{};  // why the board is away
    std::string hint{};
    bool lasting = false;
    int tries = 0;              // tries in vain to reach the board, one after another
    std::int64_t measured = 0;  // candidates that are not in the store yet
    double reported = 0;
};

// One call of run, as its threads see it.
struct BoardPool::Run {
    struct Ready {
        std::size_t candidate;
        std::filesystem::path package;
        int losses = 0;    // boards that went away with the candidate
        int failures = 0;  // failures of the candidate itself, as far as a board can determine
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Ready> ready;
    std::size_t next = 0, open = 0;  // the next candidate to pack; how many have no answer yet
    std::size_t in_flight = 0;
    bool stopping = false;
    std::atomic<bool> over{false};       // nobody needs to be reached any more
    double heard = monotonic_seconds();  // when a board last answered
    std::exception_ptr failure{};
    std::function<void(std::size_t, const BoardAnswer&)> answer{};

    void settle(std::size_t candidate, const BoardAnswer& a) {  // call it with the mutex held
        answer(candidate, a);
        done();
    }
    void done() {  // the same
        over = --open == 0;
        changed.notify_all();
    }
    void stop() {  // the same
        stopping = over = true;
        changed.notify_all();
    }
    void fail(std::exception_ptr e) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::move(e);
        stop();
    }
};

BoardPool::BoardPool(const Target& target, BoardPoolOptions options) : target_(target), options_(std::move(options)) {
    for (const BoardAddress& a : target.boards) boards_.push_back(std::make_unique<Board>(a));
}
BoardPool::~BoardPool() {
    for (auto& b : boards_)
        if (b->measured) tell(*b, {true, "", "", "", b->measured, 0});
}

void BoardPool::note(const std::string& line) {
    std::lock_guard lock(notes_);
    if (options_.note) options_.note(line);
}

void BoardPool::tell(Board& board, const BoardNews& news) {
    board.reported = monotonic_seconds();
    tell_board_health(options_.store, target_.name, board.connection.address().words(), news);
}

bool BoardPool::connect(Board& board, Run* run) {
    if (board.connection.is_open()) return true;
    try {
        const BoardHello hello = board.connection.open(target_.architecture(), worker_, run ? &run->over : nullptr);
        if (board.tries > 0) note(fmt::format("board {} is back", board.connection.address().words()));
        board.why.clear(), board.hint.clear(), board.lasting = false, board.tries = 0;
        tell(board, {true, "", hello.facts.cpu, hello.conditions, 0, 0});
        if (run) {
            std::lock_guard lock(run->mutex);
            run->heard = monotonic_seconds();
        }
        return true;
    } catch (const BoardAway& e) {
        if (run && run->over) return false;
        const Diagnostic& d = e.diagnostics().front();
        if (board.tries++ == 0) note(fmt::format("{}; {}", d.message, e.lasting() ? "it is left out" : "it is tried again now and then"));
        board.why = d.message, board.hint = d.hint, board.lasting = e.lasting();
        tell(board, {false, d.message, "", "", 0, 0});
        return false;
    }
}

void BoardPool::open() {
    if (worker_.empty()) worker_ = board_worker_program(target_.architecture());
    const auto reached = [](const auto& b) { return b->connection.is_open(); };
    if (std::any_of(boards_.begin(), boards_.end(), reached)) return;
    run_together(boards_.size(), [this](std::size_t i) { connect(*boards_[i], nullptr); });
    if (std::any_of(boards_.begin(), boards_.end(), reached)) return;
    std::vector<Diagnostic> all;
    for (auto& b : boards_) all.push_back({b->why, {}, b->hint});
    throw UserError(all);
}

BoardAnswer BoardPool::ask(Board& board, const std::filesystem::path& package, const std::string& id, Run& run) {
    const BoardMessage m = board.connection.ask(read_file(package), id, options_.seconds + slack_seconds, [&] {
        std::lock_guard lock(run.mutex);
        run.heard = monotonic_seconds();
    });
    try {
        BoardAnswer a;
        const std::string state = m.text("state");
        a.conditions = conditions_of(m);
        a.machine = fmt::format("board {}{}{}", board.connection.address().words(), a.conditions.empty() ? "" : ", ", a.conditions);
        if (state == "timed") {
            for (const std::string& word : m.all("ms")) {
                const double ms = BoardMessage{{{"ms", word}}, {}}.number("ms", -1);
                if (!is_valid_latency(ms, 0, 1)) throw BadMessage("an impossible time: " + word.substr(0, 40) + " ms");
                a.ms.push_back(ms);
            }
            if (a.ms.empty()) throw BadMessage("no times");
            a.clean = static_cast<int>(m.count("clean", 10000));
            ++board.measured;
            return a;
        }
        a.why = terminal_text(m.text("why").substr(0, 500)), a.own = state == "wrong", a.moment = state == "died" || state == "late";
        if (a.why.empty()) throw BadMessage("neither times nor why there are none");
        if (a.moment) a.why += fmt::format(" (board {})", board.connection.address().words());
        return a;
    } catch (const BadMessage& e) {
        board.connection.close();
        throw BoardAway({fmt::format("board {} gives {}", board.connection.address().words(), terminal_text(e.what()))}, false);
    }
}

// Serves one board during a run: reaches the board, takes a candidate, asks about it and gives the answer. When the board goes away, gives the candidate
// back.
void BoardPool::serve(Board& board, Run& run) {
    for (;;) {
        if (!connect(board, &run)) {
            const double pause = board.lasting ? longest_pause : std::min(longest_pause, 0.5 * static_cast<double>(1 << std::min(board.tries, 5)));
            std::unique_lock lock(run.mutex);
            run.changed.wait_for(lock, std::chrono::duration<double>(pause), [&] { return run.stopping || run.open == 0; });
            if (run.stopping || run.open == 0) return;
            continue;
        }
        Run::Ready it;
        {
            std::unique_lock lock(run.mutex);
            run.changed.wait(lock, [&] { return run.stopping || run.open == 0 || !run.ready.empty(); });
            if (run.stopping || run.open == 0) return;
            it = std::move(run.ready.front());
            run.ready.pop_front();
            ++run.in_flight;
            run.changed.notify_all();
        }
        const double start = monotonic_seconds();
        try {
            BoardAnswer a = ask(board, it.package, std::to_string(it.candidate), run);
            a.seconds = monotonic_seconds() - start;
            if (monotonic_seconds() - board.reported > 5) tell(board, {true, "", "", a.conditions, std::exchange(board.measured, 0), 0});
            std::lock_guard lock(run.mutex);
            --run.in_flight, run.heard = monotonic_seconds();
            if (a.moment && ++it.failures < max_failures)
                run.ready.push_back(std::move(it)), run.changed.notify_all();
            else
                run.settle(it.candidate, a);
        } catch (const BoardAway& e) {
            const std::string why = e.diagnostics().front().message;
            board.why = why, board.hint = e.diagnostics().front().hint, board.lasting = false, board.tries = 1;
            note(fmt::format("{}; its candidate is measured elsewhere or later", why));
            tell(board, {false, why, "", "", std::exchange(board.measured, 0), 1});
            std::lock_guard lock(run.mutex);
            --run.in_flight;
            if (++it.losses >= max_losses) {
                run.settle(it.candidate, lost_answer(fmt::format("{} times a board went away while it ran this, the last time so: {}", it.losses, why)));
                continue;
            }
            run.ready.push_front(std::move(it));
            run.changed.notify_all();
        } catch (...) {
            run.fail(std::current_exception());
            return;
        }
    }
}

void BoardPool::run(std::size_t count, int packers, const std::function<std::optional<std::filesystem::path>(std::size_t, int)>& pack,
                    const std::function<void(std::size_t, const BoardAnswer&)>& answer) {
    if (count == 0) return;
    open();
    Run run;
    run.open = count, run.answer = answer;
    const std::size_t max_ready = 2 * boards_.size() + 2;  // packed ahead, so that no board waits for a compiler
    std::vector<std::jthread> team;                        // joined however this ends
    const auto start = [&](auto work) {
        try {
            team.emplace_back(work);
        } catch (const std::system_error&) {
            run.fail(std::current_exception());
        }
    };
    for (int p = 0; p < packers; ++p)
        start([&, p] {
            for (;;) try {
                    std::size_t mine = 0;
                    {
                        std::unique_lock lock(run.mutex);
                        run.changed.wait(lock, [&] { return run.stopping || run.next == count || run.ready.size() < max_ready; });
                        if (run.stopping || run.next == count) return;
                        mine = run.next++;
                    }
                    auto package = pack(mine, p);
                    std::lock_guard lock(run.mutex);
                    if (package)
                        run.ready.push_back({mine, std::move(*package)}), run.changed.notify_all();
                    else
                        run.done();
                } catch (...) {
                    return run.fail(std::current_exception());
                }
        });
    for (auto& b : boards_) start([&, board = b.get()] { serve(*board, run); });
    {
        std::unique_lock lock(run.mutex);
        while (!run.stopping && run.open > 0) {
            run.changed.wait_for(lock, std::chrono::seconds(1), [&] { return run.stopping || run.open == 0; });
            // A working board is silent while a candidate runs. The time of patience runs only while no board works.
            if (run.in_flight > 0 || run.ready.empty()) run.heard = monotonic_seconds();
            if (run.stopping || run.open == 0 || monotonic_seconds() - run.heard < options_.patience) continue;
            run.failure = std::make_exception_ptr(UserError(
                Diagnostic{fmt::format("no board of target '{}' has answered for {}", target_.name, human_seconds(options_.patience)),
                           {},
                           "'loopegg targets check " + target_.name + "' shows why; what was measured is kept, and the same command resumes from there"}));
            run.stop();
        }
    }
    team.clear();
    if (run.failure) std::rethrow_exception(run.failure);
}

}  // namespace loopegg
