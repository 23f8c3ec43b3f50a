// How the boards of targets are: which boards answer, which are away and why, and what each has done. A store keeps this health, so all who use the
// boards see it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "store/address.hpp"

namespace loopegg {

struct BoardHealth {
    std::string target, address;
    bool up = false;
    std::string why{};                           // why the board is away
    std::string cpu{}, conditions{};             // "governor ondemand, 51.2 °C" when the board was last asked
    std::int64_t measured = 0, lost = 0;         // candidates that the board timed; candidates that were lost with it
    double since_seconds = 0, seen_seconds = 0;  // how long ago the board came or went; how long ago it was heard of
};

// What is to be added to what is known of a board.
struct BoardNews {
    bool up = false;
    std::string why{}, cpu{}, conditions{};  // empty: as before
    std::int64_t measured = 0, lost = 0;
};

// Adds to the health of a board. Health is for people, so a write that fails is left out and ends no measurement.
void tell_board_health(const StoreAddress& store, const std::string& target, const std::string& address, const BoardNews& news) noexcept;

// The boards of all targets, ordered by target and address. A store that does not exist yet knows no board.
std::vector<BoardHealth> board_health(const StoreAddress& store);

// "answered 3.0 s ago, governor ondemand, 51.2 °C; 120 timed, 2 lost", "away for 12.0 s: ..."
std::string health_words(const BoardHealth& health);

}  // namespace loopegg
