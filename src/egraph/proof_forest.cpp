#include "egraph/proof_forest.hpp"

namespace loopegg {

void ProofForest::link(NodeId x, NodeId y, Reason reason) {
    Stored next{y, reason};
    for (NodeId n = x;;) {
        const Stored old = links_[n];
        links_[n] = next;
        if (old.to == n) return;
        next = {n, old.reason ^ backward};
        n = old.to;
    }
}

bool ProofForest::linked(NodeId x, NodeId y) const {
    while (!root(x)) x = links_[x].to;
    while (!root(y)) y = links_[y].to;
    return x == y;
}

}  // namespace loopegg
