#include "extract/dot.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/quote.hpp"

namespace loopegg {
std::string to_dot(const SerializedEGraph& egraph, std::size_t most) {
    if (egraph.nodes.size() > most) throw UserError(fmt::format("a picture of {} nodes cannot be read by anybody; the most is {}", egraph.nodes.size(), most));
    std::string out = "digraph egraph {\n  compound=true;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
    for (ClassIndex c = 0; c < egraph.classes.size(); ++c) {
        const bool root = std::find(egraph.roots.begin(), egraph.roots.end(), c) != egraph.roots.end();
        out += fmt::format("  subgraph cluster_{} {{\n    style={}; label={};\n", c, root ? "bold" : "dotted", dot_string(egraph.classes[c].id));
        for (NodeIndex n : egraph.classes[c].nodes) out += fmt::format("    n{} [label={}];\n", n, dot_string(egraph.nodes[n].op));
        out += "  }\n";
    }
    for (NodeIndex n = 0; n < egraph.nodes.size(); ++n)
        for (ClassIndex child : egraph.nodes[n].children)
            out += fmt::format("  n{} -> n{} [lhead=cluster_{}];\n", n, egraph.classes[child].nodes.front(), child);
    return out + "}\n";
}

}  // namespace loopegg
