// Facts about loop trees that lowering needs: extents, intervals, linear forms, and how weights are visited.
#include <algorithm>
#include <functional>

#include "backends/lower/lower_nest.hpp"

namespace loopegg {
namespace {

void note(const Tile& tile, std::vector<std::int64_t>& extents) {
    for (const Tile::Step& s : tile.steps) extents[static_cast<std::size_t>(s.var)] = s.extent;
}

void add_scaled(LinearForm& into, const Index& i, std::int64_t scale) {
    switch (i.kind()) {
        case Index::Kind::constant: into.offset += scale * i.value(); return;
        case Index::Kind::add: add_scaled(into, i.left(), scale), add_scaled(into, i.right(), scale); return;
        case Index::Kind::multiply: add_scaled(into, i.left(), scale * i.value()); return;
        default:
            for (auto& [atom, k] : into.terms)
                if (atom == i) {
                    k += scale;
                    return;
                }
            into.terms.emplace_back(i, scale);
    }
}

// Numbers loops by depth. The steps of a staged tile are deeper than the loops around the tile.
struct Walk {
    const Statement& statement;
    int buffer;
    std::vector<std::int64_t> extents;
    std::vector<int> depth;  // by variable
    std::vector<WeightReader> readers;
    int level = 0;

    void read(const std::vector<Index>& index) {
        WeightReader r;
        std::vector<LinearForm> dims;
        for (const Index& i : index) dims.push_back(linear(i));
        struct Key {
            Index atom;
            int depth;
            std::int64_t stride;
        };
        std::vector<Key> keys;
        const Shape& shape = statement.buffers[static_cast<std::size_t>(buffer)].shape;
        std::int64_t stride = 1;
        for (std::size_t d = dims.size(); d-- > 0; stride *= shape[d])
            for (const auto& [atom, k] : dims[d].terms) {
                if (std::any_of(keys.begin(), keys.end(), [&a = atom](const Key& key) { return key.atom == a; })) continue;
                std::vector<int> vars;
                atom.collect(vars);
                int deepest = -1;
                for (int v : vars) deepest = std::max(deepest, depth[static_cast<std::size_t>(v)]);
                keys.push_back({atom, deepest, k * stride});
            }
        std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.depth != b.depth ? a.depth < b.depth : a.stride > b.stride; });
        for (const Key& k : keys) r.atoms.push_back({k.atom, interval(k.atom, extents).high + 1});
        for (const LinearForm& d : dims) {
            r.offsets.push_back(d.offset);
            auto& row = r.coefficients.emplace_back(keys.size(), 0);
            for (const auto& [atom, k] : d.terms)
                for (std::size_t a = 0; a < keys.size(); ++a)
                    if (keys[a].atom == atom) row[a] = k;
        }
        readers.push_back(std::move(r));
    }

    void visit(const Tree& node) {
        switch (node->kind) {
            case TreeNode::Kind::loop:
                depth[static_cast<std::size_t>(node->var)] = level++;
                visit(node->children[0]);
                --level;
                return;
            case TreeNode::Kind::cat: visit(node->children[0]), visit(node->children[1]); return;
            case TreeNode::Kind::complete: visit(node->children[0]); return;
            case TreeNode::Kind::stage:
                if (node->buffer == buffer) {
                    int below = level;
                    for (const Tile::Step& s : node->tile.steps) depth[static_cast<std::size_t>(s.var)] = below++;
                    read(node->tile.index);
                    return;
                }
                visit(node->children[0]);
                return;
            case TreeNode::Kind::body:
                for (std::size_t r = 0; r < statement.reads.size(); ++r)
                    if (statement.reads[r].buffer == buffer) read(node->reads[r].index);
                return;
        }
    }
};

}  // namespace

std::vector<std::int64_t> extents_of(const LoopTree& tree) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(tree.variables), 1);
    std::function<void(const Tree&)> walk = [&](const Tree& n) {
        if (n->kind == TreeNode::Kind::loop) extents[static_cast<std::size_t>(n->var)] = n->extent;
        note(n->tile, extents);
        for (const Tile& t : n->tiles) note(t, extents);
        for (const Tree& c : n->children) walk(c);
    };
    walk(tree.root);
    return extents;
}

Bounds interval(const Index& i, const std::vector<std::int64_t>& extents) {
    switch (i.kind()) {
        case Index::Kind::constant: return {i.value(), i.value()};
        case Index::Kind::variable: return {0, extents[static_cast<std::size_t>(i.var())] - 1};
        case Index::Kind::add: {
            const Bounds a = interval(i.left(), extents), b = interval(i.right(), extents);
            return {a.low + b.low, a.high + b.high};
        }
        case Index::Kind::multiply: {
            const Bounds a = interval(i.left(), extents);
            return i.value() >= 0 ? Bounds{a.low * i.value(), a.high * i.value()} : Bounds{a.high * i.value(), a.low * i.value()};
        }
        case Index::Kind::divide: {
            const Bounds a = interval(i.left(), extents);
            return {a.low / i.value(), a.high / i.value()};
        }
        case Index::Kind::modulo: {
            const Bounds a = interval(i.left(), extents);
            if (a.low >= 0 && a.high < i.value()) return a;
            return {0, i.value() - 1};
        }
    }
    return {};
}

LinearForm linear(const Index& index) {
    LinearForm l;
    add_scaled(l, index, 1);
    std::erase_if(l.terms, [](const auto& t) { return t.second == 0; });
    return l;
}

std::vector<WeightReader> weight_readers(const Statement& statement, const LoopTree& tree, int buffer) {
    const Buffer& b = statement.buffers[static_cast<std::size_t>(buffer)];
    const bool read_by_body = std::any_of(statement.reads.begin(), statement.reads.end(), [&](const Access& a) { return a.buffer == buffer; });
    const bool read_at_end = std::any_of(statement.finish_reads.begin(), statement.finish_reads.end(), [&](const FinishRead& a) { return a.buffer == buffer; });
    if (b.kind != BufferKind::weight || !b.blocking.empty() || b.shape.size() < 2 || !read_by_body || read_at_end) return {};
    Walk walk{statement, buffer, extents_of(tree), std::vector<int>(static_cast<std::size_t>(tree.variables), 0), {}};
    walk.visit(tree.root);
    std::int64_t start = 0;
    for (WeightReader& r : walk.readers) r.start = start, start += (r.elements() + 15) / 16 * 16;  // parts begin on cache lines
    return walk.readers;
}

}  // namespace loopegg
