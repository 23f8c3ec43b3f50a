// Whether restrictions of single layers, among them the paper's S1 to S3, are on the front of a network, and by how much they miss it; prints Markdown tables.
//
//     bench_sequences_on_front NETWORK TARGET
//
// Times are the target's estimates of a nest's best schedule, as 'optimize' has them for i7 and a57. The latency model of the search learns from the sites
// of the original, from narrower ones, and from grouped, cut and pointwise restored forms of the original's nests, and
// predicts the others. The e-graph grows by
// rules/discover-layers.rules. The first table counts what networks of the front have at their sites, and has the times of
// the front that the default rules extract. The second one takes networks of the front, restricts
// one site of each, and says how much longer the result takes than the network of the front that loses as many points.
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "backends/measure/roofline.hpp"
#include "backends/target/target.hpp"
#include "backends/target/target_rules.hpp"
#include "base/places.hpp"
#include "fisher/measures.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/domain/domain.hpp"
#include "nest/net/net.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/grammar.hpp"
#include "network/front.hpp"
#include "network/layer_costs.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/search/latency_model.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

constexpr double levels[] = {0.25, 0.5, 1, 1.5, 2};  // points that may be expected to be lost
constexpr const char* named[] = {"group by 2", "S1", "S2", "S3"};

std::int64_t extent_of(const Statement& s, const char* name) {
    const int a = s.axis(name);
    return a < 0 ? 1 : s.axes[static_cast<std::size_t>(a)].extent;
}

DigitPair blocks(const char* axis, std::int64_t extent, std::int64_t inputs, std::int64_t groups) {
    return {{axis, extent / groups, groups}, {"ci", inputs / groups, groups}};
}

// The restriction by its name (docs/reference/nest-rules.md); none where the sizes are not divisible.
std::optional<Term> restricted(const Term& nest, const std::string& name) {
    const Statement s = statement_of(nest_parts(nest).statement);
    const std::int64_t out = extent_of(s, "co"), in = extent_of(s, "ci"), rows = extent_of(s, "oh");
    Domain domain;
    if (out % 8 != 0 || in % 4 != 0 || rows % 2 != 0) return {};
    const DigitRange first{{"co", out / 2, 2}, 0, 1}, second{{"co", out / 2, 2}, 1, 2};
    if (name == "group by 2") domain.parts = {{{}, {blocks("co", out, in, 2)}}};
    if (name == "S1") domain.parts = {{{}, {blocks("oh", rows, in, 2)}}};
    if (name == "S2") domain.parts = {{{first}, {}}, {{second}, {blocks("co", out / 2, in, 2)}}};
    if (name == "S3") domain.parts = {{{first}, {blocks("co", out / 2, in, 2)}}, {{second}, {blocks("co", out / 2, in, 4)}}};
    return Term("nest", {nest_parts(nest).statement, schedule_of(s, domain)});
}

class Study {
public:
    Study(const Graph& original, const Target& target)
        : original_(original),
          target_(target),
          book_(load_rules(shipped("rules/discover-layers.rules"), {.judge = false, .deep = false})),
          loss_(sizes_of(original)),
          model_(vector_machine(target).lanes),
          costs_(original, loss_, [this](const Node& node, const Term&) { return model_.site_ms(node); }),
          network_(original, book_, {}) {
        calibrate();
        network_.grow();
        front_.emplace(network_, loss_, costs_);
    }

    void print_counts() {
        const RuleBook whole_networks = load_rules(shipped("rules/discover.rules"), {.judge = false, .deep = false});
        NetworkGraph plain(original_, whole_networks, {});
        plain.grow();
        const Front without(plain, loss_, costs_);
        fmt::print("| network | target | points | ms | ms without restrictions | sites | restricted sites |\n|{}\n", "---|---|---|---|---|---|---|");
        for (double level : levels) {
            const std::size_t place = place_of(front_->curve(), level);
            fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {} |\n", original_.name, target_.name, front_->curve()[place].second,
                       front_->curve()[place].first, without.curve()[place_of(without.curve(), front_->curve()[place].second)].first, restrictions_of(place));
        }
        std::map<std::string, int> having;
        for (std::size_t place = 0; place < front_->curve().size(); ++place)
            for (const auto& [name, count] : counts_of(place)) ++having[name];
        fmt::print("\nOf {} networks of the front ({:.2f} to {:.2f} points),", front_->curve().size(), front_->curve().back().second,
                   front_->curve().front().second);
        for (const auto& [name, count] : having) fmt::print(" {} have a site of the form '{}',", count, name);
        fmt::print(" and {} have S1, {} have S2 and {} have S3.\n", having["spatial-group"], having["part-group"], having["mixed-group"]);
    }

    void print_misses() {
        fmt::print("\n| network | target | points | restriction | sites | nearest site | its nest | points more | longer than the front |\n|{}\n",
                   "---|---|---|---|---|---|---|---|---|");
        for (double level : levels) {
            const FrontPoint point = front_->network(place_of(front_->curve(), level));
            for (const char* name : named) print_nearest(point.points, layers_of(point.term), name);
        }
    }

private:
    // How many sites of a network of the front have a restriction, by its name.
    std::map<std::string, int> counts_of(std::size_t place) const {
        std::map<std::string, int> counts;
        for (const NetLayer& layer : layers_of(front_->network(place).term))
            if (const Domain domain = domain_of(layer.nest); !domain.whole())
                ++counts[effect_name(domain, extent_of(statement_of(nest_parts(layer.nest).statement), "co"))];
        return counts;
    }

    std::string restrictions_of(std::size_t place) const {
        std::string words;
        for (const auto& [name, count] : counts_of(place)) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, name);
        return fmt::format("{} | {}", layers_of(front_->network(place).term).size(), words);
    }

    struct Sum {
        double ms = 0, points = 0;
    };

    double estimate(const Term& nest) {
        constexpr std::size_t tried = 16;
        const auto [at, fresh] = estimated_.try_emplace(nest, 0);
        if (!fresh) return at->second;
        at->second = estimate_latency(nest, target_).median_ms;
        for (const Term& t : schedule_rules(target_)->schedules(nest, tried)) at->second = std::min(at->second, estimate_latency(t, target_).median_ms);
        return at->second;
    }

    void learn(const NetLayer& layer, const Term& nest) {
        if (seen_.insert(nest).second) model_.learn(layer_alone(*original_.find(layer.site), nest), {{layer.site, estimate(nest)}});
    }

    // A bottleneck whose outputs come back by a 1x1 convolution: both of its convolutions.
    void learn_restored(const NetLayer& layer) {
        const Statement s = statement_of(nest_parts(layer.nest).statement);
        const std::int64_t out = extent_of(s, "co");
        if (out % 2 != 0 || extent_of(s, "g") > 1 || extent_of(s, "kh") == 1) return;
        Domain half;
        half.parts = {{{{{"co", out / 2, 2}, 0, 1}}, {}}};
        const Graph alone = layer_alone(*original_.find(layer.site), nest_from({nest_parts(layer.nest).statement, schedule_of(s, half), "pointwise"}));
        for (const Node& node : alone.nodes)
            if (const Term nest = channels_first(node); seen_.insert(nest).second) model_.learn(alone, {{node.name, estimate(nest)}});
    }

    void calibrate() {
        for (const NetLayer& layer : layers_of(network_.term())) {
            learn(layer, layer.nest);
            const Statement s = statement_of(nest_parts(layer.nest).statement);
            for (const std::int64_t eighths : {6, 5, 4}) {
                const auto fewer = with_outputs(layer.nest, output_channels(s) * eighths / 8);
                if (const auto both = fewer ? with_fewer_inputs(*fewer, input_channels(s) * (8 - eighths) / 8) : fewer) learn(layer, *both);
            }
            for (const char* name : named)
                if (const auto nest = restricted(layer.nest, name)) learn(layer, *nest);
            learn_restored(layer);
        }
    }

    // The network of the front with the most points up to a number.
    static std::size_t place_of(std::span<const std::pair<double, double>> curve, double points) {
        std::size_t at = 0;
        while (at + 1 < curve.size() && curve[at].second > points) ++at;
        return at;
    }

    // A network's time and loss, with real estimates of a site that is restricted.
    Sum sum_of(const std::vector<NetLayer>& layers, std::size_t changed, const Term& nest) {
        Sum sum;
        std::vector<StageWork> left(loss_.stages());
        double variance = 0;
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const auto work = costs_.of(layers[i].site, i == changed ? nest : layers[i].nest);
            if (!work) return {INFINITY, INFINITY};
            sum.ms +=
                i == changed && nest != layers[i].nest ? costs_.of(layers[i].site, layers[i].nest)->ms * estimate(nest) / estimate(layers[i].nest) : work->ms;
            sum.points += work->points, variance += work->variance;
            if (!work->stage) continue;
            StageWork& stage = left[*work->stage];
            stage.macs += work->work.macs, stage.dense_macs += work->work.dense_macs, stage.weights += work->work.weights, stage.sites += work->work.sites;
        }
        for (std::size_t s = 0; s < left.size(); ++s) sum.points += loss_.points(s, left[s]);
        return sum;
    }

    void print_nearest(double points, const std::vector<NetLayer>& layers, const char* name) {
        const Sum whole = sum_of(layers, 0, layers[0].nest);
        const auto ms_at = [&](double points) { return front_->curve()[place_of(front_->curve(), points)].first; };
        double least = INFINITY, more = 0;
        std::size_t sites = 0, nearest = 0;
        for (std::size_t i = 0; i < layers.size(); ++i) {
            if (!domain_of(layers[i].nest).whole()) continue;
            const auto nest = restricted(layers[i].nest, name);
            const Sum changed = nest ? sum_of(layers, i, *nest) : Sum{INFINITY, INFINITY};
            if (!std::isfinite(changed.ms)) continue;
            ++sites;
            const double longer = changed.ms / whole.ms * ms_at(points) / ms_at(points + changed.points - whole.points) - 1;
            if (longer < least) least = longer, nearest = i, more = changed.points - whole.points;
        }
        if (sites == 0) return;
        fmt::print("| {} | {} | {:.2f} | {} | {} | {} | `{}` | {:.3f} | {:+.1f}% |\n", original_.name, target_.name, points, name, sites, layers[nearest].site,
                   to_string(nest_parts(layers[nearest].nest).statement), more, 100 * least);
    }

    const Graph& original_;
    Target target_;
    RuleBook book_;
    StagewiseLoss loss_;
    LatencyModel model_;
    SiteCosts costs_;
    NetworkGraph network_;
    std::optional<Front> front_;
    std::unordered_map<Term, double> estimated_;
    std::unordered_set<Term> seen_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return fmt::print(stderr, "usage: bench_sequences_on_front NETWORK TARGET\n"), 2;
    const Graph graph = zoo_graph(argv[1]);
    Study study(graph, find_target(argv[2]));
    study.print_counts();
    study.print_misses();
}
