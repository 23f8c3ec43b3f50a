// Where a board is that ssh reaches: [USER@]HOST[:PORT], as a person types it.
#pragma once
#include <optional>
#include <string>

namespace loopegg {

struct BoardAddress {
    std::string user, host;  // host: a name, an alias of ssh's configuration, or a number; IPv6 is in brackets when a port follows
    int port = 0;            // 0: as ssh's configuration says
    std::string words() const;
};

// None for a text that is no address. A text that ssh could take for an option is no address.
std::optional<BoardAddress> parse_board_address(const std::string& text);

}  // namespace loopegg
