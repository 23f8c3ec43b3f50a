// 'loopegg extract': picks the cheapest term of an e-graph that some program wrote as egraph-serialize JSON.
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "extract/extractors.hpp"

namespace loopegg {
namespace {

struct Arguments {
    std::string file, method = "ilp";
    double seconds = 10;
};

nlohmann::json as_json(const SerializedEGraph& egraph, const Extraction& found) {
    nlohmann::json choice = nlohmann::json::object();
    for (std::size_t c = 0; c < found.choice.size(); ++c)
        if (found.choice[c] != no_index) choice[egraph.classes[c].id] = egraph.nodes[found.choice[c]].id;
    return {{"method", found.method}, {"cost", found.cost}, {"bound", found.bound}, {"optimal", found.optimal}, {"seconds", found.seconds}, {"choice", std::move(choice)}};
}

Action setup(CLI::App& app) {
    auto args = std::make_shared<Arguments>();
    app.add_option("FILE", args->file, "an e-graph as egraph-serialize JSON")->required();
    app.add_option("--method", args->method, "tree, greedy-dag or ilp")->capture_default_str();
    app.add_option("--seconds", args->seconds, "the longest that ilp may search")->capture_default_str();
    return [args](Session& session) {
        const Extractor& method = find_extractor(args->method);
        if (!(args->seconds > 0) || !std::isfinite(args->seconds)) throw UsageError("--seconds must be a number above 0");
        const SerializedEGraph egraph = read_serialized(read_source(args->file));
        session.progress.stage(fmt::format("extract with {}", method.name));
        const Extraction found = extract(egraph, method.name, {args->seconds});
        session.progress.finish(fmt::format("cost {}{}", found.cost, found.optimal ? ", optimal" : fmt::format(", at least {}", found.bound)));
        if (session.json) session.answer(as_json(egraph, found));
        else {
            fmt::print("cost {} ({})\n", found.cost, found.optimal ? "optimal" : fmt::format("no choice costs less than {}", found.bound));
            std::size_t classes = 0;
            for (NodeIndex n : found.choice) classes += n != no_index;
            for (ClassIndex root : egraph.roots) {
                // A term with much sharing is exponentially long when written out; such an answer is read from --json.
                if (term_size(egraph, found, root) <= 2000) fmt::print("{}: {}\n", egraph.classes[root].id, to_string(term_of(egraph, found, root)));
                else fmt::print("{}: a term over {} classes, too long to print (see --json)\n", egraph.classes[root].id, classes);
            }
        }
        return 0;
    };
}

}  // namespace

const Command extract_command{"extract", "pick the cheapest term of a serialized e-graph", "loopegg extract egraph.json --method ilp --seconds 10", setup};

}  // namespace loopegg
