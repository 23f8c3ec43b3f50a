#include "backends/kernel/on_team.hpp"

#include <new>

#include "backends/runtime/loopegg_runtime.h"

namespace loopegg {
namespace {

// It stays until the process ends, because its threads wait inside it.
loopegg_team* team() {
    static loopegg_team* const all = [] {
        loopegg_team* made = loopeggrt_team_create(0);
        if (!made) throw std::bad_alloc();
        return made;
    }();
    return all;
}

}  // namespace

OnTeam::OnTeam(std::int64_t turns) : inside_(loopeggrt_team_enter(team()) != 0) {
    if (inside_) loopeggrt_team_turns(team(), turns);
}
OnTeam::~OnTeam() {
    if (inside_) loopeggrt_team_leave(team());
}

}  // namespace loopegg
