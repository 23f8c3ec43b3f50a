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

}  // namespace loopegg
