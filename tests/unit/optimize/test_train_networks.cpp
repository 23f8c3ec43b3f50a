// Search, train, learn: which networks are trained, what becomes of trainers that fail, and what a killed run still knows.
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"
#include "fisher/expected_loss.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/plan/apply_plan.hpp"
#include "optimize/train/train_networks.hpp"
#include "rewrite/plan_rules.hpp"

using namespace loopegg;
using Catch::Matchers::Contains;

namespace {

const Graph& original() {
    static const Graph graph = zoo_graph("resnet34-cifar10");
    return graph;
}

MeasureInput size_of(const Graph& graph) { return sizes_of(without_unread_outputs(graph)); }
double guess_of(const Graph& graph) { return expected_loss(size_of(original()), loss_parts(size_of(original()), size_of(graph))).points; }

std::string narrowed(const std::string& site, int width) {
    return fmt::format(R"({{"site": "{}", "apply": [{{"rule": "bottleneck-output", "with": {{"?w": {}}}, "restore": "propagate"}}]}})", site, width);
}

// Networks that a search may have found, all of them equally fast.
const std::vector<std::string>& plans() {
    static const std::vector<std::string> all{
        R"({"steps": [)" + narrowed("layer1.*.conv1", 24) + "]}", R"({"steps": [)" + narrowed("layer2.*.conv1", 48) + "]}",
        R"({"steps": [)" + narrowed("layer3.*.conv1", 96) + "]}", R"({"steps": [)" + narrowed("layer4.*.conv1", 64) + "]}",
        R"({"steps": [)" + narrowed("layer1.*.conv1", 48) + "]}", R"({"steps": [)" + narrowed("layer4.*.conv1", 256) + "]}"};
    return all;
}

// A search that has found these networks. A network is tuned before it is trained.
class FixedSource final : public CandidateSource {
public:
    struct Found {
        std::string name;
        Plan plan;
        Graph graph;
        bool tuned;
        double ms = 1;
    };
    FixedSource() {
        const PlanRules rules = plan_rules(rules_file("discover"));
        for (const std::string& text : plans()) {
            const Plan plan = read_plan(make_source("plan", text));
            found_.push_back({fmt::format("front-{}", found_.size() + 1), plan, apply_plan(original(), plan, rules), false});
        }
    }

    void learn(const Trainings& trainings) override { calibration_ = trainings.calibration; }
    std::vector<TrainingCandidate> candidates() override {
        std::vector<TrainingCandidate> all;
        for (const Found& f : found_) all.push_back({f.tuned ? f.name : "", size_of(f.graph), f.tuned ? f.ms : 1});
        return all;
    }
    std::optional<TrainingCandidate> tune(std::size_t i) override {
        found_[i].tuned = true;
        return TrainingCandidate{found_[i].name, size_of(found_[i].graph), found_[i].ms};
    }
    TrainableNetwork trainable(const std::string& name) override {
        for (const Found& f : found_)
            if (f.name == name) return {f.graph, nullptr, f.plan, calibration_->loss(size_of(f.graph)), {}};
        throw InternalFault("no such network");
    }
    TrainingGoal goal() const override { return {1.5, 10, 3}; }

    std::vector<Found> found_;
    std::shared_ptr<const CalibratedLoss> calibration_;
};

// Trains a network by looking its accuracy up.
class Bench {
public:
    // The loss of each network by its name.
    using Truth = std::map<std::string, double>;
    explicit Bench(const Truth& lost) {
        write_file(folder_.path() / "truth/original", "90");
        for (const auto& [name, points] : lost) write_file(folder_.path() / "truth" / name, fmt::format("{:.6f}", 90 - points));
    }

    // The command finds the name of a network in the path of its folder.
    std::string command() const {
        return "name=$(basename $(dirname {})); accuracy=$(cat " + folder_.path().string() +
               R"(/truth/$name); echo "training $name"; echo "{\"accuracy\": $accuracy}")";
    }
    TrainRequest request(std::string command, int budget, int jobs = 1) const { return {std::move(command), budget, jobs, 0, folder_.path() / "trainings"}; }

    // The networks that were trained, and how often.
    std::map<std::string, std::size_t> train(FixedSource& source, const TrainRequest& request) const {
        Progress progress(Progress::Mode::quiet);
        NetworkTraining training(request, original(), nullptr, rules_file("discover"), progress);
        training.train_original();
        training.train_candidates(source);
        std::map<std::string, std::size_t> runs;
        for (const LedgerNetwork& n : training.ledger().networks())
            if (n.name != original_name) runs[n.name] = n.runs.size();
        return runs;
    }
    const std::filesystem::path& folder() const { return folder_.path(); }

private:
    struct Folder : ScratchFolder {
        Folder() : ScratchFolder(std::filesystem::temp_directory_path() / "loopegg-train-test") { std::filesystem::create_directories(path() / "truth"); }
    } folder_;
};

Bench::Truth as_predicted() {
    Bench::Truth truth;
    for (const FixedSource::Found& f : FixedSource().found_) truth[f.name] = guess_of(f.graph);
    return truth;
}

std::string best_by_belief(const FixedSource& source) {
    const FixedSource::Found* best = nullptr;
    for (const FixedSource::Found& f : source.found_)
        if (!best || source.calibration_->belief(size_of(f.graph)).points < source.calibration_->belief(size_of(best->graph)).points) best = &f;
    return best->name;
}

std::string complaint(const std::function<void()>& run) {
    try {
        run();
    } catch (const UserError& e) {
        return e.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("a trainer that agrees with the prediction leaves the predictions as they are", "[unit][optimize]") {
    const Bench::Truth truth = as_predicted();
    const Bench bench(truth);
    FixedSource source;
    const auto runs = bench.train(source, bench.request(bench.command(), 5));
    for (const FixedSource::Found& f : source.found_) CHECK(source.calibration_->belief(size_of(f.graph)).points == Approx(truth.at(f.name)).margin(1e-5));
    const std::string best = std::min_element(truth.begin(), truth.end(), [](auto& a, auto& b) { return a.second < b.second; })->first;
    CHECK(best_by_belief(source) == best);
    CHECK(runs.contains(best));  // so the answer is the same network, and it was trained
}

TEST_CASE("a trainer that punishes what was expected to be best finds another network", "[unit][optimize]") {
    for (const char* punished : {"first", "second"}) {
        Bench::Truth truth = as_predicted();
        std::vector<std::pair<double, std::string>> order;
        for (const auto& [name, lost] : truth) order.emplace_back(lost, name);
        std::sort(order.begin(), order.end());
        truth[order[0].second] += 4;
        if (std::string(punished) == "second") truth[order[1].second] += 4;
        const Bench bench(truth);
        FixedSource source;
        const auto runs = bench.train(source, bench.request(bench.command(), 6));
        double least = 1e9;
        for (const auto& [name, count] : runs) least = std::min(least, truth.at(name));
        CHECK(least < truth.at(order[0].second));
    }
}

TEST_CASE("training runs that start together are of different networks", "[unit][optimize]") {
    const Bench bench(as_predicted());
    FixedSource source;
    const auto runs = bench.train(source, bench.request(bench.command(), 5, 4));
    CHECK(runs.size() == 4);
    for (const auto& [name, count] : runs) CHECK(count == 1);
}

TEST_CASE("a network that turns out to be too slow is not trained", "[unit][optimize]") {
    const Bench bench(as_predicted());
    FixedSource source;
    source.found_[5].ms = 2;
    CHECK_FALSE(bench.train(source, bench.request(bench.command(), 5)).contains("front-6"));
}

TEST_CASE("a trainer that fails for one network costs one run", "[errors][optimize]") {
    Bench::Truth truth = as_predicted();
    const Bench bench(truth);
    for (const std::string& how : {"exit 3", "echo nonsense", R"(echo '{\"accuracy\": 191}')", "kill -SEGV $$", "sleep 60"}) {
        const std::string command = "case {} in */front-6/*) " + how + ";; *) " + bench.command() + ";; esac";
        FixedSource source;
        TrainRequest request = bench.request(command, 4);
        request.seconds = how == "sleep 60" ? 1 : 30;
        const auto runs = bench.train(source, request);
        CHECK(runs.at("front-6") == 1);
        CHECK(runs.size() == 3);
        CHECK(source.calibration_->networks() == 2);
        std::filesystem::remove_all(bench.folder() / "trainings");
    }
}

TEST_CASE("a trainer that cannot train the original ends the run before the search, and says why", "[errors][optimize]") {
    const Bench bench({});
    FixedSource source;
    const auto says = [&](const std::string& command) { return complaint([&] { bench.train(source, bench.request(command, 4)); }); };
    CHECK_THAT(says("echo 'error: no GPU' >&2; false {}"), Contains("the original could not be trained: error: no GPU") && Contains("log.txt"));
    CHECK_THAT(says("echo {}"), Contains("expected a JSON object such as"));
    CHECK_THAT(says("true {}"), Contains("it printed nothing"));
    CHECK_THAT(says(R"(echo {} >&2; echo '{"accuracy": 0.91}')"), Contains("expected percent"));
    CHECK(source.calibration_ == nullptr);
    CHECK(complaint([&] { bench.train(source, bench.request(bench.command(), 2)); }) == "none");  // no failure of it is kept
}

TEST_CASE("the last line of a trainer's output is its answer", "[unit][optimize]") {
    CHECK(*read_accuracy("epoch 1\n{\"accuracy\": 91.4, \"loss\": 0.3}\n\n").accuracy == 91.4);
    CHECK(*read_accuracy("{\"accuracy\": 0}").accuracy == 0);
    for (const char* wrong :
         {"", "\n\n", "91.4", "{\"accuracy\": \"91.4\"}", "{\"accuracy\": -1}", "{\"accuracy\": 91.4}\ndone", "{\"accuracy\": null}", "[91.4]"})
        CHECK_FALSE(read_accuracy(wrong).accuracy);
}

TEST_CASE("a run that was killed resumes with what it trained", "[unit][optimize]") {
    const Bench bench(as_predicted());
    const std::string counted = "echo x >>" + (bench.folder() / "count").string() + "; " + bench.command();
    FixedSource first, second;
    const auto before = bench.train(first, bench.request(counted, 3));
    for (FixedSource::Found& f : second.found_) f.tuned = before.contains(f.name);
    const auto after = bench.train(second, bench.request(counted, 6));
    for (const auto& [name, count] : before) CHECK(after.at(name) >= count);
    CHECK(read_file(bench.folder() / "count").size() == 2 * 6);  // the original and five others, each once
    CHECK_THAT(complaint([&] { bench.train(second, bench.request(counted + " ", 6)); }), Contains("cannot be compared"));
}
