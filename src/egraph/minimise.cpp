// Makes proofs shorter.
//
// Between two steps at the root of a term, the steps below it act on its children independently: they are sorted by child, and
// each child's own proof is shortened by itself. Then whole terms are compared: what comes back to an earlier term is cut, and a
// run of steps whose ends are one rule application apart becomes that application.
#include <algorithm>
#include <unordered_map>

#include "egraph/compiled.hpp"
#include "egraph/explain.hpp"

namespace loopegg {
namespace {

struct Move {
    ProofStep step;
    Term result;  // what the rewritten part becomes
};
using Moves = std::vector<Move>;

// Binds the variables of a pattern so that it equals the term.
bool bind(const Term& pattern, const Term& term, std::vector<std::pair<Symbol, Term>>& substitution) {
    if (pattern.size() == 0 && is_variable(pattern.op())) {
        for (const auto& [variable, bound] : substitution)
            if (variable == pattern.op()) return bound == term;
        substitution.emplace_back(pattern.op(), term);
        return true;
    }
    if (pattern.op() != term.op() || pattern.size() != term.size()) return false;
    for (std::size_t i = 0; i < pattern.size(); ++i)
        if (!bind(pattern[i], term[i], substitution)) return false;
    return true;
}

class Shortener {
public:
    Shortener(const EGraph& graph, std::size_t work) : work_(work) {
        for (const auto& r : graph.rules()) {
            rules_.push_back(r->rule());
            const Rewrite& rule = rules_.back();
            // A guarded application needs evidence that only the recorded ones have.
            plain_.push_back(rule.relation == Relation::exact && rule.guards.empty() && rule.choices.empty() && rule.left.size() == 1);
        }
    }
    const std::vector<Rewrite>& rules() const { return rules_; }

    Moves shorten(const Term& from, Moves moves) {
        if (moves.size() < 2) return moves;
        Moves sorted;
        Term now = from;
        for (std::size_t i = 0; i < moves.size();) {
            if (moves[i].step.at.empty()) {
                now = moves[i].result;
                sorted.push_back(std::move(moves[i++]));
                continue;
            }
            std::vector<Moves> by_child(now.size());
            for (; i < moves.size() && !moves[i].step.at.empty(); ++i) {
                Move m = std::move(moves[i]);
                const std::uint32_t k = m.step.at[0];
                m.step.at.erase(m.step.at.begin());
                by_child[k].push_back(std::move(m));
            }
            for (std::uint32_t k = 0; k < by_child.size(); ++k) {
                for (Move& m : shorten(now[k], std::move(by_child[k]))) {
                    m.step.at.insert(m.step.at.begin(), k);
                    now = with(now, m.step.at, m.result);
                    sorted.push_back(std::move(m));
                }
            }
        }
        return jump(from, std::move(sorted));
    }

private:
    Moves jump(const Term& from, Moves moves) {
        std::vector<Term> terms{from};
        for (const Move& m : moves) terms.push_back(with(terms.back(), m.step.at, m.result));
        const std::size_t n = moves.size();
        std::unordered_map<Term, std::size_t> last;
        for (std::size_t i = 0; i <= n; ++i) last[terms[i]] = i;
        // Breadth first from the first term: by a step of the proof, by an equal term further on, by one application of a rule.
        std::vector<std::size_t> previous(n + 1, n + 1);
        std::vector<Move> by(n + 1);
        std::vector<std::size_t> queue{last[terms[0]]};
        const std::size_t first = queue[0];
        previous[first] = first;
        for (std::size_t q = 0; q < queue.size() && previous[n] > n; ++q) {
            const std::size_t i = queue[q];
            auto reach = [&](std::size_t j, Move move) {
                const std::size_t k = last[terms[j]];
                if (previous[k] <= n) return;
                previous[k] = i;
                by[k] = std::move(move);
                queue.push_back(k);
            };
            for (std::size_t j = n; j > i + 1 && work_ > 0; --j) {
                if (previous[j] <= n) continue;
                --work_;
                Move move;
                if (one_step(terms[i], terms[j], move)) reach(j, std::move(move));
            }
            reach(i + 1, moves[i]);
        }
        Moves out;
        for (std::size_t i = n; i != first; i = previous[i]) out.push_back(std::move(by[i]));
        std::reverse(out.begin(), out.end());
        return out;
    }

    // One application of a rule, forwards or backwards, anywhere in a, that gives b.
    bool one_step(const Term& a, const Term& b, Move& out) {
        TreePath path;
        const Term* x = &a;
        const Term* y = &b;
        for (;;) {
            for (std::size_t r = 0; r < rules_.size(); ++r)
                if (plain_[r] && (fits(rules_[r], *x, *y, false, out) || fits(rules_[r], *y, *x, true, out))) {
                    out.step.at = path;
                    out.result = *y;
                    return true;
                }
            if (x->op() != y->op() || x->size() != y->size()) return false;
            std::uint32_t differing = none;
            for (std::uint32_t k = 0; k < x->size(); ++k)
                if (!((*x)[k] == (*y)[k])) {
                    if (differing != none) return false;
                    differing = k;
                }
            if (differing == none) return false;
            path.push_back(differing);
            x = &(*x)[differing];
            y = &(*y)[differing];
        }
    }

    static bool fits(const Rewrite& rule, const Term& left, const Term& right, bool backwards, Move& out) {
        std::vector<std::pair<Symbol, Term>> substitution;
        if (!bind(rule.left[0].term, left, substitution)) return false;
        const std::size_t bound = substitution.size();
        if (!bind(rule.right[0].term, right, substitution) || substitution.size() != bound) return false;
        out.step = ProofStep{};
        out.step.rule = rule.name;
        out.step.reversed_rule = rule.backwards;
        out.step.backwards = backwards;
        out.step.substitution = std::move(substitution);
        return true;
    }

    std::vector<Rewrite> rules_;
    std::vector<bool> plain_;
    std::size_t work_;
};

}  // namespace

Proof minimise(Proof proof, const EGraph& graph, std::size_t work) {
    Shortener shortener(graph, work);
    const std::vector<Term> terms = terms_of(proof, shortener.rules());
    Moves moves;
    for (std::size_t i = 0; i < proof.steps.size(); ++i) {
        const Term result = at(terms[i + 1], proof.steps[i].at);
        moves.push_back({std::move(proof.steps[i]), result});
    }
    proof.steps.clear();
    for (Move& m : shortener.shorten(proof.from, std::move(moves))) {
        for (Premise& p : m.step.premises) p.proof = minimise(std::move(p.proof), graph, work / 10);
        proof.steps.push_back(std::move(m.step));
    }
    return proof;
}

}  // namespace loopegg
