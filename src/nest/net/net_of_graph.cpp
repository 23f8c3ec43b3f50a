// Turns a graph into a network term. Dominators tell where the branches of a join begin.
#include <algorithm>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "graph/flops.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"
#include "nest/net/net.hpp"
#include "nest/net/resize.hpp"

namespace loopegg {
namespace {

// A part of the term, and how much work its sites are.
struct Part {
    Term term;
    double work = 0;
};

Part leaf(Term term) { return {std::move(term), 0}; }

Part made(const char* op, std::vector<Term> words, std::vector<Part> parts) {
    Part out;
    for (Part& part : parts) {
        out.work += part.work;
        words.push_back(std::move(part.term));
    }
    out.term = Term(op, std::move(words));
    return out;
}

class NetBuilder {
public:
    NetBuilder(const Graph& graph, const std::vector<std::string>& kept) : graph_(graph), kept_(kept.begin(), kept.end()), streams_(streams_of(graph)) {
        share_prefixes();
        for (const GraphInput& input : graph.inputs) parent_[input.name] = graph.inputs.size() == 1 ? "" : root, depth_[input.name] = 1;
        if (graph.inputs.size() > 1) parent_[root] = "", depth_[root] = 0;
        for (const Node& node : graph.nodes) {
            const std::vector<std::string> from = read_by(node);
            for (const std::string& value : from) ++readers_[value];
            if (from.empty()) continue;
            std::string common = from.front();
            for (const std::string& value : from) common = meet(common, value);
            parent_[node.name] = common, depth_[node.name] = depth_[common] + 1;
        }
    }

    Part build() {
        if (graph_.outputs.size() == 1 && graph_.inputs.size() == 1) return part(graph_.outputs[0], graph_.inputs[0].name);
        std::vector<Part> all;
        for (const Node& node : graph_.nodes)
            if (is_site(node)) all.push_back(layer(node));
        return tangle(std::move(all), "", "");
    }

private:
    static constexpr const char* root = "(inputs)";

    static bool joins_channels(const Node& node) { return node.op == "concat" && node.integer("axis") == 1; }

    // A join whose operands begin with all operands of an earlier join reads that join and the rest. So dense blocks become rows of joins of two values, as
    // people draw them.
    void share_prefixes() {
        std::map<std::vector<std::string>, std::string> joins;
        for (const Node& node : graph_.nodes) {
            if (!joins_channels(node)) continue;
            for (std::size_t n = node.inputs.size() - 1; n >= 2; --n) {
                const auto rest = node.inputs.begin() + static_cast<std::ptrdiff_t>(n);
                const auto found = joins.find({node.inputs.begin(), rest});
                if (found == joins.end()) continue;
                std::vector<std::string>& inputs = inputs_[node.name] = {found->second};
                inputs.insert(inputs.end(), rest, node.inputs.end());
                break;
            }
            joins.try_emplace(node.inputs, node.name);
        }
    }

    const std::vector<std::string>& inputs_of(const Node& node) const {
        const auto found = inputs_.find(node.name);
        return found == inputs_.end() ? node.inputs : found->second;
    }

    // The values that a node reads and that depend on the network's inputs. Parameters are left out, because they belong to the node.
    std::vector<std::string> read_by(const Node& node) const {
        std::vector<std::string> out;
        for (const std::string& input : inputs_of(node))
            if (parent_.contains(input)) out.push_back(input);
        return out;
    }

    std::string meet(std::string a, std::string b) const {
        while (a != b) {
            std::string& deeper = depth_.at(a) >= depth_.at(b) ? a : b;
            deeper = parent_.at(deeper);
        }
        return a;
    }

    Part layer(const Node& node) const {
        return {Term("layer", {net_site({node.name, kept_.contains(node.name)}), channels_first(node)}), static_cast<double>(macs(node))};
    }

    // An operator that is no site, by what it does to the channels of the only value that it reads.
    Part channel_operator(const Node& node, const std::string& from) const {
        const auto in = streams_.of.find(from), out = streams_.of.find(node.name);
        if (in == streams_.of.end() || out == streams_.of.end() || in->second.streams != out->second.streams || out->second.places % in->second.places != 0)
            return leaf(Term("opaque", {net_name(node.name)}));
        const std::int64_t places = out->second.places / in->second.places;
        if (places > 1) return leaf(Term("spread", {Term(places), net_name(node.name)}));
        return leaf(Term("each", {Term(node.op), net_name(node.name)}));
    }

    Part single(const Node& node, const std::string& from) const { return is_site(node) ? layer(node) : channel_operator(node, from); }

    Part tangle(std::vector<Part> parts, const std::string& from, const std::string& to) const {
        const Term between("between", {net_name(from), net_name(to)});
        Part all = parts.empty() ? leaf(Term("same")) : std::move(parts.back());
        if (!parts.empty()) parts.pop_back();
        if (parts.empty()) return made("tangle", {between}, {std::move(all), leaf(Term("same"))});
        while (!parts.empty()) {
            all = made("tangle", {between}, {std::move(parts.back()), std::move(all)});
            parts.pop_back();
        }
        return all;
    }

    // All nodes between `source` and `target`, in whatever way they work together. A value with one reader is in one row with that reader.
    Part tangle_between(const std::string& target, const std::string& source) const {
        std::set<std::string> inside{target};
        for (std::size_t i = graph_.nodes.size(); i-- > 0;)
            if (inside.contains(graph_.nodes[i].name))
                for (const std::string& input : inputs_of(graph_.nodes[i]))
                    if (input != source) inside.insert(input);
        std::vector<std::vector<Part>> rows;
        std::map<std::string, std::size_t> row_of;  // by the value that a row ends with
        for (const Node& node : graph_.nodes) {
            const std::vector<std::string> from = read_by(node);
            if (!inside.contains(node.name) || (from.size() != 1 && !is_site(node))) continue;
            const auto before = from.size() == 1 && readers_.at(from[0]) == 1 ? row_of.find(from[0]) : row_of.end();
            const std::size_t row = before == row_of.end() ? rows.size() : before->second;
            if (row == rows.size()) rows.emplace_back();
            rows[row].push_back(from.size() == 1 ? single(node, from[0]) : layer(node));
            row_of[node.name] = row;
        }
        std::vector<Part> parts;
        for (std::vector<Part>& items : rows)
            if (std::any_of(items.begin(), items.end(), [](const Part& p) { return p.work > 0; })) parts.push_back(row(units(std::move(items))));
        return tangle(std::move(parts), source, target);
    }

    // Whether a value other than `source` is on the way to two of the targets. As branches of a join the targets would hold the sites of that value twice,
    // and where each layer joins all layers before it, the term would double with every layer.
    bool overlap(const std::vector<std::string>& targets, const std::string& source) const {
        std::set<std::string> known;
        for (const std::string& target : targets) {
            std::vector<std::string> left{target};
            std::set<std::string> own{source};
            while (!left.empty()) {
                const std::string value = std::move(left.back());
                left.pop_back();
                if (!own.insert(value).second) continue;
                if (!known.insert(value).second) return true;
                for (std::string& before : read_by(*graph_.find(value))) left.push_back(std::move(before));
            }
        }
        return false;
    }

    Part join(const Node& node, const std::vector<std::string>& from, const std::string& source) const {
        const bool sum = node.op == "add";
        if ((!sum && !joins_channels(node)) || from.size() != inputs_of(node).size() || overlap(from, source)) return tangle_between(node.name, source);
        Part all = part(from[0], source);
        for (std::size_t i = 1; i < from.size(); ++i) {
            Part next = part(from[i], source);
            if (sum && next.work < all.work) std::swap(all, next);
            all = made("join", {Term(sum ? "add" : "concat", {net_name(node.name)})}, {std::move(all), std::move(next)});
        }
        return all;
    }

    Part part(const std::string& target, const std::string& source) const {
        std::vector<Part> items;  // last first
        for (std::string v = target; v != source;) {
            const Node& node = *graph_.find(v);
            const std::vector<std::string> from = read_by(node);
            if (from.size() == 1) {
                items.push_back(single(node, from[0]));
                v = from[0];
            } else {
                v = parent_.at(node.name);
                items.push_back(join(node, from, v));
            }
        }
        std::reverse(items.begin(), items.end());
        return row(with_streams(units(std::move(items))));
    }

    static bool is_each(const Part& p) { return p.term.is("each", 2) || p.term.is("spread", 2); }
    static bool is_residual(const Part& p) {
        const Term& core = p.term.is("row", 2) ? p.term[0] : p.term;
        return core.is("join", 3) && core[0].is("add", 1) && core[1].is("same", 0);
    }

    static Part row(std::vector<Part> parts) {
        if (parts.empty()) return leaf(Term("same"));
        Part all = std::move(parts.back());
        for (std::size_t i = parts.size() - 1; i-- > 0;) all = made("row", {}, {std::move(parts[i]), std::move(all)});
        return all;
    }

    // Operators that work on each channel go into one unit with the part before them.
    static std::vector<Part> units(std::vector<Part> items) {
        std::vector<Part> out;
        for (std::size_t i = 0; i < items.size();) {
            std::vector<Part> unit{std::move(items[i++])};
            const bool alone = is_each(unit[0]);
            while (!alone && i < items.size() && is_each(items[i])) unit.push_back(std::move(items[i++]));
            out.push_back(row(std::move(unit)));
        }
        return out;
    }

    static std::vector<Part> with_streams(std::vector<Part> parts) {
        std::vector<Part> out;
        for (std::size_t i = 0; i < parts.size();) {
            std::vector<Part> run;
            while (i < parts.size() && is_residual(parts[i])) run.push_back(std::move(parts[i++]));
            if (run.empty()) {
                out.push_back(std::move(parts[i++]));
                continue;
            }
            Part writer = out.empty() ? leaf(Term("same")) : std::move(out.back());
            if (!out.empty()) out.pop_back();
            out.push_back(made("stream", {}, {std::move(writer), row(std::move(run))}));
        }
        return out;
    }

    const Graph& graph_;
    std::set<std::string> kept_;
    Streams streams_;
    std::map<std::string, std::vector<std::string>> inputs_;  // of joins that read an earlier join
    std::map<std::string, std::string> parent_;               // the immediate dominator: the nearest value that all ways to this value go through
    std::map<std::string, int> depth_, readers_;
};

}  // namespace

Term net_of(const Graph& graph, const std::vector<std::string>& kept) { return NetBuilder(graph, kept).build().term; }

}  // namespace loopegg
