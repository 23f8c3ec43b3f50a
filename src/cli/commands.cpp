#include "cli/commands.hpp"

namespace loopegg {

const std::vector<Command>& commands() {
    static const std::vector<Command> all{
        targets_command,
        extract_command,
        term_command,
    };
    return all;
}

}  // namespace loopegg
