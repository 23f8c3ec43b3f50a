#include "optimize/shape_space.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "graph/narrow_stream.hpp"
#include "nest/term/net.hpp"
#include "optimize/exact_glob.hpp"

namespace loopegg {
namespace {

// The widths that rules offer, in multiples of `step`; the full width comes last.
std::vector<std::int64_t> choices_of(std::int64_t width, std::int64_t step) {
    std::vector<std::int64_t> out;
    for (std::int64_t w : widths_offered(width))
        if (w = w / step * step; w >= step && (out.empty() || out.back() < w)) out.push_back(w);
    out.push_back(width);
    return out;
}

Application application(std::string rule, std::map<std::string, Term> with = {}, std::string restore = {}) {
    Application a;
    a.rule = std::move(rule), a.with = std::move(with), a.restore = std::move(restore);
    return a;
}

// Names the stage of a value: values with as many places are in one stage, whatever their channels.
std::string places(const Graph& graph, const std::string& node) {
    Shape shape = graph.shape_of(node);
    if (shape.size() > 1) shape.erase(shape.begin() + (shape.size() == 4 ? 1 : static_cast<std::ptrdiff_t>(shape.size()) - 1));
    return to_string(shape);
}

}  // namespace

ShapeSpace::ShapeSpace(const Graph& original, const Sites& sites, int channels_multiple) : original_(original) {
    std::set<std::string> kept, all;
    for (const Site& s : sites.all) (s.kept ? kept : all).insert(s.name);
    const auto free = [&](const std::vector<std::string>& names) {
        return std::none_of(names.begin(), names.end(), [&](const std::string& n) { return kept.contains(n); });
    };
    std::map<std::string, std::size_t> stages;
    const auto stage_of = [&](const std::string& node) { return stages.try_emplace(places(original, node), stages.size()).first->second; };
    const Streams streams = streams_of(original);
    for (const Stream& s : streams.all) {
        if (!s.fixed.empty() || !free(s.writers) || !free(s.readers)) continue;
        Width w{s.writers.front(), s.writers, {}, std::lcm(s.blocks, static_cast<std::int64_t>(channels_multiple)), s.joined, 0};
        const auto site = std::find_if(s.writers.begin(), s.writers.end(), [&](const std::string& n) { return all.contains(n); });
        w.choices = choices_of(s.width, w.step);
        if (site == s.writers.end() || w.choices.size() < 2) continue;
        w.name = *site, w.stage = stage_of(w.name);
        widths_.push_back(std::move(w));
    }
    for (Branch& b : branches_of(original))
        if (free(b.only)) {
            const std::size_t stage = stage_of(b.site);
            branches_.push_back({std::move(b), stage});
        }
    for (const Node& node : original.nodes)
        if (all.contains(node.name) && node.op == "conv2d" && node.domain.whole() && node.integer("groups") == 1 && node.integers("kernel")[0] > 1)
            groupable_.push_back(node.name);
    stages_ = stages.size();
}

std::int64_t ShapeSpace::Width::kept_by(const NetworkShape& shape) const {
    const auto it = shape.widths.find(name);
    return it == shape.widths.end() ? choices.back() : it->second;
}

const ShapeSpace::Width* ShapeSpace::find_width(const std::string& name) const {
    const auto found = std::find_if(widths_.begin(), widths_.end(), [&](const Width& w) { return w.name == name; });
    return found == widths_.end() ? nullptr : &*found;
}

const ShapeSpace::Left& ShapeSpace::without_dropped(const NetworkShape& shape) const {
    constexpr std::size_t most = 512;
    if (const auto known = left_.find(shape.dropped); known != left_.end()) return known->second;
    // A search changes one branch at a time, so it has often seen the network with one branch more.
    std::set<std::string> to_drop = shape.dropped, one_less = shape.dropped;
    const Graph* from = &original_;
    for (const std::string& site : shape.dropped) {
        one_less.erase(site);
        if (const auto known = left_.find(one_less); known != left_.end()) {
            from = &known->second.graph, to_drop = {site};
            break;
        }
        one_less.insert(site);
    }
    Graph graph = *from;
    for (const std::string& site : to_drop)
        if (graph.find(site)) graph = without_branch(graph, branch_written_by(graph, site));
    Streams streams = streams_of(graph);
    if (left_.size() >= most) left_.clear();
    return left_.emplace(shape.dropped, Left{std::move(graph), std::move(streams)}).first->second;
}

// The streams of the remaining network that a shape narrows: a writer of each, and its width.
std::vector<std::pair<std::string, std::int64_t>> ShapeSpace::narrowed_writers(const NetworkShape& shape, const Left& left) const {
    std::vector<std::pair<std::string, std::int64_t>> out;
    std::set<std::size_t> seen;  // one stream of the original may be several streams after additions were dropped
    for (const auto& [name, kept] : shape.widths) {
        const Width* width = find_width(name);
        if (!width || kept >= width->choices.back()) continue;
        for (const std::string& writer : width->writers) {
            const Node* node = left.graph.find(writer);
            const auto s = node && node->op != "parameter" ? left.streams.written_by(writer) : std::nullopt;
            if (s && seen.insert(*s).second) out.emplace_back(writer, kept);
        }
    }
    return out;
}

NetworkShape ShapeSpace::reduced(NetworkShape shape) const {
    const Graph& left = without_dropped(shape).graph;
    std::erase_if(shape.groups, [&](const auto& g) { return !left.find(g.first); });
    std::erase_if(shape.widths, [&](const auto& w) {
        const Width* width = find_width(w.first);
        return !width || std::none_of(width->writers.begin(), width->writers.end(), [&](const std::string& s) { return left.find(s); });
    });
    return shape;
}

std::vector<std::pair<std::string, std::int64_t>> ShapeSpace::narrowed(const NetworkShape& shape) const {
    return narrowed_writers(shape, without_dropped(shape));
}

Plan ShapeSpace::plan(const NetworkShape& shape) const {
    Plan plan;
    const Left& left = without_dropped(shape);
    for (const Depth& d : branches_)  // in the order of the network
        if (shape.dropped.contains(d.branch.site)) plan.steps.push_back({exact_glob(d.branch.site), {application("drop-branch")}});
    for (const auto& [writer, kept] : narrowed_writers(shape, left)) {
        const bool joined = left.streams.all[*left.streams.written_by(writer)].joined;
        plan.steps.push_back(
            {exact_glob(writer),
             {joined ? application("narrow-stream", {{"?w", Term(kept)}}) : application("bottleneck-output", {{"?w", Term(kept)}}, "propagate")}});
    }
    for (const auto& [site, groups] : shape.groups)
        if (left.graph.find(site) && groups > 1)
            plan.steps.push_back({exact_glob(site), {application("group-axes", {{"?a", Term("co")}, {"?b", Term("ci")}, {"?g", Term(groups)}})}});
    return plan;
}

std::optional<Graph> ShapeSpace::network(const NetworkShape& shape) const {
    try {
        const Left& left = without_dropped(shape);
        std::map<std::size_t, std::int64_t> widths;
        for (const auto& [writer, kept] : narrowed_writers(shape, left)) widths[*left.streams.written_by(writer)] = kept;
        Graph graph = with_widths(left.graph, left.streams, widths);
        for (const auto& [site, groups] : shape.groups)
            if (Node* node = graph.find(site)) node->attrs["groups"] = groups;
        if (!shape.groups.empty()) complete(graph);  // with_widths completes the rest
        return graph;
    } catch (const UserError&) {  // groups that do not divide the remaining channels
        return {};
    }
}

double ShapeSpace::distance(const NetworkShape& a, const NetworkShape& b) const {
    struct Stage {
        double branches = 0, dropped = 0, widths = 0, narrowed = 0;
    };
    std::vector<Stage> stages(stages_);
    for (const Depth& d : branches_) {
        Stage& stage = stages[d.stage];
        stage.branches += 1;
        stage.dropped += static_cast<double>(a.dropped.contains(d.branch.site)) - static_cast<double>(b.dropped.contains(d.branch.site));
    }
    for (const Width& w : widths_) {
        const auto log_width = [&](const NetworkShape& shape) { return std::log2(static_cast<double>(w.kept_by(shape))); };
        Stage& stage = stages[w.stage];
        stage.widths += 1, stage.narrowed += std::abs(log_width(a) - log_width(b));
    }
    double sum = 0;
    for (const Stage& s : stages) {
        if (s.branches > 0) sum += std::abs(s.dropped) / s.branches;
        if (s.widths > 0) sum += s.narrowed / s.widths;
    }
    double groups = 0;
    for (const std::string& site : groupable_) {
        const auto log_groups = [&](const NetworkShape& shape) {
            const auto it = shape.groups.find(site);
            return it == shape.groups.end() ? 0.0 : std::log2(static_cast<double>(it->second));
        };
        groups += std::abs(log_groups(a) - log_groups(b));
    }
    return groupable_.empty() ? sum : sum + groups / static_cast<double>(groupable_.size());
}

NetworkShape ShapeSpace::scaled(double width, double depth) const {
    NetworkShape shape;
    if (width < 1)
        for (const Width& w : widths_) {
            const double share = static_cast<double>(w.choices.back()) * width;
            const std::int64_t kept = *std::min_element(w.choices.begin(), w.choices.end(), [&](std::int64_t a, std::int64_t b) {
                return std::abs(static_cast<double>(a) - share) < std::abs(static_cast<double>(b) - share);
            });
            if (kept < w.choices.back()) shape.widths[w.name] = kept;
        }
    for (std::size_t stage = 0; depth < 1 && stage < stages_; ++stage) {
        std::vector<const Depth*> here;
        for (const Depth& d : branches_)
            if (d.stage == stage) here.push_back(&d);
        const std::size_t keep = std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(depth * static_cast<double>(here.size()))));
        for (std::size_t i = keep; i < here.size(); ++i) shape.dropped.insert(here[i]->branch.site);
    }
    return shape;
}

}  // namespace loopegg
