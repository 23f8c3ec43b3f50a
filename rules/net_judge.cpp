#include "rules/net_judge.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/sexpr.hpp"
#include "egraph/explain.hpp"
#include "egraph/runner.hpp"
#include "nest/net/interpret_net.hpp"
#include "nest/net/net.hpp"
#include "nest/net/net_sizes.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t image_channels = 3, image_places = 4;

// Small networks, put together from parts whose nodes get names of their own.
class Builder {
public:
    std::string layer(int out, int in, bool depthwise = false) {
        const std::string statement =
            depthwise ? fmt::format("conv2d 1 {} 1 1 2 2 1 1 1 1 0 0 1 1", out) : fmt::format("conv2d 1 1 {} {} 2 2 1 1 1 1 0 0 1 1", out, in);
        return fmt::format("(layer {} {})", name(), to_string(channels_first(statement_of(parse_term("(" + statement + ")")))));
    }
    std::string row(const std::string& a, const std::string& b) { return "(row " + a + " " + b + ")"; }
    std::string relu(const std::string& net) { return row(net, "(each relu " + name() + ")"); }
    std::string sum(const std::string& a, const std::string& b) { return "(join (add " + name() + ") " + a + " " + b + ")"; }
    std::string residual(int width, int hidden) { return relu(sum("same", row(relu(layer(hidden, width)), layer(width, hidden)))); }
    std::string dense(int in, int growth) { return "(join (concat " + name() + ") same " + layer(growth, in) + ")"; }
    std::string stream(const std::string& writer, const std::string& blocks) { return "(stream " + writer + " " + blocks + ")"; }

private:
    std::string name() { return to_string(net_name(fmt::format("n{}", ++names_))); }
    int names_ = 0;
};

std::vector<Term> small_networks() {
    Builder b;
    const std::string projection = b.sum(b.layer(16, 8), b.row(b.relu(b.layer(12, 8)), b.layer(16, 12)));
    std::vector<Term> all;
    for (const std::string& text : {
             b.row(b.stream(b.relu(b.layer(8, 3)), b.row(b.residual(8, 4), b.residual(8, 6))),
                   b.row(b.stream(b.relu(projection), b.residual(16, 10)), b.layer(5, 16))),
             b.row(b.layer(4, 3), b.row(b.dense(4, 2), b.row(b.dense(6, 3), b.layer(7, 9)))),
             b.row(b.relu(b.layer(8, 3)), b.row(b.relu(b.layer(16, 8)), b.layer(10, 16))),
             b.row(b.relu(b.layer(8, 3)), b.row(b.relu(b.layer(8, 8, true)), b.layer(10, 8))),
             b.row(b.relu(b.layer(8, 3)), b.row(b.relu(b.layer(8, 8)), b.relu(b.layer(8, 8)))),
         })
        all.push_back(parse_term(text));
    return all;
}

// The network with another term in place of each part in turn.
void each_part(
    const Term& net, const std::function<void(const Term& part, const std::function<Term(const Term&)>& with)>& visit,
    const std::function<Term(const Term&)>& around = [](const Term& t) { return t; }) {
    visit(net, around);
    for (std::size_t i = 0; i < net.size(); ++i)
        if (is_net(net[i]))
            each_part(net[i], visit, [&, i](const Term& part) {
                std::vector<Term> children(net.children().begin(), net.children().end());
                children[i] = part;
                return around(Term(net.op(), std::move(children)));
            });
}

// A small network as the rule finds it: what its sites are in the whole network, and what is left of them.
struct Tried {
    std::vector<NetLayer> layers;
    NetImage output;
};

class NetTrial {
public:
    explicit NetTrial(const Term& net) : net_(net) {
        for (const NetLayer& l : layers_of(net)) weights_.whole[l.site] = l.nest;
        weights_.of = [](const std::string& site, const Term& nest) {
            const Statement s = statement_of(nest_parts(nest).statement);
            std::mt19937_64 random(hash_of(site).low);
            std::vector<float> w(static_cast<std::size_t>(element_count(s.buffers[static_cast<std::size_t>(s.buffer("W"))].shape)));
            for (float& v : w) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
            return w;
        };
        std::mt19937_64 random(5);
        image_ = {image_channels, std::vector<float>(image_channels * image_places)};
        for (float& v : image_.values) v = static_cast<float>(static_cast<int>(random() % 5) - 2);
    }

    // Nothing where the term is no network, or one in which channels are read that nothing writes.
    std::optional<Tried> run(const Term& term) const {
        try {
            if (!sizes(term)) return {};
            return Tried{layers_of(term), interpret_net(term, image_, weights_, memory_)};
        } catch (const UserError&) {
            return {};
        }
    }

    std::optional<std::string> exact(const Tried& before, const Tried& after) const {
        if (before.layers != after.layers) return "leaves other sites, or other channels of them, on the right than on the left";
        if (before.output.channels != after.output.channels || before.output.values != after.output.values) return "computes something else on the right";
        return {};
    }

    std::optional<std::string> neural(const Tried& before, const Tried& after) const {
        bool less = after.layers.size() < before.layers.size();
        std::size_t next = 0;
        for (const NetLayer& l : after.layers) {
            while (next < before.layers.size() && before.layers[next].site != l.site) ++next;
            if (next == before.layers.size()) return "has sites on the right that are not on the left, or has them in another order";
            const Statement was = statement_of(nest_parts(before.layers[next].nest).statement), is = statement_of(nest_parts(l.nest).statement);
            if (input_channels(is) > input_channels(was) || output_channels(is) > output_channels(was))
                return "computes more of a site on the right than on the left";
            less |= l.nest != before.layers[next].nest;
            ++next;
        }
        if (!less) return "leaves nothing out: a neural rule must restrict";
        if (before.output.channels != after.output.channels) return "makes the network write other channels";
        return {};
    }

private:
    // The sizes of a network whose parts all read what others write.
    const std::optional<NetSizes>& sizes(const Term& net) const {
        if (const auto known = sizes_.find(net); known != sizes_.end()) return known->second;
        return sizes_.emplace(net, sizes_of_parts(net)).first->second;
    }
    std::optional<NetSizes> sizes_of_parts(const Term& net) const {
        if (net.is("layer", 2)) return sizes_of(net);
        std::vector<NetSizes> parts;
        for (const Term& child : net.children()) {
            if (!is_net(child)) continue;
            const std::optional<NetSizes>& part = sizes(child);
            if (!part) return {};
            parts.push_back(*part);
        }
        const std::string joining = net.is("join", 3) ? net[0].op().text() : "";
        const NetSizes whole = sizes_of_net(net.op().text(), joining, net.size() > 0 ? net[0].integer().value_or(0) : 0, parts);
        if (!parts_fit(net.op().text(), joining, whole, parts)) return {};
        return whole;
    }

    Term net_;
    mutable std::unordered_map<Term, std::optional<NetSizes>> sizes_;
    NetWeights weights_;
    NetImage image_;
    mutable NetMemory memory_;
};

// The network with each of its streams and widths made narrower, one at a time.
std::vector<Term> narrowed_networks(const Term& net) {
    std::vector<Term> all;
    const auto inside = [](const char* op, std::int64_t number, const Term& part) { return Term(op, {Term(number), part}); };
    each_part(net, [&](const Term& part, const auto& with) {
        if (!part.is("row", 2)) return;
        for (std::int64_t w : {1, 2, 3, 6}) {
            const Term &x = part[0], y = inside("read", w, part[1]);
            all.push_back(with(Term("row", {inside("write", w, x), y})));
            if (x.is("stream", 2)) all.push_back(with(Term("row", {Term("stream", {inside("write", w, x[0]), inside("within", w, x[1])}), y})));
            if (x.is("join", 3)) all.push_back(with(Term("row", {Term("join", {x[0], x[1], inside("write", w, x[2])}), inside("lack", 1, part[1])})));
        }
    });
    return all;
}

bool is_width(const Term& net) { return net.is("write", 2) || net.is("read", 2) || net.is("lack", 2) || net.is("within", 2); }

// A width put upon the parts of what it is put upon, in every way that could mean the same.
std::vector<Term> placed_deeper(const Term& width) {
    const Term& net = width[1];
    std::vector<Term> ways;
    if (net.is("join", 3) && width.is("within", 2))
        for (const char* op : {"read", "lack"}) ways.push_back(Term("write", {width[0], Term(op, {width[0], net})}));
    if (width.is("read", 2))
        if (const auto in = sizes_of(net).in) ways.push_back(Term("lack", {Term(*in - *width[0].integer()), net}));
    if (width.is("lack", 2))
        for (std::int64_t m = 0; m < *width[0].integer(); ++m) ways.push_back(Term("lack", {Term(m), Term("lack", {Term(*width[0].integer() - m), net})}));
    if (!net.is("row", 2) && !net.is("join", 3) && !net.is("stream", 2)) return ways;
    const std::size_t first = net.size() - 2;
    std::vector<std::vector<Term>> parts(2);
    for (std::size_t i : {0u, 1u}) {
        const Term& part = net[first + i];
        parts[i] = {part, Term(width.op(), {width[0], part})};
        for (std::int64_t m : {1, 2, 4, 5, 6}) parts[i].push_back(Term("lack", {Term(m), part}));
    }
    for (const Term& a : parts[0])
        for (const Term& b : parts[1]) {
            std::vector<Term> children(net.children().begin(), net.children().end());
            children[first] = a, children[first + 1] = b;
            ways.push_back(Term(net.op(), std::move(children)));
        }
    return ways;
}

// A network that rules are tried on, and what it computes.
struct Instance {
    Term net;
    Tried tried;
};

// Instances by their parts.
class Instances {
public:
    explicit Instances(std::vector<Instance> all) : all_(std::move(all)) {
        for (std::size_t i = 0; i < all_.size(); ++i) index(all_[i].net, i);
    }
    const std::vector<Instance>& all() const { return all_; }
    const Instance& around(const Term& part) const { return all_[first_with_.at(part)]; }

private:
    void index(const Term& net, std::size_t instance) {
        if (is_net(net) && first_with_.try_emplace(net, instance).second)
            for (const Term& child : net.children()) index(child, instance);
    }

    std::vector<Instance> all_;
    std::unordered_map<Term, std::size_t> first_with_;
};

// An application of the rule: the part of a network that it matched, and what it makes of that part.
std::vector<std::pair<Term, Term>> applications(const Rule& rule, const Instances& instances) {
    auto facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = false, .proven = false});
    EGraph graph(EGraph::Options{.proofs = true});
    graph.attach(facts);
    for (const Instance& instance : instances.all()) graph.add(instance.net);
    for (Rewrite rewrite : bind_rule(rule, Binding{facts, {}})) {
        rewrite.relation = Relation::neural;  // an exact rule, too, keeps its sides apart, so that they can be compared
        RunOptions once;
        once.limits.iterations = 1;
        Runner(graph, {rewrite}).run(once);
    }
    std::vector<std::pair<Term, Term>> all;
    for (const Edge& edge : graph.edges()) {
        const Proof step = explain_edge(graph, edge);
        all.emplace_back(step.from, step.to);
    }
    return all;
}

// What an exact rule has to work on: narrow networks, and the same networks with their widths anywhere between the whole and the layers.
Instances networks_with_widths(const NetTrial& judge, const Term& net) {
    constexpr std::size_t most = 100;
    std::vector<Instance> all;
    std::unordered_set<Term> seen;
    for (const Term& narrow : narrowed_networks(net)) {
        const std::optional<Tried> wanted = judge.run(narrow);
        if (!wanted) continue;  // these parts cannot be narrowed by themselves
        std::vector<Term> same{narrow};
        for (std::size_t i = 0; i < same.size() && same.size() < most; ++i) {
            const Term from = same[i];  // the list moves
            each_part(from, [&](const Term& part, const auto& with) {
                if (!is_width(part)) return;
                for (const Term& deeper : placed_deeper(part)) {
                    const Term whole = with(deeper);
                    if (!seen.insert(whole).second) continue;
                    const std::optional<Tried> tried = judge.run(whole);
                    if (tried && !judge.exact(*wanted, *tried)) same.push_back(whole);
                }
            });
        }
        for (const Term& s : same) all.push_back({s, *wanted});
    }
    return Instances(std::move(all));
}

// A small network, and what rules are tried on that represents it.
struct Ground {
    explicit Ground(const Term& net) : judge(net), whole({{net, *judge.run(net)}}), with_widths(networks_with_widths(judge, net)) {}

    NetTrial judge;
    Instances whole, with_widths;
};

const std::vector<std::unique_ptr<Ground>>& grounds() {
    static const std::vector<std::unique_ptr<Ground>> all = [] {
        std::vector<std::unique_ptr<Ground>> made;
        for (const Term& net : small_networks()) made.push_back(std::make_unique<Ground>(net));
        return made;
    }();
    return all;
}

// What is wrong with the network that an application gives, if anything is.
std::optional<std::string> wrong_with(const Ground& ground, const Instance& instance, const Term& from, const Term& to, bool neural) {
    const std::optional<Tried> after = ground.judge.run(with_replaced(instance.net, from, to));
    if (!after) return "gives what is no network";
    return neural ? ground.judge.neural(instance.tried, *after) : ground.judge.exact(instance.tried, *after);
}

}  // namespace

bool is_net_rule(const Rule& rule) { return is_net(rule.left[0].term); }

std::optional<Refutation> judge_net_rule(const Rule& rule) {
    const bool neural = rule.arrow == Arrow::neural;
    bool tried = false;
    for (const auto& ground : grounds()) {
        const Instances& instances = neural ? ground->whole : ground->with_widths;
        for (const auto& [from, to] : applications(rule, instances)) {
            tried = true;
            if (const auto why = wrong_with(*ground, instances.around(from), from, to, neural))
                return Refutation{*why, to_string(from) + " becomes " + to_string(to)};
        }
    }
    // An exact rule is proved all the same, or refused for what its proof lacks.
    if (!tried && neural) return Refutation{"could not be tried: no small network has an instance of it that its guards allow", rule.text};
    return {};
}

}  // namespace loopegg
