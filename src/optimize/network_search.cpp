#include "optimize/network_search.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

constexpr double gap = 1e-3;  // latencies are not known better, and the integer program spends most of its time on the last part in a thousand

bool faster(const Chosen& a, const Chosen& b) { return a.choice.latency_ms < b.choice.latency_ms; }

// Least squares through the origin: the loss of the whole network against the sum of the losses of its sites.
double calibrate(const std::vector<Chosen>& judged) {
    double xy = 0, xx = 0;
    for (const Chosen& c : judged) xy += c.choice.capacity_cost * c.lost(), xx += c.choice.capacity_cost * c.choice.capacity_cost;
    return xx > 0 ? xy / xx : 1;
}

std::size_t sites_apart(const NetworkChoice& a, const NetworkChoice& b) {
    std::size_t apart = 0;
    for (std::size_t s = 0; s < a.picked.size(); ++s) apart += a.picked[s] != b.picked[s];
    return apart;
}

class NetworkSearch {
public:
    NetworkSearch(Selection& selection, const ChoiceLimits& limits, const Input& input, const Discovery& found, CapacityOracle& oracle, Progress& progress)
        : selection_(selection), limits_(limits), input_(input), found_(found), oracle_(oracle), progress_(progress) {}

    void judge_front() {
        constexpr int front_points = 12;
        progress_.advance(0, "judging the front as whole networks");
        selection_.front = ask(pareto_front(selection_.options, limits_, front_points, gap));
        selection_.calibration = calibrate(selection_.front);
        const Chosen* best = nullptr;
        for (const Chosen& c : selection_.front)
            if (c.verdict.allowed && (!best || faster(c, *best))) best = &c;
        if (!best)
            throw UserError(
                Diagnostic{"the guard refuses every network that meets the limits; of the one that keeps most it says: " + selection_.front.front().verdict.why,
                           {},
                           "allow more loss (--max-loss), or a higher limit (--max-latency, --max-params, --max-memory)"});
        selection_.chosen = *best;
    }

    // The sum of the sites' losses is a budget. Only a verdict on the whole network tells what a budget really costs, and a little more budget may give a
    // quite different network. So this tries several budgets at once between the best allowed point of the front and the next point, which is refused, and
    // then some between the largest allowed budget and the one above.
    void narrow_budget() {
        double low = selection_.chosen.choice.capacity_cost, high = low;
        for (const Chosen& c : selection_.front)
            if (faster(c, selection_.chosen)) {
                high = c.choice.capacity_cost;
                break;
            }
        for (int points : {6, 4, 2}) {
            if (high <= low) break;
            progress_.advance(0, fmt::format("{} capacity budgets between {:.3f} and {:.3f}", points, low, high));
            std::vector<double> budgets{low};
            std::vector<NetworkChoice> choices;
            for (int i = 1; i <= points; ++i) {
                ChoiceLimits limits = limits_;
                limits.capacity = low + (high - low) * i / (points + 1);
                if (ChooseResult r = choose(selection_.options, limits, gap); r.choice)
                    budgets.push_back(limits.capacity), choices.push_back(std::move(*r.choice));
            }
            budgets.push_back(high);
            std::vector<Chosen> judged = ask(std::move(choices));
            std::size_t allowed = judged.size();  // index into budgets of the largest allowed one; budgets[0] is known to be allowed
            while (allowed > 0 && !judged[allowed - 1].verdict.allowed) --allowed;
            low = budgets[allowed], high = budgets[allowed + 1];
            if (allowed > 0) keep_if_better(judged[allowed - 1]);
        }
    }

    // The loss of a site was judged in the original. In the network that is chosen by now the same site loses something else, and sizes tell most of the
    // difference. So each round makes prices anew for the chosen network, and chooses networks by them that differ from it at few sites, because the prices
    // hold only there. The real loss of such a network differs from the predicted one by about one part in a hundred. So a round also tries networks that
    // are predicted to lose a little less, or a little more, than the guard allows. The network that is kept lost less than predicted by luck, which its
    // neighbours need not have; `luck` is how much.
    void reprice() {
        constexpr int rounds = 6;
        constexpr std::size_t changes[] = {2, 5, 12};
        constexpr double margins[] = {-0.01, 0, 0.01};
        constexpr double worth_another = 0.005;    // the least room that is worth another round after a round in vain
        std::set<std::vector<std::size_t>> asked;  // NetworkChoice::picked of the networks that were asked about
        double luck = 0;                           // how much less the chosen network loses than networks like it
        bool in_vain = false;
        for (int round = 0; round < rounds; ++round) {
            const std::optional<double> room = room_left(selection_.chosen.verdict);
            if (!room || (in_vain && *room < worth_another)) return;
            const Prices prices = prices_beside(selection_.chosen);
            if (prices.empty()) return;
            std::vector<NetworkChoice> near;
            for (double more : margins)
                for (std::size_t most : changes) {
                    ChoiceLimits limits = limits_;
                    limits.capacity = *room - luck + more;
                    auto c = choose_near(selection_.options, selection_.chosen.choice, prices, most, limits, gap);
                    if (!c) continue;
                    const std::size_t changed = sites_apart(*c, selection_.chosen.choice);
                    if (c->latency_ms < selection_.chosen.choice.latency_ms && asked.insert(c->picked).second) near.push_back(std::move(*c));
                    if (changed < most) break;  // a larger `most` would give the same network
                }
            if (near.empty()) return;
            progress_.advance(0, fmt::format("{} networks near the one that keeps {:.3f}", near.size(), kept_share(selection_.chosen.verdict)));
            const double before = selection_.chosen.choice.latency_ms;
            luck = keep_best(ask(std::move(near)), prices);
            in_vain = selection_.chosen.choice.latency_ms == before;
        }
    }

private:
    // The networks of several choices, with the guard's verdicts on them.
    std::vector<Chosen> ask(std::vector<NetworkChoice> choices) {
        std::vector<Chosen> out;
        std::vector<Graph> graphs;
        for (NetworkChoice& choice : choices) {
            Chosen c{std::move(choice), {}, {}, input_.verdict};
            for (std::size_t s = 0; s < selection_.options.size(); ++s) c.variant.push_back(selection_.options[s][c.choice.picked[s]].variant);
            c.graph = network_of(input_.graph, input_.sites, found_, c.variant);
            if (!original(c)) graphs.push_back(c.graph);
            out.push_back(std::move(c));
        }
        const std::vector<Verdict> verdicts = oracle_.judge(input_.graph, graphs);
        auto next = verdicts.begin();
        for (Chosen& c : out) {
            if (!original(c)) c.verdict = *next++;
            selection_.backed_off += !c.verdict.allowed;
        }
        return out;
    }

    bool keep_if_better(const Chosen& c) {
        if (!faster(c, selection_.chosen)) return false;
        selection_.chosen = c;
        return true;
    }

    // The fastest allowed network of those that were judged becomes the chosen one. Returns by how much more than the mean of these networks it loses less
    // than was predicted.
    double keep_best(const std::vector<Chosen>& judged, const Prices& prices) {
        const double lost = selection_.chosen.lost();
        double mean = 0, best = 0;
        for (const Chosen& c : judged) {
            double foretold = lost;
            for (std::size_t s = 0; s < prices.size(); ++s) foretold += prices[s][c.choice.picked[s]];
            mean += (c.lost() - foretold) / static_cast<double>(judged.size());
            if (c.verdict.allowed && keep_if_better(c)) best = c.lost() - foretold;
        }
        return mean - best;
    }

    // How much more may be lost until the guard refuses, where the verdict tells.
    static std::optional<double> room_left(const Verdict& v) {
        if (!v.evidence.is_object() || !v.evidence.contains("margin")) return std::nullopt;
        const double kept = kept_share(v), least = kept - v.evidence["margin"].get<double>();
        return kept > 0 && least > 0 ? std::optional(std::log(kept / least)) : std::nullopt;
    }

    Prices prices_beside(const Chosen& chosen) {
        std::vector<Graph> graphs{chosen.graph};
        for (std::size_t s = 0; s < selection_.options.size(); ++s)
            for (const SiteOption& o : selection_.options[s]) {
                std::vector<std::size_t> variant = chosen.variant;
                variant[s] = o.variant;
                graphs.push_back(network_of(input_.graph, input_.sites, found_, variant));
            }
        const std::vector<double> kept = oracle_.kept_by_size(input_.graph, graphs);
        Prices prices;
        if (kept.empty()) return prices;
        auto next = kept.begin() + 1;
        for (std::size_t s = 0; s < selection_.options.size(); ++s) {
            const auto& options = selection_.options[s];
            prices.emplace_back();
            for (const SiteOption& o : options)
                prices.back().push_back(std::log(kept[0] / *next++) + o.loss_beyond_size - options[chosen.choice.picked[s]].loss_beyond_size);
        }
        return prices;
    }

    bool original(const Chosen& c) const { return c.variant == original_variants(input_.sites); }

    Selection& selection_;
    const ChoiceLimits limits_;
    const Input& input_;
    const Discovery& found_;
    CapacityOracle& oracle_;
    Progress& progress_;
};

}  // namespace

void search_networks(Selection& selection, const ChoiceLimits& limits, const Input& input, const Discovery& found, CapacityOracle& oracle, Progress& progress) {
    NetworkSearch search(selection, limits, input, found, oracle, progress);
    search.judge_front();
    search.narrow_budget();
    search.reprice();
}

}  // namespace loopegg
