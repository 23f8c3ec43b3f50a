#include "extract/extractors.hpp"

#include <chrono>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "extract/acyclic.hpp"

namespace loopegg {

// The rows, each in its own file.
Extraction extract_tree(const SerializedEGraph& egraph, const ExtractOptions& options);
Extraction extract_greedy_dag(const SerializedEGraph& egraph, const ExtractOptions& options);
Extraction extract_ilp(const SerializedEGraph& egraph, const ExtractOptions& options);

namespace {

constexpr Extractor table[] = {
    {"tree", "bottom-up: the least cost when shared parts count every time", extract_tree},
    {"greedy-dag", "greedy: shared parts count once; fast, not always best", extract_greedy_dag},
    {"ilp", "exact: the least DAG cost, with a bound that proves it where time allows", extract_ilp},
};

void require_finite_roots(const SerializedEGraph& egraph) {
    const std::vector<NodeIndex> cheapest = cheapest_trees(egraph).choice;
    std::vector<Diagnostic> complaints;
    for (ClassIndex root : egraph.roots)
        if (cheapest[root] == no_index)
            complaints.push_back({fmt::format("root class '{}' has no finite term: every node of it contains itself", egraph.classes[root].id)});
    if (!complaints.empty()) throw UserError(std::move(complaints));
}

}  // namespace

std::span<const Extractor> extractors() { return table; }

std::vector<std::string> extractor_names() {
    std::vector<std::string> names;
    for (const Extractor& e : table) names.emplace_back(e.name);
    return names;
}

const Extractor& find_extractor(std::string_view name) {
    for (const Extractor& e : table)
        if (name == e.name) return e;
    std::string hint = did_you_mean(name, extractor_names());
    if (hint.empty()) hint = "the methods are " + join(extractor_names(), ", ");
    throw UsageError(Diagnostic{fmt::format("there is no extraction method '{}'", name), {}, hint});
}

Extraction extract(const SerializedEGraph& egraph, std::string_view method, const ExtractOptions& options) {
    const Extractor& row = find_extractor(method);
    const auto began = std::chrono::steady_clock::now();
    require_finite_roots(egraph);
    Extraction result = row.run(egraph, options);
    result.method = row.name;
    result.check(egraph);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
}

}  // namespace loopegg
