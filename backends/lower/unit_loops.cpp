#include "backends/lower/unit_loops.hpp"

#include <algorithm>
#include <set>

#include "backends/lower/lower_nest.hpp"
#include "backends/lower/lower_operands.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

// Whether the index is a multiple of `n` and the variable, so that whole parts of it count words.
bool counts_words(const Index& index, int var, std::int64_t n) {
    const LinearForm form = linear(index);
    return form.offset % n == 0 && std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
               const auto& [atom, k] = term;
               return atom == Index::variable(var) ? k == 1 : k % n == 0 && !atom.uses(var);
           });
}

// Whether the index has the variable as one dimension of its own, or as one term of a dimension: then it is the innermost step of what holds the operand.
bool ends_words(const Statement& s, const LoopTree& tree, const UnitLoops& u, std::size_t read) {
    const OperandPlace& place = u.body->reads[read];
    if (place.stage >= 0)
        return std::count_if(place.index.begin(), place.index.end(), [&](const Index& i) { return i.uses(u.packed->var); }) == 1 &&
               std::all_of(place.index.begin(), place.index.end(),
                           [&](const Index& i) { return !i.uses(u.packed->var) || counts_words(i, u.packed->var, u.packed->extent); });
    // Parts that follow each other have readers and loops of their own: one of these readers is that of the loops here.
    const std::vector<WeightReader> readers = weight_readers(s, tree, s.reads[read].buffer);
    return std::any_of(readers.begin(), readers.end(), [&](const WeightReader& r) {
        return !r.atoms.empty() && r.atoms.back().index == Index::variable(u.packed->var) && r.atoms.back().extent == u.packed->extent;
    });
}

}  // namespace

std::optional<UnitLoops> unit_loops(const Statement& s, const TreeNode& loop) {
    if (loop.kind != TreeNode::Kind::loop || loop.loop != LoopKind::tensor || numbers_in_word(loop.place) == 1) return {};
    if (s.combine != Combine::sum || s.reads.size() != 2 || !s.coefficients.empty() || !s.value.is("*", 2)) return {};
    std::array<const TreeNode*, 4> loops{&loop};
    const TreeNode* at = loop.children[0].get();
    for (std::size_t i = 1; i < loops.size(); ++i, at = at->children[0].get()) {
        if (at->kind != TreeNode::Kind::loop || at->loop != LoopKind::unroll || at->partial) return {};
        loops[i] = at;
    }
    if (at->kind != TreeNode::Kind::body || !at->predicates.empty() || loops[3]->extent != numbers_in_word(loop.place)) return {};
    UnitLoops u{loops[0], loops[1], loops[2], loops[3], at, {0, 1}};
    if (!at->reads[0].uses(u.rows->var)) std::swap(u.operands[0], u.operands[1]);
    const OperandPlace &a = at->reads[u.operands[0]], &b = at->reads[u.operands[1]];
    const auto moved = [&](const OperandPlace& place, const TreeNode* side, const TreeNode* other) {
        return place.uses(side->var) && !place.uses(other->var) && place.uses(u.depth->var) && place.uses(u.packed->var);
    };
    if (!moved(a, u.rows, u.columns) || !moved(b, u.columns, u.rows)) return {};
    return u;
}

std::string packed_kind(const Statement& s, const LoopTree& tree) {
    std::string kind;
    bool all = true;
    const auto walk = [&](const auto& self, const Tree& n) -> void {
        if (n->kind == TreeNode::Kind::loop && n->loop == LoopKind::tensor) {
            const auto u = unit_loops(s, *n);
            all = all && u && (kind.empty() || kind == n->place) && ends_words(s, tree, *u, 0) && ends_words(s, tree, *u, 1);
            kind = n->place;
        } else if (n->kind == TreeNode::Kind::body) {
            all = false;  // a body outside of such loops reads operands that are not packed
        } else {
            for (const Tree& c : n->children) self(self, c);
        }
    };
    walk(walk, tree.root);
    return all && kind != "fp16" ? kind : "";  // no unit of a CPU takes words of fp16
}

std::string packed_kind_of_warps(const LoopTree& tree) {
    std::set<std::string> kinds;
    const auto walk = [&](const auto& self, const TreeNode& n) -> void {
        if (n.kind == TreeNode::Kind::body) kinds.insert("");  // that no warp multiplies together
        if (n.kind == TreeNode::Kind::loop && n.loop == LoopKind::tensor) return void(kinds.insert(n.place));
        for (const Tree& c : n.children) self(self, *c);
    };
    walk(walk, *tree.root);
    return kinds.size() == 1 && !kinds.begin()->empty() && numbers_in_word(*kinds.begin()) > 1 ? *kinds.begin() : "";
}

}  // namespace loopegg
