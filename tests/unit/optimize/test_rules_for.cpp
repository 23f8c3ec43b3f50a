// Which rules of a file a network is searched with.
#include <catch2/catch.hpp>

#include "graph/load.hpp"
#include "optimize/run/run.hpp"

using namespace loopegg;

namespace {

bool has_set(const std::string& architecture, const char* model, const std::string& set) {
    OptimizeRequest request;
    request.architecture = architecture;
    const RuleBook book = rules_for(request, load_graph(model));
    return std::any_of(book.sets.begin(), book.sets.end(), [&](const RuleSet& s) { return s.name == set; });
}

}  // namespace

TEST_CASE("a set serves the classes of its tags", "[unit][optimize]") {
    CHECK(has_set("residual", "zoo:resnet34-cifar10", "neural-restored"));
    CHECK_FALSE(has_set("transformer", "zoo:resnet34-cifar10", "neural-restored"));
    CHECK(has_set("transformer", "zoo:resnet34-cifar10", "networks"));
    CHECK(has_set("all", "zoo:bert-tiny", "neural-restored"));
}

TEST_CASE("the class is the detector's unless the user says another", "[unit][optimize]") {
    CHECK_FALSE(has_set("auto", "zoo:bert-tiny", "neural-restored"));
    CHECK(has_set("residual", "zoo:bert-tiny", "neural-restored"));
    CHECK_THROWS_WITH(has_set("residul", "zoo:bert-tiny", "networks"), Catch::Contains("did you mean 'residual'"));
}
