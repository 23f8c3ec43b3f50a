// Accuracies that people hand back, and the network that is chosen by them.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "graph/model_json.hpp"
#include "graph/zoo/zoo.hpp"
#include "optimize/finalists.hpp"
#include "rewrite/plan_rules.hpp"

using namespace loopegg;
using Catch::Matchers::Contains;

namespace {

// A run with three finalists: two of the search's own, and a naive scaling.
void write_run(const std::filesystem::path& out) {
    const auto network = [](const char* name, double ms, double points) {
        return nlohmann::json{{"finalist", name}, {"measured", true}, {"latency_ms", ms}, {"beside_ms", 12.0}, {"loss", {{"points", points}}}};
    };
    const nlohmann::json result{
        {"guard", {{"threshold", 0.5}}},
        {"original", {{"median_ms", 11.0}}},
        {"networks", {network("rules-1", 3, 0.9), network("rules-2", 4, 0.6), network("width-1", 5, 0.5), {{"origin", "rules"}, {"measured", false}}}}};
    write_file(out / "result.json", result.dump());
}

FinalistChoice choose(const std::filesystem::path& out, const std::string& accuracies, std::optional<double> max_loss = {}) {
    write_file(out / "accuracies.json", accuracies);
    return choose_by_accuracy(out, read_accuracies(out / "accuracies.json"), max_loss);
}

}  // namespace

TEST_CASE("the fastest finalist whose trained loss is small enough is chosen", "[unit][optimize]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-finalists");
    write_run(folder.path());
    const char* accuracies = R"({"original": [95.6, 95.8], "rules-1": 94.6, "rules-2": [95.3, 95.5], "width-1": 95.6})";
    const FinalistChoice by_run = choose(folder.path(), accuracies);  // half of the capacity: one point
    CHECK(by_run.max_loss == Approx(1));
    REQUIRE(by_run.chosen);
    CHECK(by_run.rows[*by_run.chosen].name == "rules-2");  // rules-1 loses 1.1
    CHECK(*by_run.rows[*by_run.chosen].lost == Approx(0.3));
    CHECK(by_run.rows[*by_run.chosen].speedup == Approx(3));  // beside the original in the same turns
    const FinalistChoice strict = choose(folder.path(), accuracies, 0.2);
    REQUIRE(strict.chosen);
    CHECK(strict.rows[*strict.chosen].name == "width-1");
    CHECK(!choose(folder.path(), accuracies, 0.01).chosen);
    const FinalistChoice one = choose(folder.path(), R"({"original": 95, "width-1": 94.9})");  // the others were not trained
    REQUIRE(one.chosen);
    CHECK(one.rows[*one.chosen].name == "width-1");
}

TEST_CASE("accuracies that make no sense are named", "[errors][optimize]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-finalists");
    write_run(folder.path());
    const auto said = [&](const std::string& accuracies) {
        try {
            choose(folder.path(), accuracies);
        } catch (const UserError& e) {
            return std::string(e.what());
        }
        return std::string("nothing");
    };
    CHECK_THAT(said(R"({"rules-1": 94})"), Contains("the accuracy of 'original' is missing"));
    CHECK_THAT(said(R"({"original": 95, "rules-3": 94})"), Contains("'rules-3' is no finalist") && Contains("rules-1, rules-2, width-1"));
    CHECK_THAT(said(R"({"original": 195})"),
               Contains("accuracies.json:1:14: error: expected an accuracy in percent, 0 to 100, or a list of them, but found 195"));
    CHECK_THAT(said(R"({"original": "good"})"), Contains("expected an accuracy in percent"));
    CHECK_THAT(said(R"({"original": []})"), Contains("accuracies.json:1:14: error: expected at least one accuracy"));
    CHECK_THAT(said("[1, 2]"), Contains("expected an object such as"));
    CHECK_THAT(said("{"), Contains("accuracies.json:1:1: error: this '{' is never closed"));
    write_file(folder.path() / "result.json", R"({"guard": {"threshold": 0.5}, "original": {"median_ms": 11.0}, "networks": []})");
    CHECK_THAT(said(R"({"original": 95})"), Contains("has no finalists"));
}

TEST_CASE("a finalist is written as its plan, its network and a module", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    WholeNetworks networks;
    for (double width : {0.5, 0.75}) {
        const NetworkShape shape = space.scaled(width, 1);
        networks.judged.push_back({"width", shape, space.network(shape).value(), {}});
        TimedNetwork t{networks.judged.size() - 1, {}, {}, {}, {}};
        t.input.graph = networks.judged.back().graph, t.input.plan = space.plan(shape);
        networks.timed.push_back(std::move(t));
    }
    CHECK(finalist_names(networks) == std::vector<std::string>{"width-1", "width-2"});
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-finalists");
    write_finalists(folder.path(), networks);
    const std::filesystem::path second = folder.path() / "finalists" / "width-2";
    CHECK(read_model(second / "model.json") == networks.judged[1].graph);
    CHECK(apply_plan(graph, read_plan(make_source("plan.json", read_file(second / "plan.json"))), shipped_plan_rules()) == networks.judged[1].graph);
    CHECK_THAT(read_file(second / "network.py"), Contains("class Network"));
    CHECK(!std::filesystem::exists(second / "weights.safetensors"));  // nothing was trained
}
