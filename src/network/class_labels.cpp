#include "network/class_labels.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "nest/net/net.hpp"

namespace loopegg {
namespace {

bool is_width(std::string_view op) { return op == "write" || op == "read" || op == "lack" || op == "within"; }

void add(StageWork& to, const StageWork& more) { to.macs += more.macs, to.dense_macs += more.dense_macs, to.weights += more.weights, to.sites += more.sites; }

const LabelSet& one_label_of_nothing() {
    static const LabelSet label{{}, {0}, {0}, {0}, {}, {{}}};
    return label;
}

}  // namespace

// The labels of one class while they are offered.
class ClassLabels::Gathering {
public:
    Gathering(const ClassLabels& all, Entry& entry) : all_(all), entry_(entry) {}

    std::uint32_t way(Way way) {
        entry_.ways.push_back(way);
        return static_cast<std::uint32_t>(entry_.ways.size() - 1);
    }

    const std::vector<std::size_t>& open() const { return entry_.open; }

    // A label that adds nothing, or points alone.
    void offer_nothing(std::uint32_t way) { offer_layer(LayerWork{}, {way, 0, 0}); }

    void offer_layer(const LayerWork& work, const LabelOrigin& origin) {
        Sum sum(all_, entry_.open);
        if (work.stage) sum.left[sum.slot(*work.stage)] = work.work;
        pool(none, {}).offer(work.ms, work.points + sum.closed_points(), work.variance, sum.left.data(), origin);
    }

    // All sums of a label of `all_x` and a label of `all_y`, and points that the way itself costs. `rest`: the class that the sums wait for.
    void offer_sums(ClassId rest, const LabelSet& all_x, const LabelSet& all_y, double points, std::uint32_t way, std::pair<std::size_t, std::size_t> factors) {
        LabelPool& into = pool(rest, factors);
        const Fewer fewer(all_, all_x, all_y);
        const LabelSet &x = fewer.x(), &y = fewer.y();
        Sum sum(all_, entry_.open);
        std::vector<std::size_t> x_slots, y_slots;
        for (std::size_t stage : x.open) x_slots.push_back(sum.slot(stage));
        for (std::size_t stage : y.open) y_slots.push_back(sum.slot(stage));
        const Groups xs(x), ys(y);
        std::vector<double> closed(xs.count * ys.count, -1);  // points of the stages that close here: equal for equal work
        for (std::uint32_t i = 0; i < x.size(); ++i)
            for (std::uint32_t k = 0; k < y.size(); ++k) {
                std::fill(sum.left.begin(), sum.left.end(), StageWork{});
                for (std::size_t s = 0; s < x_slots.size(); ++s) add(sum.left[x_slots[s]], x.left(i)[s]);
                for (std::size_t s = 0; s < y_slots.size(); ++s) add(sum.left[y_slots[s]], y.left(k)[s]);
                double& here = closed[xs.of[i] * ys.count + ys.of[k]];
                if (here < 0) here = sum.closed_points();
                into.offer(x.ms[i] + y.ms[k], points + here + x.points[i] + y.points[k], x.variance[i] + y.variance[k], sum.left.data(),
                           {way, fewer.place_of_x(i), fewer.place_of_y(k)});
            }
    }

    // The factors of the class; where all stages are closed, one factor that waits for nothing.
    void finish() {
        std::map<ClassId, std::vector<std::size_t>> by_rest;
        for (std::size_t i = 0; i < pools_.size(); ++i) by_rest[pools_[i].rest].push_back(i);
        std::vector<Factor> gathered;
        for (const auto& [rest, members] : by_rest) gathered.push_back(merged(rest, members));
        if (!entry_.open.empty() || (gathered.size() <= 1 && (gathered.empty() || gathered[0].rest == none))) {
            entry_.factors = std::move(gathered);
            return;
        }
        entry_.closing = std::move(gathered);
        LabelPool sums({}, all_.precision_, all_.whole_);
        for (std::uint32_t c = 0; c < entry_.closing.size(); ++c) {
            const Factor& f = entry_.closing[c];
            const Fewer fewer(all_, f.labels, f.rest == none ? one_label_of_nothing() : all_.entries_.at(f.rest).factors.at(0).labels);
            const LabelSet &x = fewer.x(), &y = fewer.y();
            for (std::uint32_t i = 0; i < x.size(); ++i)
                for (std::uint32_t k = 0; k < y.size(); ++k)
                    sums.offer(x.ms[i] + y.ms[k], x.points[i] + y.points[k], x.variance[i] + y.variance[k], nullptr,
                               {c, fewer.place_of_x(i), fewer.place_of_y(k)});
        }
        entry_.factors.clear();
        entry_.factors.push_back({none, sums.take(), {}});
    }

private:
    // Two sets of labels, of which there are so few that all pairs can be added up.
    class Fewer {
    public:
        Fewer(const ClassLabels& all, const LabelSet& x, const LabelSet& y) : x_(&x), y_(&y) {
            const std::size_t pairs = all.options_.max_pairs, even = static_cast<std::size_t>(std::sqrt(static_cast<double>(pairs)));
            if (x.size() * y.size() <= pairs) return;
            const auto reduced = [&](const LabelSet& labels, const LabelSet& other) {
                return fewer_labels(labels, std::max(even, pairs / std::max<std::size_t>(1, other.size())), all.precision_, all.whole_);
            };
            if (x.size() > even) fewer_x_ = reduced(x, y), x_ = &fewer_x_;
            if (y.size() > even) fewer_y_ = reduced(y, x), y_ = &fewer_y_;
        }
        const LabelSet& x() const { return *x_; }
        const LabelSet& y() const { return *y_; }
        std::uint32_t place_of_x(std::uint32_t i) const { return x_ == &fewer_x_ ? fewer_x_.origin[i].first : i; }
        std::uint32_t place_of_y(std::uint32_t k) const { return y_ == &fewer_y_ ? fewer_y_.origin[k].first : k; }

    private:
        const LabelSet *x_, *y_;
        LabelSet fewer_x_, fewer_y_;
    };

    // The open stages of the class, and stages that close in it.
    struct Sum {
        Sum(const ClassLabels& all, const std::vector<std::size_t>& open) : all(all), open(open.size()), stages(open), left(open.size()) {}

        std::size_t slot(std::size_t stage) {
            const auto at = std::find(stages.begin(), stages.end(), stage);
            if (at == stages.end()) stages.push_back(stage), left.push_back({});
            return static_cast<std::size_t>(std::find(stages.begin(), stages.end(), stage) - stages.begin());
        }
        double closed_points() const {
            double points = 0;
            for (std::size_t i = open; i < stages.size(); ++i) points += all.loss_.points(stages[i], left[i]);
            return points;
        }

        const ClassLabels& all;
        std::size_t open;
        std::vector<std::size_t> stages;
        std::vector<StageWork> left;
    };

    // Labels with equal work.
    struct Groups {
        explicit Groups(const LabelSet& labels) : of(labels.size()) {
            std::map<std::vector<double>, std::size_t> known;
            for (std::size_t i = 0; i < labels.size(); ++i) {
                std::vector<double> key;
                for (const StageWork& w : labels.left(i)) key.insert(key.end(), {w.macs, w.dense_macs, w.weights, w.sites});
                of[i] = known.try_emplace(std::move(key), known.size()).first->second;
            }
            count = std::max<std::size_t>(1, known.size());
        }
        std::vector<std::size_t> of;
        std::size_t count;
    };

    // Labels with the same rest whose parts come from the same factors.
    struct Pool {
        ClassId rest;
        std::pair<std::size_t, std::size_t> factors;
        LabelPool labels;
    };

    LabelPool& pool(ClassId rest, std::pair<std::size_t, std::size_t> factors) {
        for (Pool& p : pools_)
            if (p.rest == rest && p.factors == factors) return p.labels;
        pools_.push_back({rest, factors, LabelPool(entry_.open, all_.precision_, all_.whole_)});
        return pools_.back().labels;
    }

    Factor merged(ClassId rest, const std::vector<std::size_t>& members) {
        Factor out{rest, {}, {}};
        std::vector<LabelSet> sets;
        for (std::size_t m : members) sets.push_back(pools_[m].labels.take());
        if (sets.size() == 1) {
            out.labels = std::move(sets[0]);
            out.parts.assign(out.labels.size(), pools_[members[0]].factors);
            return out;
        }
        LabelPool all(entry_.open, all_.precision_, all_.whole_);
        for (std::uint32_t m = 0; m < sets.size(); ++m)
            for (std::uint32_t i = 0; i < sets[m].size(); ++i)
                all.offer(sets[m].ms[i], sets[m].points[i], sets[m].variance[i], sets[m].left(i).data(), {m, i, 0});
        out.labels = all.take();
        for (LabelOrigin& origin : out.labels.origin) {
            out.parts.push_back(pools_[members[origin.way]].factors);
            origin = sets[origin.way].origin[origin.first];
        }
        return out;
    }

    const ClassLabels& all_;
    Entry& entry_;
    std::vector<Pool> pools_;
};

ClassLabels::ClassLabels(const NetworkGraph& network, const StagewiseLoss& loss, LayerCosts& costs, const FrontOptions& options)
    : network_(network), graph_(network.graph()), loss_(loss), costs_(costs), options_(options) {
    for (std::size_t e = 0; e < graph_.edges().size(); ++e) edges_[graph_.find(graph_.edges()[e].from)].push_back(e);
    measure_original();
    precision_ = {options.mixing_precision, options.points_precision, options.max_points, std::max(0.0, loss.enough_variance() - other_variance_),
                  options.max_labels,       options.optimistic};
    find_sites(network_.root());
    labels_of(network_.root());
}

const LabelSet& ClassLabels::root() const {
    static const LabelSet nothing;
    const Entry& entry = entries_.at(network_.root());
    return entry.factors.empty() ? nothing : entry.factors[0].labels;
}

// Sites get numbers, and stages their whole work.
void ClassLabels::measure_original() {
    whole_.resize(loss_.stages()), of_stage_.resize(loss_.stages());
    double variance = 0;
    for (const NetLayer& l : layers_of(network_.term())) {
        const std::size_t number = numbers_.emplace(l.site, numbers_.size()).first->second;
        const auto work = costs_.of(l.site, l.nest);
        if (work) variance += work->variance;
        if (!work || !work->stage) continue;
        add(whole_[*work->stage], work->work);
        of_stage_[*work->stage].push_back(number);
    }
    other_variance_ = std::max(0.0, loss_.variance() - variance);
}

const std::vector<bool>& ClassLabels::find_sites(ClassId c) {
    Entry& entry = entries_[c];
    if (entry.reached) return entry.sites;
    entry.reached = true;
    std::vector<bool>& sites = entry.sites;
    sites.resize(numbers_.size());
    const auto gather = [&](ClassId below) {
        const std::vector<bool>& more = find_sites(graph_.find(below));
        for (std::size_t i = 0; i < sites.size(); ++i)
            if (more[i]) sites[i] = true;
    };
    for (NodeId n : graph_.nodes(c)) {
        const NodeView node = graph_.node(n);
        if (node.op.text() == "layer" && node.children.size() == 2) {
            const auto number = numbers_.find(net_site(graph_.smallest_term(graph_.find(node.children[0]))).name);
            if (number != numbers_.end()) sites[number->second] = true;
            continue;
        }
        for (ClassId child : node.children)
            if (network_.facts().net(graph_.find(child))) gather(child);
    }
    if (const auto edges = edges_.find(c); edges != edges_.end())
        for (std::size_t e : edges->second)
            if (network_.facts().net(graph_.find(graph_.edges()[e].to))) gather(graph_.edges()[e].to);
    return sites;
}

bool ClassLabels::closes(const std::vector<bool>& sites, std::size_t stage) const {
    return std::all_of(of_stage_[stage].begin(), of_stage_[stage].end(), [&](std::size_t s) { return sites[s]; });
}

bool ClassLabels::touches(const std::vector<bool>& sites, std::size_t stage) const {
    return std::any_of(of_stage_[stage].begin(), of_stage_[stage].end(), [&](std::size_t s) { return sites[s]; });
}

std::vector<std::string> ClassLabels::names_of(const std::vector<bool>& sites) const {
    std::vector<std::string> names(sites.size());
    for (const auto& [name, number] : numbers_)
        if (sites[number]) names[number] = name;
    std::erase(names, "");
    return names;
}

const ClassLabels::Entry* ClassLabels::labels_of(ClassId c) {
    Entry& entry = entries_.at(c);
    if (entry.done) return &entry;
    if (entry.busy) return nullptr;  // a network is no part of itself
    entry.busy = true;
    for (std::size_t s = 0; s < loss_.stages(); ++s)
        if (touches(entry.sites, s) && !closes(entry.sites, s) && entry.open.size() < LabelPool::max_open) entry.open.push_back(s);
    Gathering gathering(*this, entry);
    for (NodeId n : graph_.nodes(c)) offer_node(c, n, gathering);
    if (const auto edges = edges_.find(c); edges != edges_.end())
        for (std::size_t e : edges->second)
            if (!options_.refused || !options_.refused(graph_.edges()[e], names_of(entry.sites))) offer_edge(e, gathering);
    gathering.finish();
    for (const Factor& f : entry.factors) kept_ += f.labels.size();
    entry.done = true, entry.busy = false;
    return &entry;
}

void ClassLabels::offer_edge(std::size_t edge, Gathering& gathering) {
    const ClassId to = graph_.find(graph_.edges()[edge].to);
    const Entry* variant = network_.facts().net(to) ? labels_of(to) : nullptr;
    if (!variant) return;
    const std::uint32_t way = gathering.way({{}, edge, to, none});
    for (std::size_t f = 0; f < variant->factors.size(); ++f)
        gathering.offer_sums(variant->factors[f].rest, variant->factors[f].labels, one_label_of_nothing(), 0, way, {f, 0});
}

void ClassLabels::offer_node(ClassId c, NodeId n, Gathering& gathering) {
    const NodeView node = graph_.node(n);
    const std::string& op = node.op.text();
    if (op == "layer" && node.children.size() == 2) return offer_layer(n, gathering);
    std::vector<ClassId> parts;
    std::vector<NetSizes> sizes;
    for (ClassId child : node.children)
        if (const NetSizes* s = network_.facts().net(graph_.find(child))) parts.push_back(graph_.find(child)), sizes.push_back(*s);
    const NetSizes* whole = network_.facts().net(c);
    if (!whole || parts.size() != net_parts(op)) return;
    const bool nothing = op == "none" || (is_width(op) && !sizes[0].computes && sizes[0].channelwise());
    if (parts.empty() || nothing) return gathering.offer_nothing(gathering.way({n, {}, none, none}));
    if (parts.size() < 2) return;  // a width that no rule moved into the layers: nothing shows the work
    const std::string joining = op == "join" ? graph_.smallest_term(graph_.find(node.children[0])).op().text() : "";
    if (!parts_fit(op, joining, *whole, sizes)) return;
    double points = 0;
    for (std::size_t i : {0u, 1u})  // where only one part of a join reads what comes in
        if (op == "join" && sizes[i].written() == 0 && sizes[i].fresh()) points += unread_points(parts[1 - i]);
    offer_pair(n, parts[0], parts[1], points, gathering);
}

void ClassLabels::offer_pair(NodeId n, ClassId x, ClassId y, double points, Gathering& gathering) {
    const Entry *first = labels_of(x), *second = labels_of(y);
    if (!first || !second) return;
    const std::uint32_t way = gathering.way({n, {}, x, y});
    const bool closed = second->open.empty() && second->factors.size() == 1 && second->factors[0].labels.size() > 1;
    const bool waits = closed && !first->open.empty() && !gathering.open().empty();
    for (std::size_t f = 0; f < first->factors.size(); ++f) {
        const Factor& a = first->factors[f];
        if (waits) {
            if (a.rest == none) gathering.offer_sums(y, a.labels, one_label_of_nothing(), points, way, {f, 0});
            continue;
        }
        for (std::size_t g = 0; g < second->factors.size(); ++g) {
            const Factor& b = second->factors[g];
            if (a.rest == none || b.rest == none)  // no network of a row of stages waits for two rests
                gathering.offer_sums(a.rest != none ? a.rest : b.rest, a.labels, b.labels, points, way, {f, g});
        }
    }
}

void ClassLabels::offer_layer(NodeId n, Gathering& gathering) {
    const NodeView node = graph_.node(n);
    const NetSite site = net_site(graph_.smallest_term(graph_.find(node.children[0])));
    const std::vector<NestVariant>& variants = variants_of(graph_.find(node.children[1]));
    const std::uint32_t way = gathering.way({n, {}, none, none});
    const std::size_t allowed = site.kept ? 1 : variants.size();  // the first one is the nest as it is
    for (std::uint32_t v = 0; v < allowed; ++v)
        if (const auto work = costs_.of(site.name, variants[v].nest)) gathering.offer_layer(*work, {way, v, 0});
}

// What it costs that nothing reads what the class leaves unread of its input.
double ClassLabels::unread_points(ClassId c) {
    for (NodeId n : graph_.nodes(c)) {
        const NodeView node = graph_.node(n);
        const std::string& op = node.op.text();
        if (op == "layer" && node.children.size() == 2) {
            const auto work =
                costs_.of(net_site(graph_.smallest_term(graph_.find(node.children[0]))).name, graph_.smallest_term(graph_.find(node.children[1])));
            return work ? loss_.unread_points(work->unread) : 0;
        }
        if (op == "row" || op == "stream") return unread_points(graph_.find(node.children[0]));
    }
    return 0;
}

const std::vector<ClassLabels::NestVariant>& ClassLabels::variants_of(ClassId nest) {
    const auto [known, fresh] = variants_.try_emplace(nest);
    if (!fresh) return known->second;
    std::vector<NestVariant>& found = known->second;
    found.push_back({nest, {}, graph_.smallest_term(nest)});
    // Loops in another order are another class with the same instances: one of them is enough.
    const auto fact = [&](ClassId c) { return network_.facts()[c].id; };
    std::set<std::uint32_t> seen{fact(nest)};
    for (std::size_t i = 0; i < found.size(); ++i) {
        const auto edges = edges_.find(found[i].eclass);
        if (edges == edges_.end()) continue;
        for (std::size_t e : edges->second) {
            const ClassId to = graph_.find(graph_.edges()[e].to);
            if (!seen.insert(fact(to)).second) continue;
            std::vector<std::size_t> way = found[i].edges;
            way.push_back(e);
            found.push_back({to, std::move(way), graph_.smallest_term(to)});
        }
    }
    return found;
}

// --- how a label was made ---------------------------------------------------------------------------------------------------

Taken ClassLabels::taken(std::size_t label) const { return taken(network_.root(), 0, label, 0); }

Taken ClassLabels::taken(ClassId c, std::size_t factor, std::size_t label, std::size_t rest) const {
    const Entry& entry = entries_.at(c);
    const Factor* f = &entry.factors.at(factor);
    if (!entry.closing.empty()) {
        const LabelOrigin& sum = f->labels.origin[label];
        f = &entry.closing[sum.way], label = sum.first, rest = sum.second;
    }
    const LabelOrigin& origin = f->labels.origin[label];
    const Way& way = entry.ways[origin.way];
    const auto [first, second] = f->parts.empty() ? std::pair<std::size_t, std::size_t>{} : f->parts[label];
    Taken out{c, way.node, way.edge, {}};
    if (way.first != none) out.parts.push_back(taken_part(way.first, first, origin.first, f->rest, rest));
    if (way.second != none) out.parts.push_back(taken_part(way.second, second, origin.second, f->rest, rest));
    if (way.node && graph_.node(*way.node).op.text() == "layer") out.parts.push_back(taken_nest(*way.node, origin.first));
    return out;
}

Taken ClassLabels::taken_part(ClassId part, std::size_t factor, std::size_t label, ClassId rest_class, std::size_t rest) const {
    return part == rest_class ? taken(part, 0, rest, 0) : taken(part, factor, label, rest);
}

Taken ClassLabels::taken_nest(NodeId layer, std::size_t variant) const {
    const ClassId nest = graph_.find(graph_.node(layer).children[1]);
    const NestVariant& v = variants_.at(nest)[variant];
    Taken out{v.eclass, {}, {}, {}};
    for (std::size_t i = v.edges.size(); i-- > 0;) {
        std::vector<Taken> to;
        to.push_back(std::move(out));
        out = Taken{graph_.find(graph_.edges()[v.edges[i]].from), {}, v.edges[i], std::move(to)};
    }
    return out;
}

Term ClassLabels::term_of(const Taken& t) const {
    if (t.edge) return term_of(t.parts.front());
    if (!t.node) return graph_.smallest_term(t.from);
    const NodeView node = graph_.node(*t.node);
    std::vector<Term> children;
    std::size_t next = 0;
    for (ClassId child : node.children) {
        const ClassId at = graph_.find(child);
        const bool part = next < t.parts.size() && (network_.facts().net(at) || network_.facts().domain(at));
        children.push_back(part ? term_of(t.parts[next++]) : graph_.smallest_term(at));
    }
    return Term(node.op, std::move(children));
}

}  // namespace loopegg
