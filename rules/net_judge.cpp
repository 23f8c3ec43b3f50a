#include "rules/net_judge.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/sexpr.hpp"
#include "egraph/explain.hpp"
#include "egraph/runner.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/net.hpp"

namespace loopegg {
namespace {

// No two layers of one test network are alike, because a layer is known by its nest.
std::string layer(int out, int in) {
    return fmt::format("(layer (nest (conv2d 1 1 {} {} 2 2 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow done))))))", out, in);
}
std::string then_relu(const std::string& net) { return "(row " + net + " (each relu))"; }
std::string row(const std::string& a, const std::string& b) { return "(row " + a + " " + b + ")"; }
std::string block(int width, int hidden) { return then_relu("(join add same " + row(then_relu(layer(hidden, width)), layer(width, hidden)) + ")"); }
std::string dense(int in, int growth) { return "(join concat same " + layer(growth, in) + ")"; }

Term completed(const Term& t) {
    if (t.is("nest", 2)) return complete(t);
    std::vector<Term> children;
    for (const Term& c : t.children()) children.push_back(completed(c));
    return children.empty() ? t : Term(t.op(), std::move(children));
}

std::vector<Term> small_networks() {
    const std::string projection = "(join add " + layer(16, 8) + " " + row(then_relu(layer(12, 8)), layer(16, 12)) + ")";
    std::vector<Term> all;
    for (const std::string& text : {
             row(then_relu(layer(8, 3)),
                 row("(stream " + row(block(8, 4), block(8, 6)) + ")", row(then_relu(projection), row("(stream " + block(16, 10) + ")", layer(5, 16))))),
             row(layer(4, 3), row(dense(4, 2), row(dense(6, 3), layer(7, 9)))),
             row(then_relu(layer(8, 3)), row(then_relu(layer(16, 8)), layer(10, 16))),
         })
        all.push_back(completed(parse_term(text)));
    return all;
}

Term replaced(const Term& whole, const Term& part, const Term& by) {
    if (whole == part) return by;
    std::vector<Term> children;
    for (const Term& c : whole.children()) children.push_back(replaced(c, part, by));
    return children.empty() ? whole : Term(whole.op(), std::move(children));
}

std::vector<float> drawn(const Term& nest) {
    const Statement s = statement_of(nest_parts(nest).statement);
    std::mt19937_64 random(hash_of(to_string(nest)).low);
    std::vector<float> w(static_cast<std::size_t>(element_count(s.buffers[static_cast<std::size_t>(s.buffer("W"))].shape)));
    for (float& v : w) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
    return w;
}

const NetLayer* find(const std::vector<NetLayer>& layers, const Term& nest) {
    const auto it = std::find_if(layers.begin(), layers.end(), [&](const NetLayer& l) { return l.nest == nest; });
    return it == layers.end() ? nullptr : &*it;
}

std::optional<std::string> compare(const Term& before, const Term& after) {
    const std::vector<NetLayer> was = layers_of(before), is = layers_of(after);
    bool less = is.size() < was.size();
    std::size_t next = 0;
    for (const NetLayer& l : is) {
        while (next < was.size() && was[next].nest != l.nest) ++next;
        if (next == was.size()) return "has sites on the right that are not on the left, or has them in another order";
        if (l.inputs > was[next].inputs || l.outputs > was[next].outputs) return "computes more of a site on the right than on the left";
        less |= l.inputs < was[next].inputs || l.outputs < was[next].outputs;
        ++next;
    }
    if (!less) return "leaves nothing out: a neural rule must restrict";
    NetValue image{3, std::vector<float>(12)};
    std::mt19937_64 random(5);
    for (float& v : image.values) v = static_cast<float>(static_cast<int>(random() % 5) - 2);
    const auto without = [&](const Term& nest) {  // channels that were left out have no weights
        std::vector<float> w = drawn(nest);
        const NetLayer *then = find(was, nest), *now = find(is, nest);
        const std::size_t row = w.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, then ? then->outputs : 1)),
                          kept = row * static_cast<std::size_t>(now ? now->outputs : 0);
        std::fill(w.begin() + static_cast<std::ptrdiff_t>(std::min(kept, w.size())), w.end(), 0.0f);
        return w;
    };
    const NetValue a = interpret_net(before, image, without), b = interpret_net(after, image, drawn);
    if (a.channels != b.channels || a.values != b.values) return "computes something else than what is left of the network";
    return {};
}

}  // namespace

bool is_net_rule(const Rule& rule) { return is_net(rule.left[0].term); }

std::optional<Refutation> judge_net_rule(const Rule& rule) {
    if (rule.arrow != Arrow::neural) return Refutation{"an exact rule over networks cannot be tried", rule.text};
    int tried = 0;
    for (const Term& net : small_networks()) {
        auto facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = false, .proven = false});
        EGraph graph(EGraph::Options{.proofs = true});
        graph.attach(facts);
        graph.add(net);
        Runner runner(graph, bind_rule(rule, {facts, {}}));
        RunOptions once;
        once.limits.iterations = 1;
        runner.run(once);
        for (const Edge& edge : graph.edges()) {
            const Proof step = explain_edge(graph, edge);
            const Term after = replaced(net, step.from, step.to);
            ++tried;
            std::optional<std::string> why;
            try {
                why = compare(net, after);
            } catch (const UserError& e) {
                why = "gives what is no network: " + e.diagnostics()[0].message;
            }
            if (why) return Refutation{*why, to_string(step.from) + " becomes " + to_string(step.to)};
        }
    }
    if (tried == 0) return Refutation{"could not be tried: no small network has an instance of it that its guards allow", rule.text};
    return {};
}

}  // namespace loopegg
