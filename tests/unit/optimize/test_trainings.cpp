// Files of trainings: what they say of networks, and what is wrong with them.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "graph/model_json.hpp"
#include "graph/zoo/zoo.hpp"
#include "optimize/answer/finalists.hpp"
#include "optimize/run/trainings.hpp"

using namespace loopegg;
using Catch::Matchers::Contains;

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
    CHECK(t.taught->networks() == 1);
    CHECK(std::count(t.lines.begin(), t.lines.end(), '\n') == 3);
}

TEST_CASE("trainings of other networks are skipped", "[unit][optimize]") {
    const std::string other = R"({"base": "vgg16-cifar10", "plan": {"steps": []}, "accuracy": 90})", here = R"("base": "resnet34-cifar10", "accuracy": 91.0})";
    const Trainings t = read(other + "\n" + whole + "\n" + halved + here);
    CHECK(t.taught->networks() == 1);
    CHECK(std::count(t.lines.begin(), t.lines.end(), '\n') == 2);
}

TEST_CASE("a file of trainings that cannot be used says where and why", "[errors][optimize]") {
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
    CHECK(read_trainings(file, zoo_graph("resnet34-cifar10"), rules_file("discover")).taught->networks() == 1);
}
