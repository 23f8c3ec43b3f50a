// What a run came to, from its network to what the last measurement says.
#pragma once
#include "optimize/answer/confirm.hpp"
#include "optimize/run/run.hpp"
#include "optimize/search/find_networks.hpp"

namespace loopegg {

struct Answer {
    const Run& run;
    const FoundNetworks& found;
    const FoundNetwork* chosen;  // null: no network was better than the original
    const Tuning& original_tuning;
    const Tuning& tuning;  // of the chosen network
    const Confirmed& confirmed;

    const Network& returned() const { return confirmed.keep_original ? run.read.network : chosen->network; }
    const Tuning& returned_tuning() const { return confirmed.keep_original ? original_tuning : tuning; }
    const Trainings& trainings() const { return found.trainings.lines.empty() ? run.read.trainings : found.trainings; }
    const Derivation* derivation() const { return confirmed.keep_original ? nullptr : &chosen->derivation; }
};

// result.json without `seconds`: everything else that docs/reference/formats.md names.
nlohmann::json result_of(const Answer& answer);

// Every file of the out folder next to result.json, which is `result`.
void write_out(const Answer& answer, const nlohmann::json& result);

// For every target but the one that was searched on: the original and the network that is extracted by the target's
// estimates, compiled. result.json's "targets".
nlohmann::json compile_for_others(const Answer& answer);

}  // namespace loopegg
