#include "egraph/runner.hpp"

#include <algorithm>

namespace loopegg {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t keep_bytes = std::size_t{1} << 20;  // room for matches up to this is kept from one iteration to the next

double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

std::string_view name_of(StopReason reason) {
    switch (reason) {
        case StopReason::saturated: return "saturated";
        case StopReason::iterations: return "iterations";
        case StopReason::nodes: return "nodes";
        case StopReason::seconds: return "seconds";
        case StopReason::bytes: return "bytes";
        case StopReason::cancelled: return "cancelled";
    }
    return "";
}

Runner::Runner(EGraph& graph, std::vector<Rewrite> rules) : graph_(graph), index_(graph), states_(rules.size()) {
    bool facts = false, nodes = false;
    for (Rewrite& r : rules) {
        for (const Guard& g : r.guards) facts = true, nodes |= !g.facts_only;
        for (const Choice& c : r.choices) facts = true, nodes |= !c.facts_only;
        rules_.push_back(std::make_shared<const CompiledRewrite>(std::move(r)));
    }
    if (facts) graph.watch_classes(nodes);
}

RunReport Runner::run(const RunOptions& options) {
    RunReport report;
    const Clock::time_point began = Clock::now();
    Budget budget;
    if (options.limits.seconds < 1e8)
        budget.deadline = began + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.limits.seconds));
    budget.bytes = options.limits.bytes;
    for (RuleState& r : states_) {
        r.times_banned = r.banned_until = 0;
        if (pops_ != graph_.pops()) r.seen = 0, r.unfinished = {};
    }
    pops_ = graph_.pops();
    graph_.rebuild();
    auto over = [&]() -> std::optional<StopReason> {
        if (graph_.node_count() >= options.limits.nodes) return StopReason::nodes;
        if (Clock::now() > budget.deadline) return StopReason::seconds;
        if (budget.bytes != ~std::size_t{0} && graph_.bytes() > budget.bytes) return StopReason::bytes;
        return std::nullopt;
    };
    std::optional<StopReason> stop;
    std::vector<Flat<NodeId>> matches(rules_.size());
    for (std::size_t iteration = 0; !stop; ++iteration) {
        if (iteration == options.limits.iterations) {
            stop = StopReason::iterations;
            break;
        }
        if ((stop = over())) break;
        IterationReport it;
        const Clock::time_point started = Clock::now();
        const std::uint32_t now = graph_.next_epoch();
        const std::size_t nodes_before = graph_.node_bound(), classes_before = graph_.class_count(), edges_before = graph_.edges().size();
        const std::size_t bound_before = graph_.class_bound();
        std::uint32_t seen = now;
        for (const RuleState& r : states_) seen = std::min(seen, r.seen);
        index_.update(seen);
        for (Flat<NodeId>& m : matches) m.clear();
        std::size_t match_bytes = 0;
        for (const RuleState& r : states_) match_bytes += r.unfinished.matches.bytes();
        bool resting = false;
        for (std::size_t i = 0; i < rules_.size() && !stop; ++i) {
            RuleReport& rule = it.rules.emplace_back();
            rule.rule = rules_[i]->rule().name;
            if (options.scheduler == Scheduler::backoff && iteration < states_[i].banned_until) {
                rule.banned = resting = true;
                continue;
            }
            Budget own = budget;
            match_bytes -= states_[i].unfinished.matches.bytes();
            if (own.bytes != ~std::size_t{0}) own.bytes -= std::min(own.bytes, match_bytes);
            if (options.scheduler == Scheduler::backoff) own.matches = options.match_limit << states_[i].times_banned;
            const SearchEnd end = search(graph_, index_, {*rules_[i], states_[i].seen, options.search, own}, matches[i], states_[i].unfinished);
            const std::size_t width = rules_[i]->query().atoms.size();
            rule.matches = matches[i].size() / width;
            if (end == SearchEnd::too_many) {
                rule.matches = std::max(rule.matches, own.matches + 1);
                match_bytes += states_[i].unfinished.matches.bytes();
                matches[i].bytes() < keep_bytes ? matches[i].clear() : matches[i].release();
                states_[i].banned_until = iteration + 1 + (options.ban_length << states_[i].times_banned);
                ++states_[i].times_banned;
                rule.banned = resting = true;
                continue;
            }
            if (end == SearchEnd::out_of_time) stop = StopReason::seconds;
            if (end == SearchEnd::out_of_memory) stop = StopReason::bytes;
            match_bytes += matches[i].bytes();
        }
        it.search_seconds = since(started);
        report.peak_bytes = std::max(report.peak_bytes, graph_.bytes() + match_bytes);
        const Clock::time_point applying = Clock::now();
        if (!stop) {
            for (std::size_t i = 0; i < rules_.size() && !stop; ++i) {
                if (it.rules[i].banned) continue;
                const Applied applied = apply(graph_, rules_[i], matches[i].span(), options.limits.nodes, budget);
                it.rules[i].applications = applied.effective;
                report.peak_bytes = std::max(report.peak_bytes, graph_.bytes() + match_bytes);
                if (matches[i].bytes() >= keep_bytes) {  // here, so that the graph grows into what the matches took
                    match_bytes -= matches[i].bytes();
                    matches[i].release();
                }
                if (!applied.complete)
                    stop = over().value_or(StopReason::nodes);
                else
                    states_[i].seen = now, states_[i].unfinished = {};
            }
        }
        it.apply_seconds = since(applying);
        const Clock::time_point rebuilding = Clock::now();
        graph_.set_current_rule(Symbol{});
        graph_.rebuild();
        it.rebuild_seconds = since(rebuilding);
        report.peak_bytes = std::max(report.peak_bytes, graph_.bytes());
        it.nodes = graph_.node_count();
        it.classes = graph_.class_count();
        it.edges = graph_.edges().size();
        it.seconds = since(started);
        report.iterations.push_back(std::move(it));
        const bool changed = graph_.node_bound() != nodes_before || graph_.class_count() != classes_before || graph_.class_bound() != bound_before ||
                             graph_.edges().size() != edges_before;
        if (!stop && !changed && !resting) stop = StopReason::saturated;
        if (!stop && !changed && resting) {
            // Nothing else can happen before a rest ends: end the shortest now.
            std::size_t first = ~std::size_t{0};
            for (const RuleState& r : states_)
                if (r.banned_until > iteration + 1) first = std::min(first, r.banned_until);
            if (first != ~std::size_t{0})
                for (RuleState& r : states_)
                    if (r.banned_until == first) r.banned_until = iteration + 1;
        }
        if (options.after_iteration && !options.after_iteration(report.iterations.back()) && !stop) stop = StopReason::cancelled;
    }
    report.stop = *stop;
    report.seconds = since(began);
    return report;
}

}  // namespace loopegg
