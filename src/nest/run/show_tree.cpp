// Loop trees as text, for people and tests.
#include "nest/run/loop_tree.hpp"

namespace loopegg {
namespace {

std::string tile_text(const Tile& tile) {
    std::string text = "[";
    for (const Index& i : tile.index) text += (text.size() > 1 ? ", " : "") + to_string(i);
    text += "] for";
    for (const Tile::Step& s : tile.steps) text += " v" + std::to_string(s.var) + "<" + std::to_string(s.extent);
    for (const Predicate& p : tile.predicates) text += " if " + to_string(p.expression) + " < " + std::to_string(p.bound);
    return text;
}

std::string place_text(const OperandPlace& place, const std::string& buffer) {
    std::string text = place.stage < 0 ? buffer : "stage" + std::to_string(place.stage);
    text += "[";
    for (std::size_t i = 0; i < place.index.size(); ++i) text += (i ? ", " : "") + to_string(place.index[i]);
    return text + "]";
}

const char* word_for(LoopKind kind) {
    switch (kind) {
        case LoopKind::serial: return "for";
        case LoopKind::parallel: return "parallel";
        case LoopKind::vector: return "vector";
        case LoopKind::unroll: return "unroll";
        case LoopKind::bind: return "bind";
        case LoopKind::tensor: return "tensor";
    }
    return "";
}

void show(const TreeNode& node, const Statement& s, int depth, std::string& out) {
    std::string pad(static_cast<std::size_t>(depth) * 2, ' ');
    auto name = [&](int buffer) { return s.buffers[static_cast<std::size_t>(buffer)].name; };
    switch (node.kind) {
        case TreeNode::Kind::loop: {
            out += pad + word_for(node.loop) + (node.place.empty() ? "" : " " + node.place) +
                   (node.partial ? " partial stage" + std::to_string(node.stage) : "") + " v" + std::to_string(node.var) + " < " + std::to_string(node.extent) +
                   "   ; " + to_string(node.axis) + "\n";
            break;
        }
        case TreeNode::Kind::cat: out += pad + "cat\n"; break;
        case TreeNode::Kind::stage:
            out += pad + "stage" + std::to_string(node.stage) + " " + node.scope + " " + name(node.buffer) + (node.owns ? " owns " : " ") +
                   tile_text(node.tile) + " source " + place_text(node.source, name(node.buffer)) + "\n";
            break;
        case TreeNode::Kind::complete:
            out += pad + "complete";
            for (const Tile& t : node.tiles) out += " " + tile_text(t);
            out += "\n";
            break;
        case TreeNode::Kind::body:
            out += pad;
            for (const Predicate& p : node.predicates) out += "if " + to_string(p.expression) + " < " + std::to_string(p.bound) + " ";
            out += place_text(node.write, name(s.write.buffer)) + " <-";
            for (std::size_t i = 0; i < node.reads.size(); ++i) out += " " + place_text(node.reads[i], name(s.reads[i].buffer));
            out += "\n";
            break;
    }
    for (const Tree& child : node.children) show(*child, s, depth + 1, out);
}

}  // namespace

std::string to_string(const LoopTree& tree, const Statement& statement) {
    std::string out;
    show(*tree.root, statement, 0, out);
    return out;
}

}  // namespace loopegg
