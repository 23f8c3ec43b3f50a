#include "optimize/run/oracle_options.hpp"

#include "fisher/evidence.hpp"

namespace loopegg {

OracleOptions oracle_options(const OptimizeRequest& request, const ReadNetwork& read, const RuleBook& book) {
    OracleOptions options;
    options.data = request.data, options.seed = request.seed;
    if (const Phase* phase = book.find_phase("networks"); phase && !phase->when.empty()) options.conditions = phase->when;
    if (request.points) options.conditions = with_points(std::move(options.conditions), *request.points);
    options.trained = read.trained ? &read.network.weights : nullptr;
    options.taught = read.trainings.taught;
    options.store = default_evidence();
    return options;
}

}  // namespace loopegg
