#include "extract/search_terms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <unordered_set>

#include "base/error.hpp"
#include "extract/acyclic.hpp"
#include "extract/cycles.hpp"
#include "extract/term_space.hpp"

namespace loopegg {
namespace {

// A term, with the node that each part of the term was made from.
struct Derivation;
using DerivationPtr = std::shared_ptr<const Derivation>;
struct Derivation {
    NodeIndex node;
    Term term;
    std::vector<DerivationPtr> children;
};

double operators_in(const Term& term) {
    double all = 1;
    for (const Term& child : term.children()) all += operators_in(child);
    return all;
}

struct Candidate {
    DerivationPtr made;
    double cost = 0;
    bool expanded = false;
};

class Search {
public:
    Search(const SerializedEGraph& egraph, ClassIndex root, std::size_t k, const TermCost& cost, const TermSearch& options)
        : egraph_(egraph),
          root_(root),
          kept_(std::max<std::size_t>(k, 16)),
          cost_(cost),
          options_(options),
          smallest_(cheapest_trees(egraph, [](NodeIndex) { return 1.0; })),
          usual_(egraph.classes.size()),
          usual_cost_(egraph.classes.size(), std::numeric_limits<double>::infinity()),
          part_of_(egraph.classes.size(), no_index) {
        const auto parts = cyclic_parts(egraph);
        for (std::uint32_t p = 0; p < parts.size(); ++p)
            for (ClassIndex c : parts[p]) part_of_[c] = p;
        cyclic_ = !parts.empty();
    }

    // Asks about every term of a small space.
    void all(const TermSpace& space) {
        std::vector<Term> every;
        if (cyclic_) {
            const unsigned long count = space.count().get_ui();
            for (unsigned long i = 0; i < count; ++i) every.push_back(space.at(i));
        } else {
            std::vector<std::optional<std::vector<Term>>> known(egraph_.classes.size());
            every = terms_of(root_, known);
        }
        for (std::size_t from = 0; from < every.size(); from += options_.together)
            ask_plain({every.begin() + static_cast<std::ptrdiff_t>(from),
                       every.begin() + static_cast<std::ptrdiff_t>(std::min(from + options_.together, every.size()))});
    }

    void run(const TermSpace& space) {
        if (smallest_.choice[root_] == no_index) return;
        for (ClassIndex c : smallest_.order) usual_[c] = make(smallest_.choice[c]);
        for (NodeIndex n : egraph_.classes[root_].nodes)
            if (finite(n)) propose(make(n));
        flush();
        std::mt19937_64 random(options_.seed);
        const auto draw = [&](std::size_t most) {
            for (std::size_t i = 0; i < most && left() > 0; ++i) propose(derivation_of(root_, space.sample(random)));
            flush();
        };
        const auto drawn = static_cast<std::size_t>(options_.drawn * static_cast<double>(options_.evaluations));
        draw(drawn);
        std::vector<Candidate> aside;  // the best terms of the places where the search looked before
        std::size_t stuck = 0;
        while (left() > 0) {
            const auto next = std::find_if(pool_.begin(), pool_.end(), [](const Candidate& c) { return !c.expanded; });
            if (next == pool_.end()) {  // no term near the best is better: the search draws other terms, and continues from the best of them
                aside.insert(aside.end(), pool_.begin(), pool_.end());
                pool_.clear();
                draw(std::max<std::size_t>(drawn / 2, 8));
                stuck = pool_.empty() ? stuck + 1 : 0;
                if (stuck > 3) break;  // almost every term was asked about
                continue;
            }
            next->expanded = true;
            const DerivationPtr from = next->made;  // the pool changes while its neighbours are asked about
            vary(from, [](const DerivationPtr& whole) { return whole; });
            flush();
        }
        for (Candidate& c : aside) keep(std::move(c));
    }

    FoundTerms found(std::size_t k, bool complete) {
        FoundTerms out{{}, evaluated_, complete};
        for (const Candidate& c : pool_)
            if (out.best.size() < k && std::isfinite(c.cost)) out.best.push_back({c.made->term, c.cost, operators_in(c.made->term)});
        return out;
    }

private:
    std::size_t left() const { return options_.evaluations > evaluated_ + waiting_.size() ? options_.evaluations - evaluated_ - waiting_.size() : 0; }

    // Whether a node goes around no cycle: no child on a cycle with its class has a smallest term as large as that of the class.
    bool finite(NodeIndex n) const {
        const ClassIndex own = egraph_.nodes[n].eclass;
        return std::all_of(egraph_.nodes[n].children.begin(), egraph_.nodes[n].children.end(), [&](ClassIndex c) {
            return smallest_.choice[c] != no_index && c != own &&
                   !(part_of_[c] != no_index && part_of_[c] == part_of_[own] && smallest_.cost[c] >= smallest_.cost[own]);
        });
    }

    DerivationPtr make(NodeIndex n) const {
        std::vector<DerivationPtr> children;
        for (ClassIndex c : egraph_.nodes[n].children) children.push_back(usual_[c]);
        return make(n, std::move(children));
    }
    DerivationPtr make(NodeIndex n, std::vector<DerivationPtr> children) const {
        std::vector<Term> terms;
        for (const DerivationPtr& c : children) terms.push_back(c->term);
        return std::make_shared<Derivation>(Derivation{n, Term(egraph_.nodes[n].op, std::move(terms)), std::move(children)});
    }

    // For e-graphs without cycles: makes the terms of every class once, from the terms of its children. No class has more terms than the root.
    const std::vector<Term>& terms_of(ClassIndex c, std::vector<std::optional<std::vector<Term>>>& known) const {
        if (known[c]) return *known[c];
        std::vector<Term> made;
        for (NodeIndex n : egraph_.classes[c].nodes) {
            if (!finite(n)) continue;
            const SerializedNode& node = egraph_.nodes[n];
            std::vector<std::vector<Term>> rows{{}};  // children so far
            for (ClassIndex child : node.children) {
                std::vector<std::vector<Term>> longer;
                for (const std::vector<Term>& row : rows)
                    for (const Term& t : terms_of(child, known)) longer.push_back(row), longer.back().push_back(t);
                rows = std::move(longer);
            }
            for (std::vector<Term>& row : rows) made.push_back(Term(node.op, std::move(row)));
        }
        return known[c].emplace(std::move(made));
    }

    // The nodes by which a class holds a term.
    DerivationPtr derivation_of(ClassIndex c, const Term& term) const {
        for (NodeIndex n : egraph_.classes[c].nodes) {
            const SerializedNode& node = egraph_.nodes[n];
            if (node.children.size() != term.size() || node.op != term.op().text()) continue;
            std::vector<DerivationPtr> children;
            for (std::size_t i = 0; i < term.size(); ++i) {
                DerivationPtr child = derivation_of(node.children[i], term[i]);
                if (!child) break;
                children.push_back(std::move(child));
            }
            if (children.size() == term.size()) return make(n, std::move(children));
        }
        return nullptr;
    }

    // Every term that differs from this one in one choice: at the top, and then in each child.
    template <class Rebuild>
    void vary(const DerivationPtr& part, const Rebuild& rebuild) {
        const ClassIndex c = egraph_.nodes[part->node].eclass;
        for (NodeIndex n : egraph_.classes[c].nodes)
            if (n != part->node && finite(n) && left() > 0) propose(rebuild(sibling(part, n)));
        for (std::size_t i = 0; i < part->children.size() && left() > 0; ++i) {
            const std::function<DerivationPtr(const DerivationPtr&)> around = [&, i](const DerivationPtr& child) {
                std::vector<DerivationPtr> children = part->children;
                children[i] = child;
                return rebuild(make(part->node, std::move(children)));
            };
            vary(part->children[i], around);
        }
    }

    // A derivation by another node of the same class, with the parts of this derivation where both nodes need the same classes.
    DerivationPtr sibling(const DerivationPtr& part, NodeIndex n) const {
        std::vector<DerivationPtr> children;
        for (ClassIndex c : egraph_.nodes[n].children) {
            const auto same =
                std::find_if(part->children.begin(), part->children.end(), [&](const DerivationPtr& d) { return egraph_.nodes[d->node].eclass == c; });
            children.push_back(same == part->children.end() ? usual_[c] : *same);
        }
        return make(n, std::move(children));
    }

    void propose(DerivationPtr made) {
        if (!made || left() == 0 || !seen_.insert(made->term).second) return;
        waiting_.push_back(std::move(made));
        if (waiting_.size() >= options_.together) flush();
    }

    void flush() {
        if (waiting_.empty()) return;
        std::vector<Term> terms;
        for (const DerivationPtr& d : waiting_) terms.push_back(d->term);
        const std::vector<double> costs = cost_(terms);
        require(costs.size() == terms.size(), "a cost must be given for every term");
        evaluated_ += terms.size();
        std::vector<DerivationPtr> asked;
        asked.swap(waiting_);
        for (std::size_t i = 0; i < asked.size(); ++i) {
            note_parts(asked[i], costs[i]);
            keep({asked[i], costs[i], false});
        }
    }

    void ask_plain(const std::vector<Term>& terms) {
        const std::vector<double> costs = cost_(terms);
        require(costs.size() == terms.size(), "a cost must be given for every term");
        evaluated_ += terms.size();
        for (std::size_t i = 0; i < terms.size(); ++i) keep({std::make_shared<Derivation>(Derivation{no_index, terms[i], {}}), costs[i], true});
    }

    void keep(Candidate c) {
        const auto at = std::upper_bound(pool_.begin(), pool_.end(), c.cost, [](double cost, const Candidate& other) { return cost < other.cost; });
        if (std::isnan(c.cost) || (at == pool_.end() && pool_.size() >= kept_)) return;
        pool_.insert(at, std::move(c));
        if (pool_.size() > kept_) pool_.pop_back();
    }

    void note_parts(const DerivationPtr& d, double cost) {
        const ClassIndex c = egraph_.nodes[d->node].eclass;
        if (cost < usual_cost_[c]) usual_cost_[c] = cost, usual_[c] = d;
        for (const DerivationPtr& child : d->children) note_parts(child, cost);
    }

    const SerializedEGraph& egraph_;
    ClassIndex root_;
    std::size_t kept_;
    const TermCost& cost_;
    const TermSearch& options_;
    Trees smallest_;
    std::vector<DerivationPtr> usual_;  // by class: the part of this class in the best term so far that has one
    std::vector<double> usual_cost_;
    std::vector<std::uint32_t> part_of_;  // by class: which cycles the class is on; no_index: none
    bool cyclic_ = false;
    std::unordered_set<Term> seen_;
    std::vector<DerivationPtr> waiting_;
    std::vector<Candidate> pool_;  // cheapest first
    std::size_t evaluated_ = 0;
};

}  // namespace

FoundTerms search_terms(const SerializedEGraph& egraph, ClassIndex root, std::size_t k, const TermCost& cost, const TermSearch& options) {
    const TermSpace space(egraph, root, {.size = {}, .direct = true});
    Search search(egraph, root, k, cost, options);
    const bool few = space.count() <= options.evaluations;
    if (few)
        search.all(space);
    else
        search.run(space);
    return search.found(k, few);
}

}  // namespace loopegg
