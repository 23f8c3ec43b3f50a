#include "extract/term_space.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "extract/acyclic.hpp"
#include "extract/cycles.hpp"

namespace loopegg {

// The kept nodes of the classes that the root reaches, and for every class how many terms it has: in all, or of each size.
class TermSpace::Counts {
public:
    Counts(const SerializedEGraph& egraph, ClassIndex root, const SpaceLimits& limits)
        : egraph_(egraph), root_(root), limits_(limits), members_(egraph.classes.size()) {
        keep_nodes();
        order_classes();
        if (infinite_ && !limits_.size) return;
        if (limits_.size)
            count_sizes();
        else
            count_all();
    }

    bool infinite() const { return infinite_ && !limits_.size; }
    const mpz_class& total() const { return total_; }

    Term at(mpz_class number) const {
        require(number >= 0 && number < total_, "a term's number must be below the count");
        if (!limits_.size) return build({root_, 0, std::move(number)});
        std::size_t size = 0;
        while (number >= sized_[root_][size]) number -= sized_[root_][size++];
        return build({root_, size, std::move(number)});
    }

private:
    // A term that is still to be built: its class, its size when sizes are counted, and its number among the terms of these.
    struct Request {
        ClassIndex eclass;
        std::size_t size;
        mpz_class number;
    };
    struct Frame {
        NodeIndex node;
        std::vector<Request> wanted;
        std::vector<Term> made;
    };

    void keep_nodes() {
        const Trees smallest = cheapest_trees(egraph_, [](NodeIndex) { return 1.0; });
        std::vector<std::uint32_t> part_of(egraph_.classes.size(), no_index);
        const auto parts = cyclic_parts(egraph_);
        for (std::uint32_t p = 0; p < parts.size(); ++p)
            for (ClassIndex c : parts[p]) part_of[c] = p;
        std::map<std::pair<std::string, std::vector<ClassIndex>>, ClassIndex> seen;
        std::vector<char> reached(egraph_.classes.size(), 0);
        std::vector<ClassIndex> stack{root_};
        reached[root_] = 1;
        while (!stack.empty()) {
            const ClassIndex c = stack.back();
            stack.pop_back();
            for (NodeIndex n : egraph_.classes[c].nodes) {
                const SerializedNode& node = egraph_.nodes[n];
                const bool finite = std::all_of(node.children.begin(), node.children.end(), [&](ClassIndex d) { return smallest.choice[d] != no_index; });
                if (!finite) continue;
                const bool around = std::any_of(node.children.begin(), node.children.end(), [&](ClassIndex d) {
                    return d == c || (part_of[d] != no_index && part_of[d] == part_of[c] && smallest.cost[d] >= smallest.cost[c]);
                });
                if (limits_.direct && around) continue;
                if (auto [it, fresh] = seen.try_emplace({node.op, node.children}, c); !fresh) {
                    if (it->second != c)
                        throw UserError(fmt::format("the e-graph is not congruent: the same node '{}' is in the classes '{}' and '{}'", node.op,
                                                    egraph_.classes[it->second].id, egraph_.classes[c].id));
                    continue;  // written twice
                }
                members_[c].push_back(n);
                for (ClassIndex d : node.children)
                    if (!reached[d]) reached[d] = 1, stack.push_back(d);
            }
        }
    }

    // Puts children before parents, and finds out whether some class contains itself.
    void order_classes() {
        std::vector<char> state(egraph_.classes.size(), 0);
        struct Visit {
            ClassIndex c;
            std::size_t node, child;
        };
        std::vector<Visit> stack{{root_, 0, 0}};
        state[root_] = 1;
        while (!stack.empty()) {
            Visit& v = stack.back();
            if (v.node == members_[v.c].size()) {
                order_.push_back(v.c), state[v.c] = 2;
                stack.pop_back();
                continue;
            }
            const auto& children = egraph_.nodes[members_[v.c][v.node]].children;
            if (v.child == children.size()) {
                ++v.node, v.child = 0;
                continue;
            }
            const ClassIndex d = children[v.child++];
            if (state[d] == 1) infinite_ = true;
            if (state[d] == 0) state[d] = 1, stack.push_back({d, 0, 0});
        }
    }

    void count_all() {
        all_.resize(egraph_.classes.size());
        below_.resize(egraph_.nodes.size());
        for (ClassIndex c : order_)
            for (NodeIndex n : members_[c]) {
                below_[n] = 1;
                for (ClassIndex d : egraph_.nodes[n].children) below_[n] *= all_[d];
                all_[c] += below_[n];
            }
        total_ = all_[root_];
    }

    // Sizes grow, so the terms of size s need only counts of smaller sizes, whatever the cycles.
    void count_sizes() {
        const std::size_t most = *limits_.size;
        sized_.resize(egraph_.classes.size());
        for (ClassIndex c : order_) sized_[c].resize(most + 1);
        for (std::size_t s = 1; s <= most; ++s)
            for (ClassIndex c : order_)
                for (NodeIndex n : members_[c]) sized_[c][s] += ways(egraph_.nodes[n].children, 0, s - 1);
        for (const mpz_class& n : sized_[root_]) total_ += n;
    }

    // In how many ways the children from `first` on share `size` operators among them.
    mpz_class ways(const std::vector<ClassIndex>& children, std::size_t first, std::size_t size) const {
        const std::size_t left = children.size() - first;
        if (left == 0) return size == 0 ? 1 : 0;
        if (size < left) return 0;
        if (left == 1) return sized_[children[first]][size];
        mpz_class sum = 0;
        if (left == 2) {
            const auto &a = sized_[children[first]], &b = sized_[children[first + 1]];
            for (std::size_t s = 1; s < size; ++s)
                if (a[s] != 0 && b[size - s] != 0) sum += a[s] * b[size - s];
            return sum;
        }
        // Many children: a table over (children so far, operators so far) instead of every combination.
        std::vector<mpz_class> row(size + 1), next(size + 1);
        row[0] = 1;
        for (std::size_t i = first; i < children.size(); ++i) {
            std::fill(next.begin(), next.end(), 0);
            for (std::size_t used = 0; used <= size; ++used)
                if (row[used] != 0)
                    for (std::size_t s = 1; used + s <= size; ++s)
                        if (sized_[children[i]][s] != 0) next[used + s] += row[used] * sized_[children[i]][s];
            row.swap(next);
        }
        return row[size];
    }

    // Finds the node that the number belongs to, and the numbers of the children's terms.
    Frame open(Request wanted) const {
        for (NodeIndex n : members_[wanted.eclass]) {
            const auto& children = egraph_.nodes[n].children;
            const mpz_class here = limits_.size ? ways(children, 0, wanted.size - 1) : below_[n];
            if (wanted.number >= here) {
                wanted.number -= here;
                continue;
            }
            Frame frame{n, {}, {}};
            if (limits_.size)
                share_sizes(frame, children, wanted);
            else
                for (ClassIndex d : children) {
                    frame.wanted.push_back({d, 0, wanted.number % all_[d]});
                    wanted.number /= all_[d];
                }
            return frame;
        }
        throw InternalFault("the counts of a class's nodes must add up");
    }

    void share_sizes(Frame& frame, const std::vector<ClassIndex>& children, const Request& wanted) const {
        mpz_class number = wanted.number;
        std::size_t left = wanted.size - 1;
        for (std::size_t i = 0; i < children.size(); ++i)
            for (std::size_t s = 1; s <= left; ++s) {
                const mpz_class own = sized_[children[i]][s];
                if (own == 0) continue;
                const mpz_class rest = ways(children, i + 1, left - s), both = own * rest;
                if (number >= both) {
                    number -= both;
                    continue;
                }
                frame.wanted.push_back({children[i], s, number / rest});
                number %= rest;
                left -= s;
                break;
            }
    }

    Term build(Request root) const {
        std::vector<Frame> stack;
        stack.push_back(open(std::move(root)));
        for (;;) {  // no recursion: terms may be as deep as there are classes
            Frame& f = stack.back();
            if (f.made.size() < f.wanted.size()) {
                stack.push_back(open(std::move(f.wanted[f.made.size()])));
                continue;
            }
            Term term(egraph_.nodes[f.node].op, std::move(f.made));
            stack.pop_back();
            if (stack.empty()) return term;
            stack.back().made.push_back(std::move(term));
        }
    }

    const SerializedEGraph& egraph_;
    ClassIndex root_;
    SpaceLimits limits_;
    std::vector<std::vector<NodeIndex>> members_;
    std::vector<ClassIndex> order_;
    bool infinite_ = false;
    std::vector<mpz_class> all_, below_;         // by class, by node; without a size
    std::vector<std::vector<mpz_class>> sized_;  // by class and size
    mpz_class total_ = 0;
};

TermSpace::TermSpace(const SerializedEGraph& egraph, ClassIndex root, const SpaceLimits& limits) : counts_(std::make_unique<Counts>(egraph, root, limits)) {}
TermSpace::~TermSpace() = default;
TermSpace::TermSpace(TermSpace&&) noexcept = default;

bool TermSpace::infinite() const { return counts_->infinite(); }
const mpz_class& TermSpace::count() const {
    require(!infinite(), "an infinite space has no count");
    return counts_->total();
}
Term TermSpace::at(const mpz_class& number) const {
    require(!infinite(), "an infinite space has no numbers");
    return counts_->at(number);
}
Term TermSpace::sample(std::mt19937_64& random) const { return at(uniform_below(count(), random)); }

mpz_class uniform_below(const mpz_class& bound, std::mt19937_64& random) {
    require(bound > 0, "nothing is below zero");
    const std::size_t bits = mpz_sizeinbase(bound.get_mpz_t(), 2);
    for (;;) {  // draws as many bits as the bound has; a number that is too large is drawn again, which happens at most every second time on average
        mpz_class value = 0;
        for (std::size_t have = 0; have < bits; have += 32) {
            const unsigned long take = std::min<std::size_t>(32, bits - have);
            value <<= take;
            value += static_cast<unsigned long>(random() >> (64 - take));
        }
        if (value < bound) return value;
    }
}

}  // namespace loopegg
