// The sites of a network, which rules may change, and which of them share one loop nest.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

struct Site {
    std::string name;  // of the node
    std::string op;
    Shape shape;     // of the output
    Term statement;  // STMT: equal for all sites of one shape
    std::int64_t macs = 0, parameters = 0;
    std::size_t kind = 0;  // index into Sites::kinds
    bool kept = false;     // --keep: no neural rule may change the site
};

// One loop nest that several sites may share.
struct SiteKind {
    Term statement;
    Term nest;  // naive
    std::vector<std::size_t> sites;
};

struct Sites {
    std::vector<Site> all;
    std::vector<SiteKind> kinds;
    std::size_t index_of(std::string_view name) const;
    bool all_kept(const SiteKind& kind) const;  // no site of the kind may change
};

// `keep`: globs over names. A glob that matches no site is a UserError that suggests near names.
Sites sites_of(const Graph& graph, const std::vector<std::string>& keep = {});

// Names as plan.json writes them: sites are globs there.

// A glob that matches this name alone.
inline std::string exact_glob(const std::string& name) {
    std::string out;
    for (char c : name) out += c == '*' || c == '?' || c == '[' ? std::string{'[', c, ']'} : std::string(1, c);
    return out;
}

}  // namespace loopegg
