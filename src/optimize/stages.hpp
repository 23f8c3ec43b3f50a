// What each stage of the pipeline hands to the next.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/kernel/kernel_shelf.hpp"
#include "backends/network/network.hpp"
#include "fisher/oracle.hpp"
#include "graph/carry_weights.hpp"
#include "graph/graph.hpp"
#include "nest/plan/plan.hpp"
#include "optimize/choose.hpp"
#include "optimize/class_rules.hpp"
#include "optimize/discover.hpp"
#include "optimize/objective.hpp"
#include "optimize/optimize.hpp"
#include "optimize/sites.hpp"
#include "optimize/trainings.hpp"
#include "optimize/tune.hpp"

namespace loopegg {

// The network as read.
struct Input {
    Graph graph;
    Weights weights;       // complete: drawn from the seed where the model has none
    bool trained = false;  // the model has weights of its own
    Sites sites;
    Trainings trainings{};  // what the guard has learned from
    // Where rules over several sites made this network from another: the network that was read, the steps, and what the guard says of the steps.
    const Input* read = nullptr;
    Plan plan{};
    nlohmann::json proof{};  // of the steps (network_proof.hpp)
    Verdict verdict{true, "the original network", {{"kept", 1.0}}};
    const Input& as_read() const { return read ? *read : *this; }
    // The weights of a network that was made from this one.
    Weights carried_to(const Graph& network, std::uint64_t seed) const {
        return carry_weights(graph, weights, network, seed, trained ? KeepChannels::largest : KeepChannels::first);
    }
};

// Schedules and their times: for each variant, the best schedule that was found.
struct Tuning {
    std::vector<TunedNest> best;                   // one for each of Discovery::variants; a variant with `tried` 0 was not tuned
    std::map<std::size_t, TunedNest> restoring{};  // the second nest of variants that have one; the time in `best` is that of both nests
    int compiled = 0, failed = 0;
};

// One variant per site, as a network of its own.
struct Chosen {
    NetworkChoice choice;
    std::vector<std::size_t> variant;  // by site: index into Discovery::variants
    Graph graph;
    Verdict verdict;      // of the whole network
    double lost() const;  // capacity that is lost by the verdict, on the scale of SiteOption::capacity_cost
};

struct Selection {
    std::vector<std::vector<SiteOption>> options;  // by site; SiteOption::variant is an index into Discovery::variants
    Chosen chosen;
    std::vector<Chosen> front;  // networks such that no other is both faster and keeps more, by the sum over sites; each is judged as a whole
    int backed_off = 0;         // whole networks that the guard refused on the way
    double calibration = 1;     // what a whole network loses (Chosen::lost), divided by the sum of what its sites lose
};

struct Confirmed {
    NetworkRecord original, optimized;
    bool keep_original = false;
    std::string why;
};

// How a run learns how long nests and networks take on its target.
struct Timing {
    Measurer& nests;
    // Times whole networks, where the target does not run them as this machine does. `last`: the answer of the run depends on this time. Where the function
    // is empty, networks are compiled and timed here, side by side.
    std::function<Measured(const Graph& graph, const Weights& weights, const Schedules& schedules, bool last)> network{};
};

// The fastest row of nests (algorithms.hpp) for each kind of statement (statement_kind.hpp).
using RowChoices = std::map<std::string, Term>;

// What spares trials of a tuning.
struct TuningShortcuts {
    int trials = 0;                 // at most so many schedules of a nest; 0: as many as the request asks for
    const Tuning* known = nullptr;  // the tuning of the same network's originals, for kinds that all of their sites keep
    RowChoices* rows = nullptr;     // what earlier tunings chose for statements that differ in their channels alone; this tuning adds its own choices
};

// A network whose sites are variants that were tuned.
struct TunedNetwork {
    const Graph& graph;
    const Weights& weights;
    const Sites& sites;
    const Tuning& tuning;
    const std::vector<std::size_t>& variant;  // by site
};

// What the last measurement compares: the network that was chosen, and the network as it was read.
struct Contest {
    const Input& input;
    const Tuning& original;  // of the network as it was read, where `input` was made from another
    const Tuning& tuning;
    const Selection& selection;
};

// What a run came to, from its network to what the last measurement says.
struct Outcome {
    const Input& input;
    const Discovery& found;
    const Tuning& tuning;
    const Selection& selection;
    const Confirmed& confirmed;
};

Input read_input(const OptimizeRequest& request);
// Variants of single sites by a phase of the rules, as far as the class of the network uses them (`rules` tells that).
Discovery discover_variants(const OptimizeRequest& request, const Input& input, CapacityOracle& oracle, Progress& progress, ClassRules& rules,
                            std::string_view phase = "discover");
// What every tuning of a run has in common: schedules by the rules of the target, with at most so many trials of a nest.
TuneOptions tune_options(const OptimizeRequest& request, const Target& target, int trials);
// Tunes the originals, and of each kind the variants that are worth it.
Tuning tune_variants(const OptimizeRequest& request, const Input& input, const Discovery& found, Measurer& measurer, Progress& progress,
                     const TuningShortcuts& shortcuts = {});
Selection select(const OptimizeRequest& request, const Input& input, const Discovery& found, const Tuning& tuning, CapacityOracle& oracle, Progress& progress);
// Picks for each site the schedule that is fastest inside the network, among those that tuning found best and the default schedules. Each schedule is
// compiled into the network, in folders inside `scratch`, and its steps are timed there. A site without an entry runs best with its default schedule.
Schedules fastest_in_network(const TunedNetwork& network, const Target& target, const std::filesystem::path& scratch, KernelCache& kernels);
// `shelf`: holds the kernels that tuning compiled.
Confirmed confirm(const OptimizeRequest& request, const Contest& contest, const Timing& timing, const KernelShelf& shelf, Progress& progress);
// By site, the time of its whole domain with its best schedule; a site that was not timed has no entry.
std::map<std::string, double> site_times(const Sites& sites, const Tuning& tuning);
// The schedules that tuning found best, with values in blocks of channels where that pays.
Schedules best_schedules(const OptimizeRequest& request, const Input& input, const Tuning& tuning, const Timing& timing, Progress& progress);
// The times of several networks, taken in turns. Nothing is compiled where all times are known.
std::vector<Measured> time_in_turns(const OptimizeRequest& request, std::span<const std::pair<const Input*, const Schedules*>> networks, const Timing& timing,
                                    const KernelShelf& shelf, Progress& progress);
// The original and the returned network compiled for every target but the one that was searched on, with estimates: result.json's "targets".
nlohmann::json compile_for_others(const OptimizeRequest& request, const Input& input, const Selection& selection, const Confirmed& confirmed,
                                  Progress& progress);

// A time as every file of a run writes it (docs/reference/formats.md).
nlohmann::json latency_json(const Measured& m);
// result.json without `seconds`: everything else that docs/reference/formats.md names.
nlohmann::json result_of(const OptimizeRequest& request, const Outcome& outcome);
// By what they do to a site ("group", "S2"), how many variants the guard judged and admitted, and how many of them were timed.
nlohmann::json effects_json(const Discovery& found, const Tuning& tuning);
// The class that the rules were chosen for, and the rules that were left out.
void add_class(nlohmann::json& result, const ClassRules& rules);
// What each rule did for this network and which of its steps are in the returned network: result.json's "counts". If no rule was left out, the store gets
// these counts too; no store is given where the run asked about some sites alone.
nlohmann::json count_run(const std::optional<StoreAddress>& store, const ClassRules& rules, const Input& input, const Discovery& found, const Tuning& tuning,
                         const std::vector<std::size_t>& variant);
// Every file of the out folder beside result.json, which is `result`.
void write_out(const OptimizeRequest& request, const Outcome& outcome, Oracle& oracle, const nlohmann::json& result, Progress& progress);

// The target that the run searches on, with the rules of the run.
Target target_of(const OptimizeRequest& request);

// By site: the variant that is its original.
std::vector<std::size_t> original_variants(const Sites& sites);
// By site: the variant of the network that the run returns, the chosen one or the original.
std::vector<std::size_t> returned_variants(const Input& input, const Selection& selection, const Confirmed& confirmed);

// Whether a site with `variant` reads nothing that the admitted variant leaves out (Admission::reader).
bool leaves_unread(const Sites& sites, const Discovery& found, const Admission& admission, std::size_t variant);
// Why a site may be what `variant` says: null for an original.
const Admission* admission_of(const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant, std::size_t site);

// What a variant does to a site, in a word (named_sequences.hpp). The word is "propagate" where outputs are left out because their reader skips them.
std::string sequence_name(const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant, std::size_t site);

// The network in which every site is what `variant` says.
Graph network_of(const Graph& original, const Sites& sites, const Discovery& found, const std::vector<std::size_t>& variant);

// The share of capacity that the guard found kept, or 1 when the verdict names no share.
double kept_share(const Verdict& verdict);
// The same as a cost: shares of several sites multiply, so their logarithms add up. 0 where nothing is lost.
double capacity_cost(const Verdict& verdict);

}  // namespace loopegg
