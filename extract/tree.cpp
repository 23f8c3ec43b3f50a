// Bottom-up extraction: the term of least tree cost for each class.
#include "extract/acyclic.hpp"
#include "extract/extractors.hpp"

namespace loopegg {

Extraction extract_tree(const SerializedEGraph& egraph, const ExtractOptions&) {
    Extraction result;
    result.choice = cheapest_trees(egraph).choice;
    result.bound = path_bound(egraph);
    return result;
}

}  // namespace loopegg
