#include "egraph/search.hpp"

#include <algorithm>
#include <numeric>

namespace loopegg {
namespace {

enum class Age : std::uint8_t { any, old, fresh };

// A step of a plan with everything that the inner loop asks for at hand.
struct Instruction {
    Step kind;
    Age age;
    bool root_known;
    OpId op;
    std::uint32_t atom, via, root, arity;
    std::uint32_t first_child, second_child;  // slots; one that nobody reads where there is no such child
    const std::uint32_t* child;               // slots of all children
    std::uint64_t known;                      // a bit for each child that is bound before
    std::span<const std::uint32_t> guards;
    // Of a slot that this step binds: the operators that later steps will look for among its class's nodes and parents, and the
    // bound that its class must be below. An unchanged node knows only classes that were there before.
    struct Filter {
        std::uint32_t slot, nodes, parents;
        ClassId below;
    };
    std::uint32_t first_filter, end_filter;  // into filters_
    // The nodes of a class change together, and are tried one after another: what the last one found above its class serves the next.
    ClassId parents_of = none;
    std::vector<NodeId> parents;
};

constexpr std::size_t widest = 64;  // children of an operator in a pattern

class Machine {
public:
    Machine(const EGraph& graph, SearchIndex& index, const CompiledRewrite& rule, std::uint32_t since, const Budget& budget, Flat<NodeId>& out)
        : graph_(graph),
          table_(graph.table()),
          index_(index),
          rule_(rule),
          since_(since),
          budget_(budget),
          out_(out),
          slots_(rule.query().slots.size() + 1),
          atoms_(rule.query().atoms.size()),
          ages_(rule.query().atoms.size(), Age::any) {
        for (const Atom& a : rule.query().atoms) ops_.push_back(table_.find_op(a.op, static_cast<std::uint32_t>(a.children.size())));
        reads_facts_ = !rule.rule().guards.empty() || !rule.rule().choices.empty();
        if (reads_facts_ && since > 0) marked_ = &index.with_facts(since).marked;
    }

    SearchEnd plain(bool drop_old = false) {
        drop_old_ = drop_old && since_ > 0;
        count_fresh_ = since_ > 0;
        load(0);
        descend(0);
        return end_;
    }

    SearchEnd incremental(Unfinished& unfinished) {
        if (since_ == 0) return plain();
        const std::uint32_t now = graph_.epoch() - 1;
        Unfinished from;
        std::swap(from, unfinished);
        if (from.upto != 0) {
            since_ = from.since, upto_ = from.upto;
            keep_untouched(from.matches);
            if (emitted_ > budget_.matches) {
                from.matches.swap(out_);
                out_.clear();
                unfinished = std::move(from);
                return end_ = SearchEnd::too_many;
            }
            walk(from);
            if (end_ == SearchEnd::complete) since_ = upto_;
        }
        if (end_ == SearchEnd::complete && since_ < now) {
            upto_ = now;
            walk(Unfinished{});
        }
        if (end_ == SearchEnd::too_many && !reads_facts_) {
            out_.truncate(mark_);
            unfinished = {since_, upto_, atom_, start_epoch_, place_, {}};
            unfinished.matches.swap(out_);
        }
        return end_;
    }

private:
    // Everything that changed after since_ and up to upto_, from a place on.
    void walk(const Unfinished& from) {
        capped_ = upto_ + 1 < graph_.epoch();
        std::vector<SearchIndex::Touched> lists;
        for (atom_ = from.atom; atom_ < ops_.size(); ++atom_) {
            lists.clear();
            if (reads_facts_)
                lists.push_back({none, index_.with_facts(since_).by_op.of(ops_[atom_])});
            else
                index_.touched(since_, upto_, ops_[atom_], lists);
            if (lists.empty()) continue;
            for (std::uint32_t i = 0; i < ops_.size(); ++i) ages_[i] = i < atom_ ? Age::old : i > atom_ ? Age::any : Age::fresh;
            load(atom_);
            for (const SearchIndex::Touched& list : lists) {
                const bool first = atom_ == from.atom;
                if (first && list.epoch < from.epoch) continue;
                start_ = list.nodes;
                start_epoch_ = list.epoch;
                place_ = first && list.epoch == from.epoch ? from.place : 0;
                mark_ = out_.size();
                if (!descend(0)) return;
            }
        }
    }

    void keep_untouched(const Flat<NodeId>& matches) {
        const std::size_t width = ops_.size();
        for (std::size_t i = 0; i < matches.size(); i += width) {
            const std::span<const NodeId> match(matches.data() + i, width);
            if (std::any_of(match.begin(), match.end(), [&](NodeId n) { return graph_.stamp(n) > upto_ || table_.dead(n); })) continue;
            out_.append(match);
            ++emitted_;
        }
    }

    void load(std::uint32_t first) {
        code_.clear();
        code_.reserve(ops_.size());
        filters_.clear();
        first_ = first;
        const std::uint32_t nowhere = static_cast<std::uint32_t>(slots_.size()) - 1;
        std::vector<bool> done(ops_.size());
        for (const PlanStep& s : rule_.plan(first)) {
            const Atom& a = rule_.query().atoms[s.atom];
            std::uint64_t known = 0;
            for (std::size_t k = 0; k < s.child_known.size(); ++k) known |= std::uint64_t{s.child_known[k]} << k;
            code_.push_back({s.kind,
                             ages_[s.atom],
                             s.root_known,
                             ops_[s.atom],
                             s.atom,
                             s.via,
                             a.root,
                             static_cast<std::uint32_t>(a.children.size()),
                             a.children.size() > 0 ? a.children[0] : nowhere,
                             a.children.size() > 1 ? a.children[1] : nowhere,
                             a.children.data(),
                             known,
                             s.guards,
                             static_cast<std::uint32_t>(filters_.size()),
                             0,
                             none,
                             {}});
            done[s.atom] = true;
            auto filter = [&](std::uint32_t slot) {
                Instruction::Filter f{slot, 0, 0, none};
                for (std::uint32_t i = 0; i < ops_.size(); ++i) {
                    if (done[i]) continue;
                    const Atom& later = rule_.query().atoms[i];
                    bool mentioned = later.root == slot;
                    if (mentioned) f.nodes |= EGraph::op_bit(ops_[i]);
                    for (std::uint32_t c : later.children)
                        if (c == slot) mentioned = true, f.parents |= EGraph::op_bit(ops_[i]);
                    if (mentioned && ages_[i] == Age::old) f.below = static_cast<ClassId>(graph_.class_bound_at(since_ + 1));
                }
                if (f.nodes || f.parents) filters_.push_back(f);
            };
            if (!s.root_known) filter(a.root);
            for (std::size_t k = 0; k < a.children.size(); ++k)
                if (!s.child_known[k]) filter(a.children[k]);
            code_.back().end_filter = static_cast<std::uint32_t>(filters_.size());
            if (s.atom == first && ages_[first] != Age::fresh) start_ = index_.all(ops_[first]), start_epoch_ = none;
        }
    }

    bool is_fresh(NodeId n) const { return marked_ ? (*marked_)[n] : graph_.stamp(n) > since_; }

    // Of a node that changed more than once, only the last list that holds it counts.
    bool in_start(NodeId n) const { return start_epoch_ == none ? is_fresh(n) : graph_.stamp(n) == start_epoch_; }

    [[gnu::always_inline]] bool of_age(const Instruction& in, NodeId n) const {
        switch (in.age) {
            case Age::old: return !is_fresh(n);
            case Age::fresh: return in_start(n);
            case Age::any: return !capped_ || graph_.stamp(n) <= upto_;
        }
        return true;
    }

    // Tries a node, which has the right operator, for the atom of step `depth`, and all that follows. False when the search must end.
    [[gnu::always_inline]] bool candidate(const Instruction& in, std::size_t depth, NodeId n, const NodeTable::Record& r) {
        ClassId* const slots = slots_.data();
        if (!in.root_known)
            slots[in.root] = r.in;
        else if (slots[in.root] != r.in)
            return true;
        if (in.arity <= 2) {
            if (!(in.known & 1))
                slots[in.first_child] = r.a;
            else if (slots[in.first_child] != r.a)
                return true;
            if (!(in.known & 2))
                slots[in.second_child] = r.b;
            else if (slots[in.second_child] != r.b)
                return true;
        } else {
            const ClassId* children = table_.children(r).data();
            for (std::uint32_t k = 0; k < in.arity; ++k) {
                if (!(in.known >> k & 1))
                    slots[in.child[k]] = children[k];
                else if (slots[in.child[k]] != children[k])
                    return true;
            }
        }
        if (!of_age(in, n)) return true;
        for (std::uint32_t i = in.first_filter; i < in.end_filter; ++i) {
            const Instruction::Filter& f = filters_[i];
            if (slots[f.slot] >= f.below || !graph_.may_hold(slots[f.slot], f.nodes) || !graph_.may_have_parents(slots[f.slot], f.parents)) return true;
        }
        for (std::uint32_t g : in.guards)
            if (!allowed(g)) return true;
        atoms_[in.atom] = n;
        return depth + 1 == code_.size() ? emit() : descend(depth + 1);
    }

    bool descend(std::size_t depth) {
        if (++entered_ % 1024 == 0 && !within_budget()) return false;
        const Instruction& in = code_[depth];
        switch (in.kind) {
            case Step::start_up:
                if (place_ == 0 && graph_.weight(slots_[in.child[in.via]]) < start_.size()) return go_up(depth);
                [[fallthrough]];
            case Step::scan: {
                if (in.atom == first_) return start(in, depth);
                for (NodeId n : index_.all(in.op)) {
                    const NodeTable::Record& r = table_.record(n);
                    if (r.op == in.op && !candidate(in, depth, n, r)) return false;
                }
                return true;
            }
            case Step::down: return go_down(depth);
            case Step::up: return go_up(depth);
            case Step::probe: {
                ClassId children[widest];
                for (std::uint32_t k = 0; k < in.arity; ++k) children[k] = slots_[in.child[k]];
                const NodeId n = table_.find(in.op, {children, in.arity});
                return n == none || candidate(in, depth, n, table_.record(n));
            }
        }
        return true;
    }

    bool start(const Instruction& in, std::size_t depth) {
        const bool fresh = in.age == Age::fresh;
        for (std::size_t i = place_; i < start_.size(); ++i) {
            const NodeId n = start_[i];
            if (fresh && !in_start(n)) continue;
            const NodeTable::Record& r = table_.record(n);
            if (r.op != in.op) continue;
            const std::size_t before = out_.size();
            if (candidate(in, depth, n, r)) continue;
            mark_ = before;
            place_ = i;
            return false;
        }
        return true;
    }

    // The nodes of a class are sorted by operator, then children: those that can fit are together.
    bool go_down(std::size_t depth) {
        const Instruction& in = code_[depth];
        const auto nodes = graph_.nodes(slots_[in.root]);
        const bool by_first = in.arity > 0 && in.arity <= 2 && (in.known & 1);
        const std::uint64_t key = std::uint64_t{in.op} << 32 | (by_first ? slots_[in.child[0]] : 0);
        auto key_of = [&](NodeId n) {
            const NodeTable::Record& r = table_.record(n);
            return std::uint64_t{r.op} << 32 | (by_first ? r.a : 0);
        };
        auto it = nodes.begin();
        if (nodes.size() > 6) it = std::partition_point(it, nodes.end(), [&](NodeId n) { return key_of(n) < key; });
        for (; it != nodes.end(); ++it) {
            const std::uint64_t own = key_of(*it);
            if (own > key) break;
            if (own == key && !candidate(in, depth, *it, table_.record(*it))) return false;
        }
        return true;
    }

    bool go_up(std::size_t depth) {
        Instruction& in = code_[depth];
        const ClassId c = slots_[in.child[in.via]];
        if (in.parents_of != c || in.age == Age::fresh) {  // each list of fresh nodes is one of its own
            in.parents_of = c;
            in.parents.clear();
            graph_.each_parent(c, [&](NodeId n, std::uint32_t at) {
                if (at == in.via && table_.record(n).op == in.op && of_age(in, n)) in.parents.push_back(n);
            });
        }
        for (NodeId n : in.parents)
            if (!candidate(in, depth, n, table_.record(n))) return false;
        return true;
    }

    bool emit() {
        const bool fresh = !count_fresh_ || std::any_of(atoms_.begin(), atoms_.end(), [&](NodeId n) { return is_fresh(n); });
        if (drop_old_ && !fresh) return true;
        NodeId* at = out_.extend(atoms_.size());
        for (std::size_t i = 0; i < atoms_.size(); ++i) at[i] = atoms_[i];
        emitted_ += fresh;
        if (out_.size() % (std::size_t{1} << 16) == 0 && !within_budget()) return false;
        if (emitted_ > budget_.matches) return end_ = SearchEnd::too_many, false;
        return true;
    }

    bool allowed(std::uint32_t g) {
        const Guard& guard = rule_.rule().guards[g];
        std::vector<ClassId> args;
        for (std::uint32_t s : rule_.guard_slots()[g]) args.push_back(slots_[s]);
        return guard.test(graph_, args).allowed;
    }

    bool within_budget() {
        if (std::chrono::steady_clock::now() > budget_.deadline) return end_ = SearchEnd::out_of_time, false;
        if (budget_.bytes != ~std::size_t{0} && graph_.bytes() + out_.bytes() > budget_.bytes) return end_ = SearchEnd::out_of_memory, false;
        return true;
    }

    const EGraph& graph_;
    const NodeTable& table_;
    SearchIndex& index_;
    const CompiledRewrite& rule_;
    std::uint32_t since_, upto_ = none;  // what changed after the one and up to the other is fresh
    const Budget& budget_;
    Flat<NodeId>& out_;
    std::vector<OpId> ops_;
    std::vector<ClassId> slots_;
    std::vector<NodeId> atoms_;
    std::vector<Age> ages_;  // of the atoms, in what is being searched
    std::vector<Instruction> code_;
    std::vector<Instruction::Filter> filters_;
    std::span<const NodeId> start_;  // where the first atom is looked for
    std::uint32_t first_ = 0, start_epoch_ = none, atom_ = 0;
    std::size_t place_ = 0;  // in start_: where to begin, and where the search ended
    std::size_t mark_ = 0;   // of out_, before the matches of the place that is being tried
    const std::vector<bool>* marked_ = nullptr;
    bool reads_facts_ = false, drop_old_ = false, count_fresh_ = false, capped_ = false;
    std::size_t entered_ = 0, emitted_ = 0;
    SearchEnd end_ = SearchEnd::complete;
};

// A bare variable matches every class; the class's first node represents it.
SearchEnd search_bare(const EGraph& graph, const CompiledRewrite& rule, const Budget& budget, Flat<NodeId>& out) {
    std::size_t count = 0;
    for (ClassId c : graph.classes()) {
        bool good = true;
        for (std::uint32_t g : rule.plan(0)[0].guards) {
            const std::vector<ClassId> args(rule.guard_slots()[g].size(), c);
            good = good && rule.rule().guards[g].test(graph, args).allowed;
        }
        if (!good) continue;
        out.push_back(graph.nodes(c)[0]);
        if (++count > budget.matches) return SearchEnd::too_many;
    }
    return SearchEnd::complete;
}

// Puts matches of `width` words each in order, to compare them.
void sort_matches(Flat<NodeId>& matches, std::size_t width) {
    const std::size_t count = matches.size() / width;
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
        return std::lexicographical_compare(matches.data() + x * width, matches.data() + (x + 1) * width, matches.data() + y * width,
                                            matches.data() + (y + 1) * width);
    });
    Flat<NodeId> sorted;
    for (std::uint32_t i : order) sorted.append({matches.data() + i * width, width});
    matches.swap(sorted);
}

}  // namespace

SearchEnd search(const EGraph& graph, SearchIndex& index, const SearchRequest& request, Flat<NodeId>& matches, Unfinished& unfinished) {
    const auto& [rule, since, mode, budget] = request;
    if (rule.bare()) return search_bare(graph, rule, budget, matches);
    for (const Atom& a : rule.query().atoms)  // an operator that no node has: nothing to find
        if (graph.table().find_op(a.op, static_cast<std::uint32_t>(a.children.size())) == none) return SearchEnd::complete;
    if (mode == SearchMode::incremental) return Machine(graph, index, rule, since, budget, matches).incremental(unfinished);
    if (mode == SearchMode::plain) return Machine(graph, index, rule, since, budget, matches).plain();
    Flat<NodeId> one, other;
    const SearchEnd end = Machine(graph, index, rule, since, budget, one).incremental(unfinished);
    const SearchEnd plain_end = Machine(graph, index, rule, since, budget, other).plain(true);
    require(end == plain_end || (end != SearchEnd::complete && end != SearchEnd::too_many), "incremental and plain search end differently");
    if (end == SearchEnd::complete) {
        Flat<NodeId> sorted = one;
        sort_matches(sorted, rule.query().atoms.size());
        sort_matches(other, rule.query().atoms.size());
        require(std::ranges::equal(sorted.span(), other.span()), "incremental and plain search find different matches");
    }
    matches.append(one.span());
    return end;
}

void SearchIndex::update(std::uint32_t seen) {
    all_known_ = false;
    all_ = {};
    with_facts_.clear();
    epochs_.erase(epochs_.begin(), epochs_.upper_bound(seen));
    if (pops_ != graph_.pops()) epochs_.clear();
    pops_ = graph_.pops();
}

std::span<const NodeId> SearchIndex::all(OpId op) {
    if (!all_known_) {
        std::vector<NodeId> nodes;
        nodes.reserve(graph_.node_count());
        for (NodeId n = 0; n < graph_.node_bound(); ++n)
            if (!graph_.dead(n)) nodes.push_back(n);
        all_ = group(nodes);
        all_known_ = true;
    }
    return all_.of(op);
}

void SearchIndex::touched(std::uint32_t since, std::uint32_t upto, OpId op, std::vector<Touched>& out) {
    for (std::uint32_t e = since + 1; e <= upto; ++e) {
        const auto [it, made] = epochs_.try_emplace(e);
        if (made) it->second = group(graph_.touched_in(e));
        const auto nodes = it->second.of(op);
        if (!nodes.empty()) out.push_back({e, nodes});
    }
}

const SearchIndex::WithFacts& SearchIndex::with_facts(std::uint32_t since) {
    const auto [it, made] = with_facts_.try_emplace(since);
    WithFacts& out = it->second;
    if (!made) return out;
    std::vector<NodeId> nodes;
    out.marked.resize(graph_.node_bound());
    for (NodeId n = 0; n < graph_.node_bound(); ++n) {
        if (graph_.dead(n)) continue;
        const NodeTable::Record& r = graph_.table().record(n);
        bool changed = graph_.stamp(n) > since || graph_.class_stamp(r.in) > since;
        for (ClassId c : graph_.table().children(r)) changed |= graph_.class_stamp(c) > since;
        if (changed) out.marked[n] = true, nodes.push_back(n);
    }
    out.by_op = group(nodes);
    return out;
}

NodesByOp SearchIndex::group(std::span<const NodeId> nodes) const {
    NodesByOp out;
    out.first.assign(graph_.table().op_count() + 1, 0);
    for (NodeId n : nodes) ++out.first[(graph_.table().record(n).op & ~NodeTable::dead_bit) + 1];
    std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
    std::vector<std::uint32_t> at(out.first.begin(), out.first.end() - 1);
    out.nodes.resize(nodes.size());
    for (NodeId n : nodes) out.nodes[at[graph_.table().record(n).op & ~NodeTable::dead_bit]++] = n;
    return out;
}

}  // namespace loopegg
