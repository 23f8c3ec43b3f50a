// Measures small candidates on a target and prints what came of each as JSON: boards_driver TARGET COUNT [SECONDS] [PLACE=FAULT | all=FAULT]...
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "backends/measure/tvm_measurer.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const std::string target = argv[1];
    const int count = std::atoi(argv[2]);
    std::map<std::string, std::string> faults;
    for (int i = 4; i < argc; ++i)
        if (const std::string word = argv[i]; word.find('=') != word.npos) faults[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    MeasurerOptions options;
    options.limits.seconds = std::atof(argv[3]), options.rounds = 1, options.samples = 5, options.board_patience = 40;
    options.note = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    options.fault = [&](std::size_t place) {
        const auto one = faults.find(std::to_string(place)), all = faults.find("all");
        return one != faults.end() ? one->second : all != faults.end() ? all->second : "";
    };
    std::vector<Candidate> candidates;
    for (int i = 0; i < count; ++i) candidates.push_back({parse_term("(nest (linear 2 " + std::to_string(4 + i) + " 8) (at n (at co (at ci done))))"), target});
    nlohmann::json answers = nlohmann::json::array();
    try {
        TvmMeasurer measurer(options);
        measurer.measure(std::span(candidates).first(1));  // every board is reached, and every worker started, before the clock is
        const double start = monotonic_seconds();
        for (const Measured& m : measurer.measure(candidates))
            answers.push_back({{"timed", m.latency.has_value()}, {"n", m.latency ? m.latency->n : 0}, {"why", m.why}, {"own", m.own}, {"machine", m.machine}});
        const TvmMeasurer::Counts& c = measurer.counts();
        std::printf("%s\n",
                    nlohmann::json{{"answers", answers}, {"seconds", monotonic_seconds() - start}, {"compiled", c.compiled}, {"from_store", c.from_store}}
                        .dump()
                        .c_str());
        return 0;
    } catch (const UserError& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
