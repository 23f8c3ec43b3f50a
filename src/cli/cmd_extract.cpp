// 'loopegg extract': picks the cheapest term of an e-graph that some program wrote as egraph-serialize JSON.
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "extract/best_terms.hpp"
#include "extract/extractors.hpp"
#include "extract/term_space.hpp"

namespace loopegg {
namespace cmd_extract {

struct Arguments {
    std::string file, method = "ilp";
    double seconds = 10;
    std::size_t best = 0, sample = 0, size = 0;
    std::uint64_t seed = 0;
    bool count = false;
};

nlohmann::json as_json(const SerializedEGraph& egraph, const Extraction& found) {
    nlohmann::json choice = nlohmann::json::object();
    for (std::size_t c = 0; c < found.choice.size(); ++c)
        if (found.choice[c] != no_index) choice[egraph.classes[c].id] = egraph.nodes[found.choice[c]].id;
    return {{"method", found.method},   {"cost", found.cost},       {"bound", found.bound},
            {"optimal", found.optimal}, {"seconds", found.seconds}, {"choice", std::move(choice)}};
}

// Not the one best term but the space of all: how many, the cheapest few, some at random. Of the first root.
int answer_about_space(const Arguments& args, const SerializedEGraph& egraph, Session& session) {
    const ClassIndex root = egraph.roots.front();
    nlohmann::json answer{{"root", egraph.classes[root].id}};
    if (args.best > 0) {
        answer["best"] = nlohmann::json::array();
        for (const RankedTerm& t : best_terms(egraph, root, args.best)) {
            answer["best"].push_back({{"term", t.term ? nlohmann::json(to_string(t.term)) : nlohmann::json()}, {"cost", t.cost}, {"size", t.size}});
            if (!session.json)
                fmt::print("{}  cost {}\n", t.term ? terminal_text(to_string(t.term)) : fmt::format("a term of {} operators, too long to print", t.size),
                           t.cost);
        }
    }
    if (args.count || args.sample > 0) {
        SpaceLimits limits;
        if (args.size > 0) limits.size = args.size;
        const TermSpace space(egraph, root, limits);
        answer["count"] = space.infinite() ? "infinite" : space.count().get_str();  // a string: it may have any number of digits
        if (!session.json) fmt::print("{} terms\n", answer["count"].get<std::string>());
        if (args.sample > 0) {
            if (space.infinite())
                throw UserError(
                    Diagnostic{"a class that contains itself has infinitely many terms, and none can be drawn uniformly", {}, "bound them with --size"});
            if (space.count() == 0) throw UserError(fmt::format("no term has at most {} operators", args.size));
            std::mt19937_64 random(args.seed);
            answer["sample"] = nlohmann::json::array();
            for (std::size_t i = 0; i < args.sample; ++i) {
                answer["sample"].push_back(to_string(space.sample(random)));
                if (!session.json) fmt::print("{}\n", answer["sample"].back().get<std::string>());
            }
        }
    }
    if (session.json) session.answer(answer);
    return 0;
}

Action setup(CLI::App& app) {
    auto args = std::make_shared<Arguments>();
    app.add_option("FILE", args->file, "an e-graph as egraph-serialize JSON")->required();
    app.add_option("--method", args->method, "the extractor: " + join(extractor_names(), ", "))->capture_default_str();
    app.add_option("--seconds", args->seconds, "time limit of ilp in seconds")->capture_default_str();
    app.add_option("--best", args->best, "print the K cheapest distinct terms of the first root");
    app.add_flag("--count", args->count, "print the exact number of terms of the first root");
    app.add_option("--sample", args->sample, "print N random terms of the first root, uniformly distributed");
    app.add_option("--size", args->size, "count and sample only terms with at most this many operators");
    app.add_option("--seed", args->seed, "random seed of the sample")->capture_default_str();
    return [args](Session& session) {
        const Extractor& method = find_extractor(args->method);
        if (!(args->seconds > 0) || !std::isfinite(args->seconds)) throw UsageError("--seconds must be a number above 0");
        const SerializedEGraph egraph = read_serialized(read_source(args->file));
        if (args->best > 0 || args->count || args->sample > 0) return answer_about_space(*args, egraph, session);
        session.progress.stage(fmt::format("extract with {}", method.name));
        const Extraction found = extract(egraph, method.name, {args->seconds});
        session.progress.finish(fmt::format("cost {}{}", found.cost, found.optimal ? ", optimal" : fmt::format(", at least {}", found.bound)));
        if (session.json)
            session.answer(as_json(egraph, found));
        else {
            fmt::print("cost {} ({})\n", found.cost, found.optimal ? "optimal" : fmt::format("no choice costs less than {}", found.bound));
            std::size_t classes = 0;
            for (NodeIndex n : found.choice) classes += n != no_index;
            for (ClassIndex root : egraph.roots) {
                // A term with much sharing is exponentially long when written out; such an answer is read from --json.
                if (term_size(egraph, found, root) <= 2000)
                    fmt::print("{}: {}\n", egraph.classes[root].id, to_string(term_of(egraph, found, root)));
                else
                    fmt::print("{}: a term over {} classes, too long to print (see --json)\n", egraph.classes[root].id, classes);
            }
        }
        return 0;
    };
}

}  // namespace cmd_extract

const Command extract_command{"extract", "pick the cheapest term of a serialized e-graph", "loopegg extract egraph.json --method ilp --seconds 10",
                              cmd_extract::setup};

}  // namespace loopegg
