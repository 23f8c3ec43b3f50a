#include "optimize/layouts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "backends/network/network_plan.hpp"
#include "backends/target/schedule_rules.hpp"
#include "base/places.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/algorithms.hpp"
#include "optimize/choose.hpp"
#include "optimize/stages.hpp"
#include "rewrite/rule_books.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

constexpr double share_of_time = 0.3;     // of the time for tuning: a nest has up to three layouts more, and its first schedules are good ones
constexpr double least_gain = 0.02;       // of the network's time, by the nests alone: less is not worth another network
constexpr std::size_t most_layouts = 64;  // of one nest

// Channels in a block: of the input, and of the output with what is added to it. 0: the value lies as it is.
struct Blocks {
    std::int64_t input = 0, output = 0;
    friend auto operator<=>(const Blocks&, const Blocks&) = default;
};

std::int64_t block_of(const Buffer& b) { return b.blocking.empty() ? 0 : b.blocking.back().factor; }

Blocks blocks_of(const Term& nest) {
    const Statement s = statement_of(nest_parts(nest).statement);
    Blocks blocks;
    blocks.output = block_of(s.buffers[0]);
    if (const int input = s.buffer("I"); input >= 0) blocks.input = block_of(s.buffers[static_cast<std::size_t>(input)]);
    return blocks;
}

// A convolution that may read or write blocks: one nest, or Winograd's three.
struct Movable {
    std::string site;
    std::vector<Term> nests;                        // as they run now
    std::string input, output;                      // values
    std::vector<std::string> added{};               // values
    std::map<Blocks, std::vector<Term>> layouts{};  // by the rules; a nest whose layout is another one is naive
};

// Naive nests in every layout that the rules give.
class LayoutRules {
public:
    explicit LayoutRules(const Target& target)
        : machine_(vector_machine(target)),
          book_(book_with_phase("layouts", target.rules, shipped("rules/algorithms.rules"))),
          phase_(book_->find_phase("layouts")) {}

    explicit operator bool() const { return phase_ != nullptr; }

    // Equal nests, all naive: each layout once. Sites of one shape share their answer.
    const std::map<Blocks, Term>& of(const Term& nest) {
        const Term naive = nest_of(statement_of(nest_parts(nest).statement));
        const auto [at, fresh] = known_.try_emplace(naive);
        if (fresh)
            for (Term& made : equal_terms(naive, *book_, *phase_, {.strict_fp = false, .proven = true, .gpu = {}, .cpu = machine_}, most_layouts)) {
                const Blocks blocks = blocks_of(made);
                at->second.try_emplace(blocks, std::move(made));
            }
        return at->second;
    }

private:
    VectorMachine machine_;
    std::shared_ptr<const RuleBook> book_;
    const Phase* phase_;
    std::unordered_map<Term, std::map<Blocks, Term>> known_;
};

// The first nest reads the input, and the last one writes the output.
std::map<Blocks, std::vector<Term>> layouts_of(const std::vector<Term>& nests, LayoutRules& rules) {
    std::map<Blocks, std::vector<Term>> all;
    if (nests.size() == 1) {
        for (const auto& [blocks, nest] : rules.of(nests[0])) all[blocks] = {blocks == Blocks{} ? nests[0] : nest};
        return all;
    }
    for (const auto& [first_blocks, first] : rules.of(nests.front()))
        for (const auto& [last_blocks, last] : rules.of(nests.back())) {
            std::vector<Term> row = nests;
            if (first_blocks.input > 0) row.front() = first;
            if (last_blocks.output > 0) row.back() = last;
            all[{first_blocks.input, last_blocks.output}] = std::move(row);
        }
    return all;
}

// Convolutions that compute everything.
std::vector<Movable> movable_sites(const Graph& graph, const NetworkPlan& plan, LayoutRules& rules) {
    std::vector<Movable> all;
    std::map<std::string, std::size_t> place;
    for (const NetworkPlan::Step& step : plan.steps) {
        const Node* node = step.nest ? graph.find(step.nest->site) : nullptr;
        if (!node || node->op != "conv2d" || !node->domain.whole()) continue;
        const auto [at, fresh] = place.try_emplace(node->name, all.size());
        if (fresh) all.push_back({.site = node->name, .nests = {}, .input = "", .output = ""});
        Movable& m = all[at->second];
        m.nests.push_back(step.nest->nest);
        m.output = step.nest->operands[0].value;
        const Statement s = statement_of(nest_parts(step.nest->nest).statement);
        for (std::size_t i = 1; i < s.buffers.size(); ++i) {
            const std::string& value = step.nest->operands[i].value;
            if (value.empty()) continue;
            if (s.buffers[i].name != "I")
                m.added.push_back(value);
            else if (fresh)
                m.input = value;  // a later nest of a row reads a scratch of the row
        }
    }
    std::erase_if(
        all, [](const Movable& m) { return std::any_of(m.nests.begin(), m.nests.end(), [](const Term& nest) { return !nest_parts(nest).restore.empty(); }); });
    for (Movable& m : all) m.layouts = layouts_of(m.nests, rules);
    std::erase_if(all, [](const Movable& m) { return m.layouts.size() < 2; });
    return all;
}

// By value: how many channels a block has, where the value may lie in blocks. Its writer and all of its readers have to take such blocks.
std::map<std::string, std::int64_t> blocks_on_offer(const Graph& graph, const NetworkPlan& plan, const std::vector<Movable>& sites) {
    std::map<std::string, int> uses;  // of all kinds
    const auto use = [&](const std::string& value) { ++uses[value]; };
    for (const GraphInput& in : graph.inputs) use(in.name);
    for (const std::string& out : graph.outputs) use(out);
    for (const auto& [value, in] : plan.inside) use(value), use(in.first);
    for (const NetworkPlan::Step& step : plan.steps)
        for (const std::string& value : step.values()) use(value);
    const auto sizes = [](const Movable& m, std::int64_t Blocks::*side) {
        std::set<std::int64_t> all;
        for (const auto& [blocks, nests] : m.layouts) all.insert(blocks.*side);
        return all;
    };
    struct Value {
        std::set<std::int64_t> sizes;
        int uses = 0;
        bool written = false;
    };
    std::map<std::string, Value> values;
    const auto meet = [&](const std::string& value, const std::set<std::int64_t>& those, bool writes) {
        auto [at, fresh] = values.try_emplace(value, Value{those});
        if (!fresh) std::erase_if(at->second.sizes, [&](std::int64_t k) { return !those.contains(k); });
        ++at->second.uses, at->second.written |= writes;
    };
    for (const Movable& m : sites) {
        meet(m.output, sizes(m, &Blocks::output), true);
        meet(m.input, sizes(m, &Blocks::input), false);
        for (const std::string& value : m.added) meet(value, sizes(m, &Blocks::output), false);
    }
    std::map<std::string, std::int64_t> offered;
    for (const auto& [name, v] : values)
        if (v.written && v.uses == uses[name] && !v.sizes.empty() && *v.sizes.rbegin() > 0) offered[name] = *v.sizes.rbegin();
    return offered;
}

// What is added to an output lies as the output does: values that must agree are one.
void agree_on_added(const std::vector<Movable>& sites, std::map<std::string, std::int64_t>& offered) {
    for (bool changed = true; changed;) {
        changed = false;
        for (const Movable& m : sites)
            for (const std::string& value : m.added) {
                const auto a = offered.find(value), b = offered.find(m.output);
                const bool one_way = (a == offered.end()) != (b == offered.end()),
                           two_sizes = a != offered.end() && b != offered.end() && a->second != b->second;
                if (one_way) offered.erase(a == offered.end() ? b : a), changed = true;
                if (two_sizes) a->second = b->second = std::min(a->second, b->second), changed = true;
            }
    }
}

// One way to run a convolution.
struct Way {
    Blocks blocks;
    std::vector<Term> nests;
    double ms;
};

// The times of nests: those that run now as they are, the others with the best schedule that tuning finds.
class Times {
public:
    Times(const OptimizeRequest& request, const Target& target, const std::vector<Movable>& sites, Measurer& measurer, Progress& progress) {
        std::vector<Candidate> now;
        for (const Movable& m : sites)
            for (const Term& nest : m.nests) now.push_back({nest, request.target});
        const std::vector<Measured> before = measurer.measure(now);
        for (std::size_t i = 0; i < now.size(); ++i) known_[now[i].nest] = {now[i].nest, before[i]};
        std::vector<Term> other;
        for (const Movable& m : sites)
            for (const auto& [blocks, nests] : m.layouts)
                for (const Term& nest : nests)
                    if (!known_.contains(nest)) other.push_back(nest);
        TuneOptions options = tune_options(request, target, std::max(1, request.trials / 2));
        options.seconds *= share_of_time;
        const std::vector<TunedNest> tuned = tune(other, measurer, options, progress);
        for (std::size_t i = 0; i < other.size(); ++i) known_[other[i]] = {tuned[i].nest, tuned[i].best};
    }

    // None where a nest could not be timed.
    std::optional<Way> way(const Blocks& blocks, const std::vector<Term>& nests) const {
        Way way{blocks, {}, 0};
        for (const Term& nest : nests) {
            const auto& [scheduled, time] = known_.at(nest);
            if (!time.latency) return std::nullopt;
            way.nests.push_back(scheduled), way.ms += time.latency->median_ms;
        }
        return way;
    }

private:
    std::unordered_map<Term, std::pair<Term, Measured>> known_;
};

// One site of the integer program for each convolution. Whoever reads a value reads it as its writer writes it.
std::vector<std::vector<SiteOption>> options_of(const std::vector<Movable>& sites, const std::vector<std::vector<Way>>& ways,
                                                const std::map<std::string, std::int64_t>& offered) {
    std::map<std::string, std::size_t> writer;
    for (std::size_t s = 0; s < sites.size(); ++s) writer[sites[s].output] = s;
    std::vector<std::vector<SiteOption>> options(sites.size());
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (std::size_t w = 0; w < ways[s].size(); ++w) {
            SiteOption option{w, ways[s][w].ms, 0, 0};
            const auto agree = [&](const std::string& value, std::int64_t block) {
                if (!offered.contains(value)) return;
                SiteOption::Company company{writer.at(value), {}};
                for (std::size_t o = 0; o < ways[company.site].size(); ++o)
                    if (ways[company.site][o].blocks.output == block) company.options.push_back(o);
                option.only_with.push_back(std::move(company));
            };
            agree(sites[s].input, ways[s][w].blocks.input);
            for (const std::string& value : sites[s].added) agree(value, ways[s][w].blocks.output);
            options[s].push_back(std::move(option));
        }
    return options;
}

}  // namespace

Schedules with_layouts(const OptimizeRequest& request, const Graph& graph, const Schedules& schedules, const Target& target, Measurer& measurer,
                       Progress& progress) {
    LayoutRules rules(target);
    if (!rules || target.gpu() || target.reach != Reach::here) return schedules;
    const NetworkPlan plan = plan_without_constants(graph, schedules, target);
    std::vector<Movable> sites = movable_sites(graph, plan, rules);
    std::map<std::string, std::int64_t> offered = blocks_on_offer(graph, plan, sites);
    agree_on_added(sites, offered);
    if (offered.empty()) return schedules;
    const auto possible = [&](const std::string& value, std::int64_t block) {
        const auto found = offered.find(value);
        return block == 0 || (found != offered.end() && found->second == block);
    };
    for (Movable& m : sites) std::erase_if(m.layouts, [&](const auto& l) { return !possible(m.input, l.first.input) || !possible(m.output, l.first.output); });

    progress.advance(0, fmt::format("trying {} values in blocks of channels", offered.size()));
    const Times times(request, target, sites, measurer, progress);
    std::vector<std::vector<Way>> ways(sites.size());  // the first is what runs now
    double plain = 0;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        for (const auto& [blocks, nests] : sites[s].layouts)
            if (auto way = times.way(blocks, nests)) ways[s].push_back(std::move(*way));
        if (ways[s].empty() || ways[s].front().blocks != Blocks{}) return schedules;
        plain += ways[s].front().ms;
    }
    const ChooseResult best = choose(options_of(sites, ways, offered), {});
    if (!best.choice || best.choice->latency_ms > (1 - least_gain) * plain) return schedules;
    Schedules out = schedules;
    std::size_t blocked = 0;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        const Way& way = ways[s][best.choice->picked[s]];
        if (way.blocks == Blocks{}) continue;
        out[sites[s].site] = way.nests.size() == 1 ? way.nests[0] : with_nests(schedules.at(sites[s].site), way.nests);
        ++blocked;
    }
    progress.note(fmt::format("{} of {} convolutions write or read blocks of channels: {:.3f} ms instead of {:.3f}, by the nests alone", blocked, sites.size(),
                              best.choice->latency_ms, plain));
    return out;
}

}  // namespace loopegg
