// The guard that speaks in points of accuracy: laws that every fit must keep, and what it counts on networks whose counts are known.
#include <cmath>

#include <catch2/catch.hpp>

#include "fisher/calibrated_loss.hpp"
#include "fisher/conditions.hpp"
#include "fisher/expected_loss.hpp"
#include "graph/builder.hpp"
#include "graph/drop_branch.hpp"
#include "graph/zoo/zoo.hpp"

using namespace loopegg;

namespace {

MeasureInput resnet34() { return sizes_of(zoo_graph("resnet34-cifar10")); }

// Every site of a stage keeps a share of its work.
MeasureInput with_share(MeasureInput m, std::int64_t places, double share) {
    for (SiteWork& s : m.sites)
        if (s.places == places) s.macs *= share, s.dense_macs *= share, s.weights *= share;
    return m;
}

// Two residual blocks: a stream of one width, and branches that are of another width inside.
MeasureInput residual_of(std::int64_t stream, std::int64_t hidden) {
    GraphBuilder b("residual");
    std::string x = b.conv("stem", b.input("image", {1, 3, 32, 32}), {.out = stream, .kernel = 3, .padding = 1});
    for (const std::string at : {"a", "b"}) {
        const std::string y = b.relu("relu" + at, b.conv("in" + at, x, {.out = hidden, .kernel = 3, .padding = 1}));
        x = b.add("sum" + at, x, b.conv("out" + at, y, {.out = stream, .kernel = 3, .padding = 1}));
    }
    return sizes_of(b.finish({b.linear("head", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})}), 10)}));
}

ExpectedLoss loss_of(const MeasureInput& original, const MeasureInput& variant) { return expected_loss(original, loss_parts(original, variant)); }

}  // namespace

TEST_CASE("a network that is the original loses nothing") {
    const ExpectedLoss loss = loss_of(resnet34(), resnet34());
    CHECK(loss.points == 0);
    CHECK(loss.low == 0);
    CHECK(loss.high == 0);
    CHECK(kept_at_loss(0) == 1);
}

TEST_CASE("less work is expected to lose more, and the interval holds the loss") {
    const MeasureInput original = resnet34();
    double before = 0;
    for (double share : {0.9, 0.7, 0.5, 0.3, 0.1, 0.0}) {
        const ExpectedLoss loss = loss_of(original, with_share(original, 256, share));
        CHECK(loss.points > before);
        CHECK(loss.low < loss.points);
        CHECK(loss.points < loss.high);
        CHECK(std::isfinite(loss.high));
        before = loss.points;
    }
}

TEST_CASE("parameters that few places cannot train are cheap to lose") {
    // The last stage of this network has 13 million parameters on 16 pixels, the first a quarter of a million on 1,024.
    const MeasureInput original = resnet34();
    CHECK(loss_of(original, with_share(original, 16, 0.3)).points < 0.5 * loss_of(original, with_share(original, 1024, 0.3)).points);
}

TEST_CASE("at equal work, depth that is gone costs more than width that is gone") {
    const MeasureInput original = resnet34();
    MeasureInput shallow = original;
    double kept = 0, whole = 0;
    for (const SiteWork& s : original.sites)
        if (s.places == 256) whole += s.macs, kept += s.name.starts_with("layer2.1") || s.name.starts_with("layer2.2") ? 0 : s.macs;
    std::erase_if(shallow.sites, [](const SiteWork& s) { return s.name.starts_with("layer2.1") || s.name.starts_with("layer2.2"); });
    const MeasureInput narrow = with_share(original, 256, kept / whole);
    CHECK(loss_of(original, shallow).points > loss_of(original, narrow).points);
}

TEST_CASE("at equal work, a network of unequal widths is expected to lose more than the uniform one") {
    const MeasureInput original = residual_of(128, 128);
    double before = 0;
    for (std::int64_t hidden : {32, 64, 128}) {  // the branches do the same work each time
        const double points = loss_of(original, residual_of(32 * 32 / hidden, hidden)).points;
        CHECK(points > before);
        before = points;
    }
    CHECK(loss_of(original, residual_of(128, 8)).points > loss_of(original, residual_of(32, 32)).points);
}

TEST_CASE("for any work that a site keeps, equal shares of what it reads and writes cost least") {
    const MeasureInput original = resnet34();
    const auto with_channels = [&](double read, double written) {
        MeasureInput m = original;
        for (SiteWork& s : m.sites) s.reads *= read, s.writes *= written, s.macs *= read * written, s.dense_macs *= read * written, s.weights *= read * written;
        return loss_of(original, m).points;
    };
    for (double share : {0.9, 0.6, 0.3})
        for (double apart : {1.05, 1.3, 1.8})
            if (share * apart <= 1) {
                CHECK(with_channels(share / apart, share * apart) > with_channels(share, share));
                CHECK(with_channels(share / apart, share * apart) == Approx(with_channels(share * apart, share / apart)));
            }
}

TEST_CASE("more channels than the original has cost nothing") {
    MeasureInput wide = resnet34();
    for (SiteWork& s : wide.sites) s.reads *= 2, s.writes *= 2;
    CHECK(loss_of(resnet34(), wide).points == 0);
}

TEST_CASE("for an original unlike all that were labelled, the interval is twice as wide and says why") {
    const MeasureInput original = resnet34();
    CHECK(unlike_labelled(original).empty());
    MeasureInput large = original;
    large.image_side = 224, large.classes = 1000;
    const LossParts parts = loss_parts(original, with_share(original, 256, 0.5));
    const ExpectedLoss usual = expected_loss(original, parts), wider = expected_loss(large, parts);
    CHECK(wider.points == usual.points);
    CHECK(wider.high - wider.low == Approx(2 * (usual.high - usual.low)));
    CHECK(wider.unlike == "its images have 224 pixels along a side, it has 1000 classes");
    CHECK(unlike_labelled(sizes_of(zoo_graph("bert-tiny"))).find("its input is no image") == 0);
    CHECK(unlike_labelled(residual_of(4, 4)).find("G multiply-accumulates") != std::string::npos);
}

TEST_CASE("channels that all come back through a few of them cost more than the work that is saved") {
    GraphBuilder b("restored"), narrow("narrow");
    const auto network = [](GraphBuilder& g, bool restored) {
        std::string x = g.conv("conv", g.input("image", {1, 64, 32, 32}), {.out = restored ? 16 : 64, .kernel = 3, .padding = 1});
        if (restored) x = g.conv("conv.restore", x, {.out = 64, .kernel = 1});
        return g.finish({x});
    };
    const MeasureInput original = sizes_of(network(b, false)), variant = sizes_of(network(narrow, true));
    MeasureInput as_wide = variant;
    REQUIRE(as_wide.sites.size() == 1);
    as_wide.sites[0].writes = 64;
    CHECK(loss_of(original, variant).points > loss_of(original, as_wide).points);
}

TEST_CASE("groups cost more than a width that saves as much work") {
    const MeasureInput original = resnet34();
    MeasureInput grouped = original, narrow = original;
    for (SiteWork& s : grouped.sites) s.macs /= 2, s.weights /= 2;
    for (SiteWork& s : narrow.sites) s.macs /= 2, s.weights /= 2, s.dense_macs /= 2;
    CHECK(loss_of(original, grouped).points > loss_of(original, narrow).points);
}

TEST_CASE("a site that is gone counts as work that is gone") {
    const MeasureInput original = resnet34();
    MeasureInput dropped = original, emptied = original;
    std::erase_if(dropped.sites, [](const SiteWork& s) { return s.name == "layer2.1.conv1"; });
    for (SiteWork& s : emptied.sites)
        if (s.name == "layer2.1.conv1") s.macs = s.dense_macs = s.weights = 0;
    CHECK(loss_of(original, dropped).points == loss_of(original, emptied).points);
    CHECK(loss_of(original, dropped).points > 0);
}

TEST_CASE("an output that sees less of the image loses more") {
    const MeasureInput original = sizes_of(zoo_graph("resnext29_2x64d"));
    MeasureInput blind = original;
    blind.spread = 1.6;
    CHECK(loss_of(original, blind).points > 1);
}

TEST_CASE("pixels that a stride skips are unread, unless another reader reads them") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    CHECK(sizes_of(graph).unread == 0);  // a 3x3 window next to every projection
    const Graph dropped = without_branch(graph, branch_written_by(graph, "layer2.0.conv2"));
    CHECK(sizes_of(dropped).unread == Approx(std::log(4)));
    const Graph other = without_branch(graph, branch_written_by(graph, "layer2.3.conv2"));
    CHECK(sizes_of(other).unread == 0);
    CHECK(loss_of(sizes_of(graph), sizes_of(dropped)).points > loss_of(sizes_of(graph), sizes_of(other)).points);
}

TEST_CASE("the spread is that of the widest way through a network") {
    // Three, four, six and three blocks of two 3x3 convolutions, strides of 2 before the second, third and fourth stage, after a 3x3 stem. A window of
    // three pixels adds a variance of two thirds.
    CHECK(resnet34().spread == Approx(std::sqrt(2.0 / 3 * (1 + 6 + 1 + 7 * 4 + 4 + 11 * 16 + 16 + 5 * 64))));
    CHECK(resnet34().image_side == 32);
    CHECK(sizes_of(zoo_graph("bert-tiny")).image_side == 0);
}

TEST_CASE("a share of capacity stands for a loss, and back") {
    for (double points : {0.0, 0.25, 1.0, 3.0}) CHECK(loss_at_kept(kept_at_loss(points)) == Approx(points).margin(1e-12));
    CHECK(kept_at_loss(1) == 0.5);
}

TEST_CASE("what is stressed counts so many times as much, and nothing else changes", "[unit][fisher]") {
    const MeasureInput original = sizes_of(zoo_graph("resnet34-cifar10"));
    StagewiseLoss loss(original);
    StageWork left;
    for (const SiteWork& s : original.sites)
        if (s.places == 1024) left.add(s);
    left.macs *= 0.4, left.dense_macs *= 0.5, left.weights *= 0.5, left.sites -= 1;
    const std::size_t stage = *loss.stage_of(1024);
    const double usual = loss.points(stage, left);
    double parts = 0;
    for (const LossParts& only : {LossParts{1, 0, 0, 0, 0, 0}, LossParts{0, 1, 0, 0, 0, 0}, LossParts{0, 0, 0, 1, 0, 0}}) {
        loss.stress(only);
        CHECK(loss.points(stage, left) > 0);
        parts += loss.points(stage, left);
    }
    CHECK(parts == Approx(usual));
    loss.stress({2, 2, 2, 2, 2, 2});
    CHECK(loss.points(stage, left) == Approx(2 * usual));
    loss.stress(usual_parts);
    CHECK(loss.points(stage, left) == usual);
}

namespace {

// Every site keeps a share of its work, and the sites of the stage with so many places keep another share.
MeasureInput with_shares(double share, std::int64_t places = 0, double other = 1) {
    MeasureInput m = resnet34();
    for (SiteWork& s : m.sites) {
        const double kept = s.places == places ? other : share;
        s.macs *= kept, s.dense_macs *= kept, s.weights *= kept;
    }
    return m;
}

ExpectedLoss guess(const MeasureInput& variant) { return expected_loss(resnet34(), loss_parts(resnet34(), variant)); }

// Networks that lose `times` as much as the guard expects, with so many seeds each.
CalibratedLoss calibrated(double times, std::vector<double> shares, int seeds = 4) {
    std::vector<TrainedNetwork> trained;
    for (double share : shares) trained.push_back({with_shares(share), times * guess(with_shares(share)).points, seeds});
    return CalibratedLoss(resnet34(), trained, 1000);
}

}  // namespace

TEST_CASE("without trainings the guard expects what it expected") {
    const CalibratedLoss calibration(resnet34(), {}, 1);
    for (double share : {0.8, 0.4, 0.1}) CHECK(calibration.loss(with_shares(share)).points == Approx(guess(with_shares(share)).points));
}

TEST_CASE("the original loses nothing, whatever it is calibrated on") {
    const ExpectedLoss loss = calibrated(3, {0.5, 0.2}).loss(resnet34());
    CHECK(loss.points == 0);
    CHECK(loss.high == 0);
}

TEST_CASE("training runs that agree with the guard change nothing") {
    const CalibratedLoss calibration = calibrated(1, {0.7, 0.5, 0.2});
    for (double share : {0.6, 0.3}) CHECK(calibration.loss(with_shares(share)).points == Approx(guess(with_shares(share)).points).margin(1e-9));
}

TEST_CASE("a network that was trained often is expected to lose what it lost") {
    for (double times : {0.4, 2.0}) {
        const MeasureInput network = with_shares(0.3);
        const double lost = times * guess(network).points;
        CHECK(calibrated(times, {0.3}, 1000).loss(network).points == Approx(lost).margin(0.05));
    }
}

TEST_CASE("few training runs show that all losses are twice what the guard expects") {
    const CalibratedLoss calibration = calibrated(2, {0.5, 0.35, 0.2});
    for (double share : {0.6, 0.3, 0.15}) {
        const double before = guess(with_shares(share)).points, lost = 2 * before;
        CHECK(std::abs(calibration.loss(with_shares(share)).points - lost) < 0.35 * std::abs(before - lost));
    }
}

TEST_CASE("training runs show which stage counts for more") {
    // These networks lose much where the first stage is small, and nothing where the third stage is small.
    std::vector<TrainedNetwork> trained;
    for (double share : {0.7, 0.5, 0.3}) {
        trained.push_back({with_shares(1, 1024, share), 2 * guess(with_shares(1, 1024, share)).points, 6});
        trained.push_back({with_shares(1, 64, share), 0.2 * guess(with_shares(1, 64, share)).points, 6});
    }
    const CalibratedLoss calibration(resnet34(), trained, 1000);
    const MeasureInput first = with_shares(1, 1024, 0.4), third = with_shares(1, 64, 0.4);
    CHECK(calibration.loss(first).points > 1.5 * guess(first).points);
    CHECK(calibration.loss(third).points < 0.6 * guess(third).points);
}

TEST_CASE("networks that train better than their original do not imply that less work is better") {
    const CalibratedLoss calibration = calibrated(-1, {0.5, 0.35, 0.2});
    double before = 0;
    for (double share : {0.9, 0.6, 0.4, 0.25, 0.1}) {
        const ExpectedLoss loss = calibration.loss(with_shares(share));
        CHECK(loss.points > before);
        before = loss.points;
    }
}

TEST_CASE("more trainings make the interval narrower, and one training's error stays in it") {
    const MeasureInput network = with_shares(0.3);
    const auto width = [&](const CalibratedLoss& calibration) { return calibration.loss(network).high - calibration.loss(network).low; };
    const double none = width(CalibratedLoss(resnet34(), {}, 1)), one = width(calibrated(1, {0.35})),
                 many = width(calibrated(1, {0.5, 0.35, 0.3, 0.25, 0.2}, 50));
    CHECK(one < none);
    CHECK(many < one);
    CHECK(many > 0.7);
}

TEST_CASE("a calibration has its own key") {
    CHECK(calibrated(2, {0.5}).key() == calibrated(2, {0.5}).key());
    CHECK(calibrated(2, {0.5}).key() != calibrated(2, {0.4}).key());
    CHECK(calibrated(2, {0.5}).key() != calibrated(2.1, {0.5}).key());
    CHECK(calibrated(2, {0.5}).key() != calibrated(2, {0.5}, 5).key());
}

TEST_CASE("what would be known after another training is what is known once it is there") {
    const MeasureInput network = with_shares(0.3);
    const CalibratedLoss before = calibrated(2, {0.5, 0.2}), after = calibrated(2, {0.5, 0.2, 0.3});
    const CalibratedLoss with = before.with({network, 2 * guess(network).points, 4});
    for (double share : {0.6, 0.3, 0.1}) CHECK(with.belief(with_shares(share)).points == Approx(after.belief(with_shares(share)).points));
    CHECK(with.key() == after.key());
    CHECK(with.belief(network).deviation < before.belief(network).deviation);
    CHECK(before.with({network, before.belief(network).points, 1}).belief(with_shares(0.32)).points ==
          Approx(before.belief(with_shares(0.32)).points).epsilon(0.01));
}
