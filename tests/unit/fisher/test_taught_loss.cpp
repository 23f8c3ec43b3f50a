// What trainings teach the guard: laws of the correction, and what it learns from trainings that are known.
#include <cmath>

#include <catch2/catch.hpp>

#include "fisher/taught_loss.hpp"
#include "graph/zoo/zoo.hpp"

using namespace loopegg;

namespace {

MeasureInput resnet34() { return sizes_of(zoo_graph("resnet34-cifar10")); }

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
TaughtLoss teach(double times, std::vector<double> shares, int seeds = 4) {
    std::vector<TrainedNetwork> trained;
    for (double share : shares) trained.push_back({with_shares(share), times * guess(with_shares(share)).points, seeds});
    return TaughtLoss(resnet34(), trained, 1000);
}

}  // namespace

TEST_CASE("without trainings the guard expects what it expected") {
    const TaughtLoss taught(resnet34(), {}, 1);
    for (double share : {0.8, 0.4, 0.1}) CHECK(taught.loss(with_shares(share)).points == Approx(guess(with_shares(share)).points));
}

TEST_CASE("the original loses nothing, whatever was taught") {
    const ExpectedLoss loss = teach(3, {0.5, 0.2}).loss(resnet34());
    CHECK(loss.points == 0);
    CHECK(loss.high == 0);
}

TEST_CASE("trainings that agree with the guard change nothing") {
    const TaughtLoss taught = teach(1, {0.7, 0.5, 0.2});
    for (double share : {0.6, 0.3}) CHECK(taught.loss(with_shares(share)).points == Approx(guess(with_shares(share)).points).margin(1e-9));
}

TEST_CASE("a network that was trained often is expected to lose what it lost") {
    for (double times : {0.4, 2.0}) {
        const MeasureInput network = with_shares(0.3);
        const double lost = times * guess(network).points;
        CHECK(teach(times, {0.3}, 1000).loss(network).points == Approx(lost).margin(0.05));
    }
}

TEST_CASE("few trainings teach that all losses are twice what the guard expects") {
    const TaughtLoss taught = teach(2, {0.5, 0.35, 0.2});
    for (double share : {0.6, 0.3, 0.15}) {
        const double before = guess(with_shares(share)).points, lost = 2 * before;
        CHECK(std::abs(taught.loss(with_shares(share)).points - lost) < 0.35 * std::abs(before - lost));
    }
}

TEST_CASE("trainings teach which stage counts for more") {
    // These networks lose much where the first stage is small, and nothing where the third stage is small.
    std::vector<TrainedNetwork> trained;
    for (double share : {0.7, 0.5, 0.3}) {
        trained.push_back({with_shares(1, 1024, share), 2 * guess(with_shares(1, 1024, share)).points, 6});
        trained.push_back({with_shares(1, 64, share), 0.2 * guess(with_shares(1, 64, share)).points, 6});
    }
    const TaughtLoss taught(resnet34(), trained, 1000);
    const MeasureInput first = with_shares(1, 1024, 0.4), third = with_shares(1, 64, 0.4);
    CHECK(taught.loss(first).points > 1.5 * guess(first).points);
    CHECK(taught.loss(third).points < 0.6 * guess(third).points);
}

TEST_CASE("networks that train better than their original do not teach that less work is better") {
    const TaughtLoss taught = teach(-1, {0.5, 0.35, 0.2});
    double before = 0;
    for (double share : {0.9, 0.6, 0.4, 0.25, 0.1}) {
        const ExpectedLoss loss = taught.loss(with_shares(share));
        CHECK(loss.points > before);
        before = loss.points;
    }
}

TEST_CASE("more trainings make the interval narrower, and one training's error stays in it") {
    const MeasureInput network = with_shares(0.3);
    const auto width = [&](const TaughtLoss& taught) { return taught.loss(network).high - taught.loss(network).low; };
    const double none = width(TaughtLoss(resnet34(), {}, 1)), one = width(teach(1, {0.35})), many = width(teach(1, {0.5, 0.35, 0.3, 0.25, 0.2}, 50));
    CHECK(one < none);
    CHECK(many < one);
    CHECK(many > 0.7);
}

TEST_CASE("what was taught has a key of its own") {
    CHECK(teach(2, {0.5}).key() == teach(2, {0.5}).key());
    CHECK(teach(2, {0.5}).key() != teach(2, {0.4}).key());
    CHECK(teach(2, {0.5}).key() != teach(2.1, {0.5}).key());
    CHECK(teach(2, {0.5}).key() != teach(2, {0.5}, 5).key());
}
