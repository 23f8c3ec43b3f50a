#include "rewrite/net_rewriter.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "nest/net/net.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "rules/net_judge.hpp"

namespace loopegg {

// An e-graph without rules: it knows the facts of terms, which guards and lists ask for.
struct NetRewriter::Scratch {
    std::shared_ptr<NestAnalysis> facts;
    EGraph graph;

    explicit Scratch(std::int64_t channels_step) {
        NestAnalysis::Options options;
        options.channels_step = channels_step;
        facts = std::make_shared<NestAnalysis>(options);
        graph.attach(facts);
    }
    // The classes of variables; none where one of them represents nothing yet.
    std::optional<std::vector<ClassId>> classes(const std::vector<Symbol>& variables, const Bound& bound) {
        std::vector<ClassId> all;
        for (Symbol v : variables) {
            const auto it = bound.find(v);
            if (it == bound.end()) return {};
            all.push_back(graph.add(it->second));
        }
        return all;
    }
};

namespace {

Term with_values(const Term& pattern, const std::map<Symbol, Term>& bound) {
    if (pattern.size() == 0) {
        const auto it = is_variable(pattern.op()) ? bound.find(pattern.op()) : bound.end();
        return it == bound.end() ? pattern : it->second;
    }
    std::vector<Term> children;
    for (const Term& c : pattern.children()) children.push_back(with_values(c, bound));
    return Term(pattern.op(), std::move(children));
}

bool is_width(const Term& net) { return net.is("write", 2) || net.is("read", 2) || net.is("lack", 2) || net.is("within", 2); }

bool is_capacity(const Guard& guard) { return guard.batch != nullptr; }

}  // namespace

bool matches(const Term& pattern, const Term& term, std::map<Symbol, Term>& bound) {
    if (pattern.size() == 0) {
        if (!is_variable(pattern.op())) return pattern == term;
        const auto [at, fresh] = bound.try_emplace(pattern.op(), term);
        return fresh || at->second == term;
    }
    if (pattern.op() != term.op() || pattern.size() != term.size()) return false;
    for (std::size_t i = 0; i < pattern.size(); ++i)
        if (!matches(pattern[i], term[i], bound)) return false;
    return true;
}

NetRewriter::NetRewriter(const RuleBook& book, std::int64_t channels_step) : scratch_(std::make_unique<Scratch>(channels_step)) {
    for (const Rule* rule : book.rules()) {
        if (!is_net_rule(*rule) || rule->left.size() != 1) continue;
        Rewrite rewrite = bind_rule(*rule, Binding{scratch_->facts, {}}).front();
        if (rule->arrow == Arrow::neural)
            neural_.push_back(std::move(rewrite));
        else if (is_width(rewrite.left.front().term))
            widths_.push_back(std::move(rewrite));
    }
}

NetRewriter::~NetRewriter() = default;

std::vector<std::string> NetRewriter::neural_rules() const {
    std::vector<std::string> names;
    for (const Rewrite& r : neural_) names.push_back(r.name);
    return names;
}

const Rewrite* NetRewriter::find(const std::string& rule) const {
    for (const auto* all : {&neural_, &widths_})
        for (const Rewrite& r : *all)
            if (r.name == rule) return &r;
    return nullptr;
}

bool NetRewriter::choose(const Rewrite& rewrite, const ChosenValues& values, bool offered, Bound& bound, std::string& why) {
    for (const Choice& choice : rewrite.choices) {
        const auto given = values.find(choice.variable.text());
        const auto classes = scratch_->classes(choice.needs, bound);
        if (given != values.end() && !offered) {
            bound[choice.variable] = given->second;
            continue;
        }
        if (!classes) return why = choice.text + " depends on what has no value", false;
        const std::vector<Term> all = choice.values(scratch_->graph, *classes);
        if (given == values.end()) {
            if (all.size() != 1) return why = rewrite.name + " needs " + choice.variable.text(), false;
            bound[choice.variable] = all.front();
        } else if (std::find(all.begin(), all.end(), given->second) == all.end()) {
            return why = to_string(given->second) + " is none of " + choice.text, false;
        } else {
            bound[choice.variable] = given->second;
        }
    }
    return true;
}

bool NetRewriter::guards_hold(const Rewrite& rewrite, const Bound& bound, std::string& why) {
    for (const Guard& guard : rewrite.guards) {
        if (is_capacity(guard)) continue;  // whoever applies the rule has asked, or decides
        const auto classes = scratch_->classes(guard.needs, bound);
        if (!classes) return why = guard.text + " depends on what has no value", false;
        if (const Verdict v = guard.test(scratch_->graph, *classes); !v.allowed) return why = guard.text + " does not hold: " + v.why, false;
    }
    return true;
}

std::optional<Term> NetRewriter::apply(const std::string& rule, const Term& term, const ChosenValues& values, bool offered, std::string* why) {
    const Rewrite* rewrite = find(rule);
    require(rewrite != nullptr, "a rule over networks");
    std::string reason = "it is no instance of " + to_string(rewrite->left.front().term);
    Bound bound;
    const bool done =
        matches(rewrite->left.front().term, term, bound) && choose(*rewrite, values, offered, bound, reason) && guards_hold(*rewrite, bound, reason);
    if (!done) {
        if (why) *why = reason;
        return {};
    }
    return with_values(rewrite->right.front().term, bound);
}

std::optional<Term> NetRewriter::width_step(const Term& net, const TreePath& at, std::vector<NetStep>& steps) {
    for (const Rewrite& rewrite : widths_) {
        const Term& left = rewrite.left.front().term;
        if (left.op() != net.op()) continue;
        Bound bound;
        std::string why;
        if (!matches(left, net, bound) || !choose(rewrite, {}, true, bound, why) || !guards_hold(rewrite, bound, why)) continue;
        steps.push_back({rewrite.name, false, at, {}});
        return with_values(rewrite.right.front().term, bound);
    }
    return {};
}

Term NetRewriter::normal(Term net, TreePath& at, std::vector<NetStep>& steps) {
    for (;;) {
        if (auto next = width_step(net, at, steps)) {
            net = std::move(*next);
            continue;
        }
        bool changed = false;
        for (std::uint32_t i = 0; i < net.size(); ++i) {
            if (!is_net(net[i])) continue;
            at.push_back(i);
            Term child = normal(net[i], at, steps);
            at.pop_back();
            if (child == net[i]) continue;
            std::vector<Term> children(net.children().begin(), net.children().end());
            children[i] = std::move(child);
            net = Term(net.op(), std::move(children)), changed = true;
        }
        if (!changed) return net;
    }
}

std::vector<std::string> narrowed_sites(const Term& before, const Term& after) {
    const auto outputs = [](const NetLayer& l) { return output_channels(statement_of(nest_parts(l.nest).statement)); };
    const std::vector<NetLayer> left = layers_of(after);
    std::vector<std::string> sites;
    for (const NetLayer& was : layers_of(before)) {
        const auto is = std::find_if(left.begin(), left.end(), [&](const NetLayer& l) { return l.site == was.site; });
        if (is == left.end() || outputs(*is) < outputs(was)) sites.push_back(was.site);
    }
    return sites;
}

namespace {

// One place where a rule takes something from a site.
struct RulePlace {
    TreePath at;
    Term made;
    std::size_t sites;  // that it takes something from
};

class PlaceFinder {
public:
    PlaceFinder(NetRewriter& rewriter, std::string rule, const ChosenValues& values, std::string site)
        : rewriter_(rewriter), rule_(std::move(rule)), values_(values), site_(std::move(site)) {}

    // Whether the site is in the part.
    bool visit(const Term& net, TreePath& at) {
        if (net.is("layer", 2)) return net_site(net[0]).name == site_;
        bool inside = false;
        for (std::uint32_t i = 0; i < net.size(); ++i) {
            if (!is_net(net[i])) continue;
            at.push_back(i);
            inside |= visit(net[i], at);
            at.pop_back();
        }
        if (inside) try_here(net, at);
        return inside;
    }

    std::vector<RulePlace> places;
    std::string refusal;  // of the last place whose guards refuse

private:
    void try_here(const Term& net, const TreePath& at) {
        std::string why;
        try {
            const auto made = rewriter_.apply(rule_, net, values_, false, &why);
            if (!made) {
                if (why.find("is no instance of") == std::string::npos) refusal = why;
                return;
            }
            const std::vector<std::string> sites = narrowed_sites(net, *made);
            if (std::find(sites.begin(), sites.end(), site_) != sites.end()) places.push_back({at, *made, sites.size()});
        } catch (const UserError& e) {
            refusal = e.diagnostics()[0].message;
        }
    }

    NetRewriter& rewriter_;
    std::string rule_;
    const ChosenValues& values_;
    std::string site_;
};

}  // namespace

std::optional<Graph> apply_at_site(NetRewriter& rewriter, const std::string& rule, const ChosenValues& values, const Graph& graph, const std::string& site) {
    const Term net = net_of(graph);
    PlaceFinder finder(rewriter, rule, values, site);
    TreePath at;
    finder.visit(net, at);
    std::stable_sort(finder.places.begin(), finder.places.end(), [](const RulePlace& a, const RulePlace& b) { return a.sites < b.sites; });
    for (const RulePlace& place : finder.places) try {
            return graph_of(with(net, place.at, place.made), graph);
        } catch (const UserError& e) {
            finder.refusal = e.diagnostics()[0].message;
        }
    if (!finder.refusal.empty()) throw UserError(finder.refusal);
    return {};
}

Term NetRewriter::normal_form(const Term& net, std::vector<NetStep>& steps) {
    TreePath at;
    return normal(net, at, steps);
}

}  // namespace loopegg
