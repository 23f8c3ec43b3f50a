#include "egraph/apply.hpp"

#include "base/error.hpp"

namespace loopegg {
namespace {

class Applier {
public:
    Applier(EGraph& graph, const std::shared_ptr<const CompiledRewrite>& rule, std::size_t node_limit, const Budget& budget, std::size_t matched_bytes)
        : graph_(graph),
          node_limit_(node_limit),
          budget_(budget),
          matched_bytes_(matched_bytes),
          rule_(*rule),
          number_(graph.register_rule(rule)),
          values_(rule_.build_place(rule_.builds().size())),
          built_(rule_.builds().size(), none),
          chosen_(rule_.rule().choices.size(), none),
          direct_(rule_.conclusions().size() == 1 && !graph.has_analyses() && rule_.rule().relation == Relation::exact && rule_.late_guards().empty()) {
        for (const Build& b : rule_.builds()) {
            ops_.push_back(graph.op_id(b.op, static_cast<std::uint32_t>(b.children.size())));
            if (b.children.size() > scratch_.size()) scratch_.resize(b.children.size());
        }
        for (std::uint32_t g : rule_.late_guards()) late_places_.push_back(rule_.places_of(rule_.rule().guards[g].needs));
        graph.set_current_rule(rule_.name());
    }

    // False: a limit was met, before it or among the values that its choices offer.
    bool match(const NodeId* atoms) {
        if (over()) return false;
        atoms_ = atoms;
        const NodeTable& table = graph_.table();
        const auto& sources = rule_.sources();
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const NodeTable::Record& r = table.record(atoms[sources[i].atom]);
            values_[i] = graph_.find(sources[i].child == none ? r.in : table.children(r)[sources[i].child]);
        }
        choose(0);
        return !cut_;
    }

    // Asks the guards that answer in batches, about all that was put off, and concludes what they allow.
    void finish() {
        if (put_off_.empty()) return;
        std::vector<std::vector<GuardRecord>> records(put_off_.size());
        std::vector<bool> allowed(put_off_.size(), true);
        for (std::size_t i = 0; i < rule_.late_guards().size(); ++i) {
            const Guard& guard = rule_.rule().guards[rule_.late_guards()[i]];
            if (!guard.batch) continue;
            std::vector<std::vector<ClassId>> asked;
            std::vector<std::size_t> whose;
            for (std::size_t p = 0; p < put_off_.size(); ++p) {
                if (!allowed[p]) continue;
                values_ = put_off_[p].values;
                asked.push_back(arguments(late_places_[i]));
                whose.push_back(p);
            }
            const std::vector<Verdict> verdicts = guard.batch(graph_, asked);
            require(verdicts.size() == asked.size(), "a guard must answer every question of its batch");
            for (std::size_t k = 0; k < whose.size(); ++k) {
                allowed[whose[k]] = verdicts[k].allowed;
                records[whose[k]].push_back({guard.text, verdicts[k]});
            }
        }
        for (std::size_t p = 0; p < put_off_.size(); ++p) {
            if (!allowed[p]) continue;
            values_ = put_off_[p].values;
            built_ = put_off_[p].built;
            chosen_ = put_off_[p].chosen;
            atoms_ = put_off_[p].atoms;
            late_records_ = std::move(put_off_[p].records);
            for (GuardRecord& r : records[p]) late_records_.push_back(std::move(r));
            conclude();
        }
        put_off_.clear();
    }

    std::size_t effective = 0;

private:
    // One application adds at most its builds and its choices' values, so the limit is checked before, and holds.
    bool over() {
        if (graph_.node_count() + rule_.builds().size() + rule_.rule().choices.size() > node_limit_) return cut_ = true;
        if (++asked_ % 1024 == 0 &&
            (std::chrono::steady_clock::now() > budget_.deadline || (budget_.bytes != ~std::size_t{0} && graph_.bytes() + matched_bytes_ > budget_.bytes)))
            cut_ = true;
        return cut_;
    }

    void choose(std::size_t i) {
        if (i == rule_.rule().choices.size()) return build();
        const Choice& choice = rule_.rule().choices[i];
        std::vector<ClassId> args;
        for (Place p : rule_.choice_needs()[i]) args.push_back(graph_.find(values_[p]));
        for (const Term& value : choice.values(graph_, args)) {
            if (over()) return;
            values_[rule_.choice_place(i)] = graph_.add(value);
            chosen_[i] = node_of(value);
            choose(i + 1);
        }
    }

    // The node of a value's own operator, which the class may hold among others.
    NodeId node_of(const Term& value) const {
        std::vector<ClassId> children;
        for (const Term& c : value.children()) children.push_back(*graph_.lookup(c));
        return graph_.table().find(graph_.table().find_op(value.op(), static_cast<std::uint32_t>(value.size())), children);
    }

    void build() {
        late_records_.clear();
        bool batched = false;
        for (std::size_t i = 0; i < rule_.late_guards().size(); ++i) {  // those that need no result
            const Guard& guard = rule_.rule().guards[rule_.late_guards()[i]];
            if (guard.batch) {
                batched = true;
                continue;
            }
            if (!needs_result(i) && !ask(i)) return;
        }
        const std::size_t count = rule_.builds().size();
        for (std::size_t i = 0; i < count; ++i) {
            if (direct_ && i + 1 == count && rule_.conclusions()[0].build == i) return build_direct(i);
            built_[i] = graph_.find_or_make(ops_[i], children_of(i));
            values_[rule_.build_place(i)] = graph_.find(graph_.table().record(built_[i]).in);
        }
        for (std::size_t i = 0; i < rule_.late_guards().size(); ++i)
            if (!rule_.rule().guards[rule_.late_guards()[i]].batch && needs_result(i) && !ask(i)) return;
        if (batched)
            put_off_.push_back({values_, built_, chosen_, atoms_, std::move(late_records_)});
        else
            conclude();
    }

    std::span<const ClassId> children_of(std::size_t build) {
        const Build& b = rule_.builds()[build];
        for (std::size_t k = 0; k < b.children.size(); ++k) scratch_[k] = values_[b.children[k]];
        return {scratch_.data(), b.children.size()};
    }

    // The right side's root is made inside the class that it is equal to, when it is new: no class, no merge.
    void build_direct(std::size_t i) {
        const std::span<const ClassId> children = children_of(i);
        const std::uint32_t hash = NodeTable::hash(ops_[i], children);
        const NodeId left = atoms_[rule_.conclusions()[0].left_atom];
        const ClassId in = graph_.find(graph_.table().record(left).in);
        built_[i] = graph_.table().find(ops_[i], children, hash);
        if (built_[i] == none) {
            built_[i] = graph_.make_node_in(ops_[i], children, hash, in);
            if (graph_.forest()) graph_.forest()->hang(built_[i], left, reason() | ProofForest::backward);
            ++effective;
        } else if (graph_.find(graph_.table().record(built_[i]).in) != in) {
            graph_.merge_nodes(left, built_[i], reason());
            ++effective;
        }
    }

    void conclude() {
        bool changed = false;
        Reason why = congruence;
        for (const Conclusion& c : rule_.conclusions()) {
            const NodeId left = atoms_[c.left_atom];
            const ClassId from = graph_.find(graph_.table().record(left).in);
            const ClassId to = graph_.find(values_[c.place]);
            if (rule_.rule().relation == Relation::neural) {
                changed |= add_edge(from, to, why);
                continue;
            }
            if (from == to) continue;
            if (why == congruence) why = reason();
            const NodeId right = c.build != none ? built_[c.build] : right_of(c.place);
            changed |= graph_.merge_nodes(left, right, why);
        }
        effective += changed;
    }

    // The node that represents a variable in a proof: that of the class id which the match read.
    NodeId right_of(Place p) const {
        if (p >= rule_.query().slots.size()) return chosen_[p - rule_.query().slots.size()];
        const CompiledRewrite::Source s = rule_.sources()[p];
        const NodeId atom = atoms_[s.atom];
        if (s.child == none) return atom;
        if (!graph_.forest()) return graph_.node_of(values_[p]);
        return graph_.node_of(graph_.forest()->made_with(atom, static_cast<std::uint32_t>(rule_.query().atoms[s.atom].children.size()))[s.child]);
    }

    Reason reason() {
        ProofForest* forest = graph_.forest();
        if (!forest) return congruence;
        words_.clear();
        words_.push_back(number_);
        words_.insert(words_.end(), atoms_, atoms_ + rule_.query().atoms.size());
        words_.insert(words_.end(), chosen_.begin(), chosen_.end());
        words_.insert(words_.end(), built_.begin(), built_.end());
        const Reason r = forest->note(words_);
        if (!rule_.rule().guards.empty()) forest->keep_evidence(r, guard_records());
        return r;
    }

    // What each guard says, for the record. Those asked during search answer once more: only what changed something is recorded.
    std::vector<GuardRecord> guard_records() {
        std::vector<GuardRecord> out;
        for (std::uint32_t g = 0; g < rule_.rule().guards.size(); ++g) {
            if (rule_.guard_slots()[g].size() == 1 && rule_.guard_slots()[g][0] == none) continue;
            std::vector<ClassId> args;
            for (std::uint32_t s : rule_.guard_slots()[g]) args.push_back(graph_.find(values_[s]));
            out.push_back({rule_.rule().guards[g].text, rule_.rule().guards[g].test(graph_, args)});
        }
        out.insert(out.end(), late_records_.begin(), late_records_.end());
        return out;
    }

    bool add_edge(ClassId from, ClassId to, Reason& why) {
        Edge e{from, to, rule_.name(), {}, {}, congruence};
        for (std::size_t i = 0; i < rule_.query().slots.size(); ++i)
            if (!rule_.query().slots[i].empty()) e.substitution.emplace_back(rule_.query().slots[i], values_[i]);
        for (std::size_t i = 0; i < rule_.rule().choices.size(); ++i)
            e.substitution.emplace_back(rule_.rule().choices[i].variable, values_[rule_.choice_place(i)]);
        if (graph_.has_edge(e)) return false;
        if (why == congruence) why = reason();
        e.reason = why;
        e.guards = guard_records();
        return graph_.add_edge(std::move(e));
    }

    bool needs_result(std::size_t late) const {
        for (Place p : late_places_[late])
            if (p == none) return true;
        return false;
    }
    std::vector<ClassId> arguments(const std::vector<Place>& places) const {
        std::vector<ClassId> args;
        for (Place p : places) args.push_back(graph_.find(values_[p == none ? rule_.conclusions()[0].place : p]));
        return args;
    }
    bool ask(std::size_t late) {
        const Guard& guard = rule_.rule().guards[rule_.late_guards()[late]];
        Verdict v = guard.test(graph_, arguments(late_places_[late]));
        const bool allowed = v.allowed;
        late_records_.push_back({guard.text, std::move(v)});
        return allowed;
    }

    struct PutOff {
        std::vector<ClassId> values;
        std::vector<NodeId> built, chosen;
        const NodeId* atoms;
        std::vector<GuardRecord> records;
    };

    EGraph& graph_;
    const std::size_t node_limit_;
    const Budget& budget_;
    const std::size_t matched_bytes_;
    std::size_t asked_ = 0;
    bool cut_ = false;
    const CompiledRewrite& rule_;
    const std::uint32_t number_;
    std::vector<ClassId> values_;
    std::vector<NodeId> built_, chosen_;
    const bool direct_;
    std::vector<OpId> ops_;
    std::vector<ClassId> scratch_;
    std::vector<std::vector<Place>> late_places_;
    std::vector<GuardRecord> late_records_;
    std::vector<PutOff> put_off_;
    std::vector<std::uint32_t> words_;
    const NodeId* atoms_ = nullptr;
};

}  // namespace

Applied apply(EGraph& graph, const std::shared_ptr<const CompiledRewrite>& rule, std::span<const NodeId> matches, std::size_t node_limit,
              const Budget& budget) {
    Applied result;
    Applier applier(graph, rule, node_limit, budget, matches.size_bytes());
    const std::size_t width = rule->query().atoms.size();
    for (std::size_t i = 0; i < matches.size() && result.complete; i += width) result.complete = applier.match(matches.data() + i);
    applier.finish();
    result.effective = applier.effective;
    return result;
}

}  // namespace loopegg
