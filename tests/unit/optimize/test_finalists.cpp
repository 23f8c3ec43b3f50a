// Finalists, and files of training runs: what they report about networks, and what is wrong with them.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "graph/model_json.hpp"
#include "graph/zoo/zoo.hpp"
#include "optimize/answer/finalists.hpp"
#include "optimize/run/trainings.hpp"
#include "rewrite/plan_rules.hpp"

using namespace loopegg;
using Catch::Matchers::Contains;

namespace {

// A run with three finalists: the last one slower than the others.
void write_run(const std::filesystem::path& out) {
    const auto network = [](const char* name, double ms, double points) {
        return nlohmann::json{{"finalist", name}, {"measured", true}, {"latency_ms", ms}, {"baseline_ms", 12.0}, {"loss", {{"points", points}}}};
    };
    const nlohmann::json result{
        {"guard", {{"threshold", 0.5}}},
        {"original", {{"median_ms", 11.0}}},
        {"networks", {network("front-1", 3, 0.9), network("front-2", 4, 0.6), network("front-3", 5, 0.5), {{"origin", "front"}, {"measured", false}}}}};
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
    const char* accuracies = R"({"original": [95.6, 95.8], "front-1": 94.6, "front-2": [95.3, 95.5], "front-3": 95.6})";
    const FinalistChoice by_run = choose(folder.path(), accuracies);  // half of the capacity: one point
    CHECK(by_run.max_loss == Approx(1));
    REQUIRE(by_run.chosen);
    CHECK(by_run.rows[*by_run.chosen].name == "front-2");  // front-1 loses 1.1
    CHECK(*by_run.rows[*by_run.chosen].lost == Approx(0.3));
    CHECK(by_run.rows[*by_run.chosen].speedup == Approx(3));  // interleaved with the original
    const FinalistChoice strict = choose(folder.path(), accuracies, 0.2);
    REQUIRE(strict.chosen);
    CHECK(strict.rows[*strict.chosen].name == "front-3");
    CHECK(!choose(folder.path(), accuracies, 0.01).chosen);
    const FinalistChoice one = choose(folder.path(), R"({"original": 95, "front-3": 94.9})");  // the others were not trained
    REQUIRE(one.chosen);
    CHECK(one.rows[*one.chosen].name == "front-3");
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
    CHECK_THAT(said(R"({"front-1": 94})"), Contains("the accuracy of 'original' is missing"));
    CHECK_THAT(said(R"({"original": 95, "rules-3": 94})"), Contains("'rules-3' is no finalist") && Contains("front-1, front-2, front-3"));
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
    const auto narrowed = [](int width) {
        return read_plan(make_source("plan.json", R"({"steps": [{"site": "layer1.*.conv1", "apply": [{"rule": "bottleneck-output", "with": {"?w": )" +
                                                      std::to_string(width) + R"(}, "restore": "propagate"}]}]})"));
    };
    FoundNetworks found;
    for (int width : {32, 48}) {
        FoundNetwork one{.name = "front-" + std::to_string(found.timed.size() + 1)};
        one.plan = narrowed(width), one.network.graph = apply_plan(graph, one.plan, shipped_plan_rules());
        found.timed.push_back(std::move(one));
    }
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-finalists");
    write_finalists(folder.path(), found, false);
    const std::filesystem::path second = folder.path() / "finalists" / "front-2";
    CHECK(read_model(second / "model.json") == found.timed[1].network.graph);
    CHECK(apply_plan(graph, read_plan(make_source("plan.json", read_file(second / "plan.json"))), shipped_plan_rules()) == found.timed[1].network.graph);
    CHECK_THAT(read_file(second / "network.py"), Contains("class Network"));
    CHECK(!std::filesystem::exists(second / "weights.safetensors"));  // nothing was trained
}

TEST_CASE("what the run itself trained replaces what was predicted, and its interval", "[unit][optimize]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-finalists");
    write_run(folder.path());
    CHECK_THROWS_WITH(accuracies_of_run(folder.path()), Contains("trained no network") && Contains("--accuracies"));
    nlohmann::json result = nlohmann::json::parse(read_file(folder.path() / "result.json"));
    result["training"] = {{"original", {{"accuracies", {92.0, 92.2}}}}};
    result["networks"][1]["accuracies"] = {91.9, 91.7};
    result["networks"][1]["predicted"] = {{"points", 0.6}, {"low", 0.1}, {"high", 1.1}};
    write_file(folder.path() / "result.json", result.dump());
    const FinalistChoice choice = choose_by_accuracy(folder.path(), accuracies_of_run(folder.path()), {});
    REQUIRE(choice.chosen);
    const FinalistRow& chosen = choice.rows[*choice.chosen];
    CHECK(chosen.name == "front-2");
    CHECK(chosen.expected == Approx(0.6));
    CHECK(chosen.loss.points == Approx(0.3));
    CHECK((chosen.loss.low < 0.3 && chosen.loss.high > 0.3 && chosen.loss.high - chosen.loss.low < 1));
    for (const FinalistRow& row : choice.rows) CHECK((row.name == "original" || row.trained.has_value() == (row.name == "front-2")));
}

namespace {

const std::string whole = R"({"plan": {"steps": []}, "accuracy": 92.0})";
const std::string halved =
    R"({"plan": {"steps": [{"site": "layer1.*.conv1", "apply": [{"rule": "bottleneck-output", "with": {"?w": 32}, "restore": "propagate"}]}]}, )";

Trainings read(const std::string& text) {
    const ScratchFile file(".jsonl");
    write_file(file.path(), text);
    return read_trainings(file.path(), zoo_graph("resnet34-cifar10"), rules_file("discover"));
}

std::string complaint(const std::string& text) {
    try {
        read(text);
    } catch (const UserError& e) {
        return std::string(e.what());
    }
    return "none";
}

}  // namespace

TEST_CASE("trainings of one plan are seeds of one network", "[unit][optimize]") {
    const Trainings t = read(whole + "\n\n" + halved + R"("accuracy": 91.0})" + "\n" + halved + R"("accuracy": 91.4})" + "\n");
    CHECK(t.calibration->networks() == 1);
    CHECK(std::count(t.lines.begin(), t.lines.end(), '\n') == 3);
}

TEST_CASE("trainings of other networks are skipped", "[unit][optimize]") {
    const std::string other = R"({"base": "vgg16-cifar10", "plan": {"steps": []}, "accuracy": 90})", here = R"("base": "resnet34-cifar10", "accuracy": 91.0})";
    const Trainings t = read(other + "\n" + whole + "\n" + halved + here);
    CHECK(t.calibration->networks() == 1);
    CHECK(std::count(t.lines.begin(), t.lines.end(), '\n') == 2);
}

TEST_CASE("a file of training runs that cannot be used says where and why", "[errors][optimize]") {
    CHECK_THAT(complaint(""), Contains("has no training of 'resnet34-cifar10' itself"));
    CHECK_THAT(complaint(whole), Contains("has no training of a network that was made from"));
    CHECK_THAT(complaint(whole + "\n" + halved + R"("accuracy": 191})"), Contains("0 to 100") && Contains(":2:"));
    CHECK_THAT(complaint(whole + "\n{\"accuracy\": 91}"), Contains("plan") && Contains(":2:"));
    CHECK_THAT(complaint(whole + "\n\n{\"plan\": "), Contains(":3:"));
    CHECK_THAT(complaint(whole + "\n" + R"({"plan": {"steps": [{"site": "nowhere", "apply": [{"rule": "drop-branch"}]}]}, "accuracy": 90})"),
               Contains("nowhere"));
    CHECK_THAT(complaint(R"({"recipe": "full", "plan": {"steps": []}, "accuracy": 95})"
                         "\n" +
                         halved + R"("accuracy": 91, "recipe": "short"})"),
               Contains("two recipes cannot be compared") && Contains(":2:"));
}

TEST_CASE("accuracies of finalists become trainings, each once", "[unit][optimize]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-trainings");
    std::filesystem::create_directories(folder.path() / "finalists/front-1");
    write_file(folder.path() / "original.json", write_model(zoo_graph("resnet34-cifar10")));
    write_file(folder.path() / "finalists/front-1/plan.json", nlohmann::json::parse(halved + R"("accuracy": 1})").at("plan").dump());
    const std::filesystem::path file = folder.path() / "trainings.jsonl";
    const std::map<std::string, Trained> accuracies{{"original", {{92.1, 92.3}}}, {"front-1", {{91.0}}}};
    append_trainings(file, folder.path(), accuracies);
    const std::string once = read_file(file);
    CHECK(std::count(once.begin(), once.end(), '\n') == 3);
    append_trainings(file, folder.path(), accuracies);
    CHECK(read_file(file) == once);
    CHECK(read_trainings(file, zoo_graph("resnet34-cifar10"), rules_file("discover")).calibration->networks() == 1);
}
