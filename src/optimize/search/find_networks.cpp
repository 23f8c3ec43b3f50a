#include "optimize/search/find_networks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "fisher/measures.hpp"
#include "graph/flops.hpp"
#include "graph/graph.hpp"
#include "graph/hidden_widths.hpp"
#include "nest/domain/domain.hpp"
#include "nest/net/net.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/plan/derive_plan.hpp"
#include "network/derivation.hpp"
#include "network/front.hpp"
#include "network/layer_costs.hpp"
#include "optimize/run/objective.hpp"
#include "optimize/run/sites.hpp"
#include "optimize/search/application_guard.hpp"
#include "optimize/search/latency_model.hpp"
#include "optimize/train/train_networks.hpp"
#include "optimize/tune/time_networks.hpp"
#include "rewrite/plan_rules.hpp"

namespace loopegg {
namespace {

// The plan of a derivation: what 'loopegg apply' takes to make the same network.

enum class Anchor { first, last };

// A step of a plan names one of the sites that the rule takes something from.
Plan plan_by(Anchor anchor, const Derivation& derivation) {
    Plan plan;
    for (const NetStep& step : derivation.steps) {
        if (!step.neural || step.sites.empty()) continue;
        Application a;
        a.rule = step.rule;
        for (const auto& [variable, value] : step.with) a.with.emplace(variable, value);
        plan.steps.push_back({exact_glob(anchor == Anchor::first ? step.sites.front() : step.sites.back()), {std::move(a)}});
    }
    return plan;
}

// The part of the plan that is about the nests of single sites. `before`: the network that rules over networks made.
std::vector<SiteStep> site_steps(const Derivation& derivation, const Graph& before, const NamedRules& rules) {
    std::vector<SiteStep> steps;
    for (const auto& [site, nest] : derivation.nests) {
        auto apply = applications_for(*before.find(site), nest.steps, domain_of(nest.to), rules);
        if (!apply.empty()) steps.push_back({exact_glob(site), std::move(apply)});
    }
    return steps;
}

// Throws InternalFault where no plan makes the network.
Plan plan_of(const Derivation& derivation, const Graph& original, const Graph& network, const NamedRules& rules) {
    const Graph before = graph_of(derivation.to, original);
    for (Anchor anchor : {Anchor::first, Anchor::last}) try {
            Plan plan = plan_by(anchor, derivation);
            if (apply_plan(original, plan, rules) != before) continue;
            for (SiteStep& step : site_steps(derivation, before, rules)) plan.steps.push_back(std::move(step));
            if (apply_plan(original, plan, rules) == network) return plan;
        } catch (const UserError&) {  // the site represents another place, too
        }
    throw InternalFault("no plan makes the network that was extracted");
}

using nlohmann::json;

constexpr int usual_rounds = 6;  // networks that are extracted, tuned and timed one after another, because the latency model learns from each
// Of the time for tuning. The original and every other network are tuned with equal effort: a speed-up over an original that was tuned better would be too
// small. A trial of the original takes about twice as long as one of a network that is worth timing, so the original gets two parts of this share and each
// other network one.
constexpr double networks_share = 0.5, original_parts = 2;
// What the trials of a nest are divided by. Every nest of every network should have its first trials before the time of the network is up.
constexpr int fewer_trials = 3;
constexpr std::size_t looked_at = 12;       // networks of the front near the limit that the guard ranks again
constexpr std::size_t shown_of_front = 24;  // in result.json
constexpr double unlike = 0.05;             // how far the times of sites are varied to extract finalists that are unlike each other
constexpr int max_refusals = 40;            // extractions that the guard refuses before the search gives up

// A network of the front, made.
struct Made {
    std::size_t at = 0;  // on the curve
    Graph graph;
    double ms = 0;
    NetworkVerdict judged;
};

// What an extraction may weigh more than usual. Networks that training runs may prefer are then found, whatever the usual weights say of them.
constexpr double more = 2, less = 0.5;
const std::vector<LossParts> stresses{usual_parts,
                                      {more, less, less, less, less, 1},
                                      {less, more, less, less, less, 1},
                                      {less, less, more, less, less, 1},
                                      {less, less, less, more, less, 1},
                                      {less, less, less, less, more, 1}};
constexpr std::size_t candidates_of_each = 6;  // networks of each front that may be trained

class NetworkSearch final : public CandidateSource {
public:
    explicit NetworkSearch(const Run& run)
        : run_(run),
          original_(run.read.network.graph),
          judge_(*run.oracle, original_, run.conditions),
          rewriter_(run.book, run.request.channels_multiple),
          sizes_(sizes_of(without_unread_outputs(original_))),
          loss_(sizes_),
          model_(run.target.gpu() ? 1 : vector_machine(run.target).lanes),
          costs_(original_, loss_, [this](const Node& node, const Term& nest) { return model_.site_ms(node) * variation(nest); }),
          network_(original_, run.book, graph_options()),
          applications_(run, judge_, rewriter_, network_.graph()),
          rules_(plan_rules(rules_file(run.request.rules))) {
        out_.growth = grow();
        out_.trainings = run.read.trainings;
    }

    FoundNetworks search() {
        const int wanted = run_.request.finalists.value_or(usual_rounds);
        effort_ = {run_.request.tune_seconds * networks_share / (original_parts + wanted), std::max(1, run_.request.trials / fewer_trials)};
        tune_original(effort_.share(original_parts));
        if (run_.training) take_up_trained();
        for (int round = 0; round < wanted; ++round) {
            std::optional<FoundNetwork> next = extract();
            for (std::uint64_t seed = 1; next && known(*next) && run_.request.finalists && seed < 8; ++seed) {
                vary(run_.request.seed * 1000 + static_cast<std::uint64_t>(round) * 10 + seed);
                next = extract();
            }
            if (!next || known(*next)) break;
            tune_and_time(std::move(*next));
            vary(0);
        }
        if (run_.training) run_.training->train_candidates(*this);
        if (!out_.timed.empty()) time_from(0);
        out_.best = best();
        draw_front();
        out_.asked = judge_.asked() + applications_.asked(), out_.rejected = applications_.rejected() + rejected_;
        return std::move(out_);
    }

    // --- training ---------------------------------------------------------------------------------------------------------

    void learn(const Trainings& trainings) override {
        run_.oracle->calibrate(trainings.calibration);
        applications_.forget();
        for (FoundNetwork& t : out_.timed) {
            t.judged = judge_.judge({&t.network.graph, 1}).front();
            if (!allowed_by_themselves(t.derivation, t.point)) t.judged.allowed = false;
            t.trained = trained_loss(t.name);
        }
        out_.trainings = trainings;
    }

    std::vector<TrainingCandidate> candidates() override {
        std::vector<TrainingCandidate> all;
        for (const FoundNetwork& t : out_.timed)
            if (t.time.latency) all.push_back(candidate_of(t));
        first_new_ = all.size(), new_.clear();
        for (const LossParts& factors : stresses) {
            loss_.stress(factors);
            const Front front = front_now();
            for (Made& m : made(front, places_to_train(front))) {
                const auto same = [&](const Graph& g) { return g == m.graph; };
                if (same(original_) || std::any_of(out_.timed.begin(), out_.timed.end(), [&](const FoundNetwork& t) { return same(t.network.graph); }) ||
                    std::any_of(new_.begin(), new_.end(), [&](const auto& n) { return same(n.first.graph); }))
                    continue;
                all.push_back({"", sizes_of(without_unread_outputs(m.graph)), m.ms});
                FrontPoint point = front.network(m.at);
                new_.emplace_back(std::move(m), std::move(point));
            }
        }
        loss_.stress(usual_parts);
        return all;
    }

    std::optional<TrainingCandidate> tune(std::size_t candidate) override {
        auto& [made, point] = new_.at(candidate - first_new_);
        Derivation derivation = derive(network_, run_.book, rewriter_, point);
        if (!allowed_by_themselves(derivation, point)) return {};
        made.judged = judge_.judge({&made.graph, 1}).front();
        tune_and_time(found(std::move(made), std::move(derivation), point));
        if (!out_.timed.back().time.latency) return {};
        return candidate_of(out_.timed.back());
    }

    TrainableNetwork trainable(const std::string& name) override {
        const auto at = std::find_if(out_.timed.begin(), out_.timed.end(), [&](const FoundNetwork& t) { return t.name == name; });
        require(at != out_.timed.end(), "what is trained was tuned");
        return {at->network.graph, run_.read.trained ? &at->network.weights : nullptr, at->plan, at->judged.loss, extraction_json(network_, at->point)};
    }

    TrainingGoal goal() const override { return {limit_ms(), run_.points, out_.original.latency ? out_.original.latency->median_ms : model_.ms(original_)}; }

private:
    NetworkGraphOptions graph_options() const {
        NetworkGraphOptions options;
        for (const Site& s : run_.read.network.sites.all)
            if (s.kept) options.kept.push_back(s.name);
        options.channels_step = run_.request.channels_multiple;
        return options;
    }

    Growth grow() {
        const RunReport report = network_.grow();
        Growth g{std::string(name_of(report.stop)),
                 network_.graph().node_count(),
                 network_.graph().class_count(),
                 network_.graph().edges().size(),
                 report.seconds,
                 {}};
        for (const char* name : {"networks", "layers"})
            if (const Phase* phase = run_.book.find_phase(name))
                for (const Rule* rule : run_.book.rules_of(*phase)) g.rules_fired[rule->name] = 0;
        for (const IterationReport& it : report.iterations)
            for (const RuleReport& r : it.rules) g.rules_fired[r.rule] += r.applications;
        return g;
    }

    void tune_original(const Effort& effort) {
        const Network& network = run_.read.network;
        run_.progress.advance(0, "tuning the original");
        out_.original_tuning = tune_network(run_, network, effort, rows_);
        out_.original_schedules = best_schedules(run_, network, out_.original_tuning, effort);
        model_.learn(original_, site_times(network.sites, out_.original_tuning));
        time_from(0);
    }

    void tune_and_time(FoundNetwork found) {
        if (found.name.empty()) found.name = new_name();
        found.plan = plan_of(found.derivation, original_, found.network.graph, rules_);
        run_.progress.advance(static_cast<std::int64_t>(out_.timed.size()),
                              fmt::format("tuning {}: {:.2f} ms predicted, {:.2f} points", found.name, found.predicted_ms, found.judged.loss.points));
        found.tuning = tune_network(run_, found.network, effort_, rows_);
        found.schedules = best_schedules(run_, found.network, found.tuning, effort_);
        model_.learn(found.network.graph, site_times(found.network.sites, found.tuning));
        out_.timed.push_back(std::move(found));
        time_from(out_.timed.size() - 1);
    }

    // Times the original and the networks from `first` on, interleaved. The extraction follows the latency model, so the model learns its error at once.
    void time_from(std::size_t first) {
        std::vector<std::pair<const Network*, const Schedules*>> networks{{&run_.read.network, &out_.original_schedules}};
        for (std::size_t t = first; t < out_.timed.size(); ++t) networks.emplace_back(&out_.timed[t].network, &out_.timed[t].schedules);
        const std::vector<Measured> times = time_interleaved(run_, networks);
        out_.original = times.front();
        for (std::size_t i = 1; i < times.size(); ++i) out_.timed[first + i - 1].time = times[i];
        std::vector<std::pair<const Graph*, double>> known;
        if (out_.original.latency) known.emplace_back(&original_, out_.original.latency->median_ms);
        for (const FoundNetwork& t : out_.timed)
            if (t.time.latency) known.emplace_back(&t.network.graph, t.time.latency->median_ms);
        model_.learn_networks(known);
        costs_.forget_times();
    }

    double limit_ms() const { return run_.request.allowed_ms(out_.original.latency ? out_.original.latency->median_ms : model_.ms(original_)); }

    // A name that no network has, here or in the ledger of an earlier process.
    std::string new_name() const {
        for (std::size_t number = 1;; ++number) {
            std::string name = fmt::format("front-{}", number);
            const bool taken = std::any_of(out_.timed.begin(), out_.timed.end(), [&](const FoundNetwork& t) { return t.name == name; });
            if (!taken && !(run_.training && run_.training->ledger().find(name))) return name;
        }
    }

    // Networks that an earlier process of this run had trained are tuned first. Their schedules are in the store.
    void take_up_trained() {
        for (const LedgerNetwork& n : run_.training->ledger().networks()) {
            if (n.name == original_name) continue;
            const std::optional<FrontPoint> point = extraction_from(network_, n.extraction);
            if (!point) {
                run_.progress.note(fmt::format("{} was found with other rules: its training run calibrates the guard, but it cannot be the answer", n.name));
                continue;
            }
            Graph graph = graph_of(point->term, original_);
            std::vector<NetworkVerdict> verdicts = judge_.judge({&graph, 1});
            const double ms = model_.ms(graph);
            FoundNetwork network = found({0, std::move(graph), ms, std::move(verdicts.front())}, derive(network_, run_.book, rewriter_, *point), *point);
            network.name = n.name;
            tune_and_time(std::move(network));
        }
    }

    std::optional<TrainedLoss> trained_loss(const std::string& name) const {
        const LedgerNetwork *network = run_.training->ledger().find(name), *original = run_.training->ledger().find(original_name);
        if (!network || network->trained().accuracies.empty()) return {};
        return TrainedLoss{network->trained(), original->trained().mean() - network->trained().mean(), network->predicted};
    }

    static TrainingCandidate candidate_of(const FoundNetwork& t) {
        return {t.name, sizes_of(without_unread_outputs(t.network.graph)), t.time.latency->median_ms};
    }

    // Below the limit, the networks next to it; without a limit, networks all over the front.
    std::vector<std::size_t> places_to_train(const Front& front) const {
        const auto curve = front.curve();
        std::size_t end = 0;
        while (end < curve.size() && curve[end].first <= limit_ms()) ++end;
        const bool limited = std::isfinite(limit_ms());
        std::vector<std::size_t> places;
        for (std::size_t k = 0; k < candidates_of_each && k < end; ++k) places.push_back(limited ? end - 1 - k : k * end / std::min(candidates_of_each, end));
        return places;
    }

    // --- extraction -------------------------------------------------------------------------------------------------------

    void vary(std::uint64_t seed) { variation_ = seed, costs_.forget_times(); }
    double variation(const Term& nest) const {
        if (variation_ == 0) return 1;
        const double unit = static_cast<double>(Hasher().add(to_string(nest)).add(std::to_string(variation_)).finish().low % 20001) / 10000 - 1;
        return 1 + unlike * unit;
    }

    Front front_now() {
        FrontOptions options;
        options.max_points = std::max(1.0, 2 * run_.points);
        options.refused = [this](const Edge& edge, const std::vector<std::string>& sites) { return applications_.refused(edge, sites); };
        run_.progress.advance(static_cast<std::int64_t>(out_.timed.size()), "extracting the front of the e-graph");
        return Front(network_, loss_, costs_, options);
    }

    // The next network to time: by the limits of the user, of those that the guard allows.
    std::optional<FoundNetwork> extract() {
        for (int refusals = 0; refusals < max_refusals; ++refusals) {
            const Front front = front_now();
            std::optional<Made> picked = pick(front);
            if (!picked) return {};
            const FrontPoint point = front.network(picked->at);
            Derivation derivation = derive(network_, run_.book, rewriter_, point);
            if (!allowed_by_themselves(derivation, point)) continue;  // the next extraction is without the refused steps
            picked->judged = judge_.judge({&picked->graph, 1}).front();
            if (!picked->judged.allowed && !run_.request.limits_time()) {
                if (limits_size() && point.points > run_.points) refuse_limits(front);
                ++rejected_;
                max_points_ = std::min(max_points_, point.points) * 0.95;  // sizes do not determine all that this guard considers
                continue;
            }
            return found(std::move(*picked), std::move(derivation), point);
        }
        return {};
    }

    bool allowed_by_themselves(Derivation& derivation, const FrontPoint& point) {
        bool allowed = applications_.ask(derivation.steps, network_.term());
        for (const std::string& site : applications_.ask(derivation.nests, network_.term()))
            for (const NetLayer& layer : layers_of(point.term))
                if (layer.site == site) costs_.refuse(site, layer.nest), allowed = false;
        return allowed;
    }

    FoundNetwork found(Made made, Derivation derivation, const FrontPoint& point) {
        FoundNetwork out;
        out.network.graph = std::move(made.graph);
        out.network.weights = run_.read.carried_to(out.network.graph, run_.request.seed);
        out.network.sites = sites_of(out.network.graph);
        out.derivation = std::move(derivation), out.judged = std::move(made.judged), out.predicted_ms = made.ms;
        out.point = point;
        return out;
    }

    bool known(const FoundNetwork& found) const {
        return found.network.graph == original_ ||
               std::any_of(out_.timed.begin(), out_.timed.end(), [&](const FoundNetwork& t) { return t.network.graph == found.network.graph; });
    }

    static double memory_mb(const Graph& graph) {
        double bytes = static_cast<double>(peak_activation_bytes(graph));
        for (const Node& node : graph.nodes)
            for (const Parameter& p : parameters_of(node)) bytes += 4 * static_cast<double>(element_count(p.shape));
        return bytes / 1e6;
    }
    bool limits_size() const { return run_.request.max_parameters != OptimizeRequest{}.max_parameters || std::isfinite(run_.request.max_memory_mb); }
    bool within_limits(const Graph& graph) const { return parameters(graph) <= run_.request.max_parameters && memory_mb(graph) <= run_.request.max_memory_mb; }

    // No network of the front is so small, or those that are lose too much.
    [[noreturn]] void refuse_limits(const Front& front) {
        std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
        double least_mb = std::numeric_limits<double>::infinity();
        for (std::size_t at = 0; at < front.curve().size(); ++at) {
            if (front.curve()[at].second > run_.points) continue;
            const Graph graph = graph_of(front.network(at).term, original_);
            fewest = std::min(fewest, parameters(graph)), least_mb = std::min(least_mb, memory_mb(graph));
        }
        throw UserError(fmt::format("no network meets all limits; with the others as given, possible would be {}",
                                    std::isfinite(run_.request.max_memory_mb) ? fmt::format("--max-memory {:.3f}", std::ceil(least_mb * 1000) / 1000)
                                                                              : fmt::format("--max-params {}", fewest)));
    }

    std::vector<Made> made(const Front& front, std::span<const std::size_t> places) {
        std::vector<Made> all;
        std::vector<Graph> graphs;
        for (std::size_t at : places) {
            Graph graph = graph_of(front.network(at).term, original_);
            if (!within_limits(graph)) continue;
            graphs.push_back(graph);
            all.push_back({at, std::move(graph), front.curve()[at].first, {}});
        }
        const std::vector<NetworkVerdict> verdicts = graphs.empty() ? std::vector<NetworkVerdict>{} : judge_.judge_by_size(graphs);
        for (std::size_t i = 0; i < all.size(); ++i) all[i].judged = verdicts[i];
        return all;
    }

    // What the front adds up is what sizes say stage by stage. Of the networks near the limit, the guard ranks: it may have learned from training runs.
    std::optional<Made> pick(const Front& front) {
        const auto curve = front.curve();
        const double ms = limit_ms(), points = std::min(max_points_, run_.points);
        const bool limited = std::isfinite(ms);
        // The first place that is slower than the limit, or that loses no more than is allowed.
        std::size_t edge = 0;
        while (edge < curve.size() && (limited ? curve[edge].first <= ms : curve[edge].second > points)) ++edge;
        std::vector<std::size_t> places;
        const bool small = limits_size();
        for (std::size_t step = 1; places.empty() || (small && step <= 64); step *= 2) {  // farther away, where limits of size leave nothing near
            places.clear();
            for (std::size_t k = 0; k < looked_at; ++k) {
                const std::ptrdiff_t at =
                    static_cast<std::ptrdiff_t>(edge) + (limited ? -1 - static_cast<std::ptrdiff_t>(k * step) : static_cast<std::ptrdiff_t>(k * step) - 2);
                if (at >= 0 && at < static_cast<std::ptrdiff_t>(curve.size())) places.push_back(static_cast<std::size_t>(at));
            }
            if (places.empty() && !curve.empty()) places.push_back(limited ? 0 : curve.size() - 1);  // nothing is so fast, or loses so little
            if (curve.empty()) return {};
            std::vector<Made> all = made(front, places);
            if (all.empty()) {
                places.clear();
                if (step > 64) refuse_limits(front);
                continue;
            }
            const auto worse = [&](const Made& a, const Made& b) {
                if (limited) return a.judged.loss.points < b.judged.loss.points;
                const auto over = [&](const Made& m) { return std::max(0.0, m.judged.loss.points - points); };
                return std::pair(over(a), figure(a)) < std::pair(over(b), figure(b));
            };
            return *std::min_element(all.begin(), all.end(), worse);
        }
        return {};
    }

    // What is to be small: milliseconds, or megabytes for --objective memory.
    double figure(const Made& m) const {
        return objective_for(run_.request.objective, run_.target) == Objective::memory ? static_cast<double>(parameters(m.graph)) : m.ms;
    }

    // --- the answer -------------------------------------------------------------------------------------------------------

    // The fastest network that is allowed; where a limit is set, the one that loses least within it. Where no network is within the limit, the run continues
    // with the one that exceeds it least: it is tuned further, and compared with the limit at the end. Where networks were trained, the answer is one of them,
    // and what they lost in training decides: neither that nor what the guard believes may exceed what is allowed.
    std::optional<std::size_t> best() const {
        const double ms = limit_ms();
        const bool limited = std::isfinite(ms);
        std::optional<std::size_t> best;
        const bool any_trained = std::any_of(out_.timed.begin(), out_.timed.end(), [](const FoundNetwork& t) { return t.trained.has_value(); });
        const auto rank = [&](const FoundNetwork& t) {
            const double took = t.time.latency->median_ms, over = std::max(0.0, took - ms), lost = t.trained ? t.trained->lost : t.judged.loss.points;
            return limited ? std::tuple(over, lost, took) : std::tuple(0.0, took, lost);
        };
        for (std::size_t i = 0; i < out_.timed.size(); ++i) {
            const FoundNetwork& t = out_.timed[i];
            if (!t.time.latency || !t.judged.allowed || (any_trained && !t.trained) || (t.trained && t.trained->lost > run_.points)) continue;
            if (!limited && within_limits(original_) && out_.original.latency && t.time.latency->median_ms >= out_.original.latency->median_ms) continue;
            if (!best || rank(t) < rank(out_.timed[*best])) best = i;
        }
        return best;
    }

    void draw_front() {
        const Front front = front_now();
        FrontOptions bound;
        bound.max_points = std::max(1.0, 2 * run_.points), bound.optimistic = true;
        const auto curve = front.curve();
        std::vector<std::size_t> places;
        for (std::size_t k = 0; k < shown_of_front && !curve.empty(); ++k) {
            const std::size_t at = k * (curve.size() - 1) / std::max<std::size_t>(1, shown_of_front - 1);
            if (places.empty() || places.back() != at) places.push_back(at);
        }
        for (Made& m : made(front, places)) out_.front.push_back({m.ms, std::move(m.judged), parameters(m.graph), macs(m.graph)});
        out_.gap = gap_between(curve, Front(network_, loss_, costs_, bound).curve());
    }

    const Run& run_;
    const Graph& original_;
    NetworkJudge judge_;
    NetRewriter rewriter_;
    MeasureInput sizes_;
    StagewiseLoss loss_;
    LatencyModel model_;
    SiteCosts costs_;
    NetworkGraph network_;
    ApplicationGuard applications_;
    const PlanRules rules_;
    Effort effort_{};                               // for each network
    std::vector<std::pair<Made, FrontPoint>> new_;  // the candidates that were not tuned, after `first_new_` others
    std::size_t first_new_ = 0;
    RowChoices rows_;  // the networks are alike but for their channels, so they share what their sites are computed by
    std::uint64_t variation_ = 0;
    double max_points_ = 1e9;  // by the front's own sums; less where the guard refused networks
    std::int64_t rejected_ = 0;
    FoundNetworks out_;
};

}  // namespace

FoundNetworks find_networks(const Run& run) { return run.book.find_phase("networks") ? NetworkSearch(run).search() : FoundNetworks{}; }

json front_json(const FoundNetworks& found) {
    json all = json::array();
    for (const FrontRow& row : found.front)
        all.push_back({{"latency_ms", row.ms},
                       {"measured", false},
                       {"loss", {{"points", row.judged.loss.points}, {"low", row.judged.loss.low}, {"high", row.judged.loss.high}}},
                       {"capacity", kept_at_loss(row.judged.loss.points)},
                       {"allowed", row.judged.allowed},
                       {"parameters", row.parameters},
                       {"macs", row.macs}});
    return all;
}

json networks_json(const FoundNetworks& found) {
    json all = json::array();
    for (std::size_t i = 0; i < found.timed.size(); ++i) {
        const FoundNetwork& t = found.timed[i];
        const ExpectedLoss& l = t.judged.loss;
        json j{{"finalist", t.name},
               {"origin", "front"},
               {"latency", latency_json(t.time)},
               {"latency_ms", t.time.latency ? json(t.time.latency->median_ms) : json(nullptr)},
               {"measured", t.time.latency && t.time.latency->measured},
               {"predicted_ms", t.predicted_ms},
               {"chosen", found.best == i},
               {"allowed", t.judged.allowed},
               {"loss", {{"points", l.points}, {"low", l.low}, {"high", l.high}}},
               {"macs", macs(t.network.graph)},
               {"parameters", parameters(t.network.graph)},
               {"plan", json::parse(write_plan(t.plan))}};
        if (t.trained) {
            j["accuracies"] = t.trained->runs.accuracies, j["accuracy"] = t.trained->runs.mean(), j["lost"] = t.trained->lost;
            j["predicted"] = {{"points", t.trained->predicted.points}, {"low", t.trained->predicted.low}, {"high", t.trained->predicted.high}};
        }
        if (found.original.latency) j["baseline_ms"] = found.original.latency->median_ms;
        all.push_back(std::move(j));
    }
    return all;
}

}  // namespace loopegg
