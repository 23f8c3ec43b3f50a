// The guard that speaks in points of accuracy: laws that every fit must keep, and what it counts on networks whose counts are known.
#include <cmath>

#include <catch2/catch.hpp>

#include "fisher/expected_loss.hpp"
#include "fisher/guards.hpp"
#include "graph/zoo/zoo.hpp"

using namespace loopegg;

namespace {

Measurement resnet34() { return sizes_of(zoo_graph("resnet34-cifar10")); }

// Every site of a stage keeps a share of its work.
Measurement with_share(Measurement m, std::int64_t places, double share) {
    for (SiteWork& s : m.sites)
        if (s.places == places) s.macs *= share;
    return m;
}

ExpectedLoss loss_of(const Measurement& original, const Measurement& variant) { return expected_loss(original, loss_parts(original, variant)); }

}  // namespace

TEST_CASE("a network that is the original loses nothing") {
    const ExpectedLoss loss = loss_of(resnet34(), resnet34());
    CHECK(loss.points == 0);
    CHECK(loss.low == 0);
    CHECK(loss.high == 0);
    CHECK(kept_at_loss(0) == 1);
}

TEST_CASE("less work is expected to lose more, and the interval holds the loss") {
    const Measurement original = resnet34();
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

TEST_CASE("one stage that is cut down costs more than the same work taken from all of them") {
    const Measurement original = resnet34();
    Measurement one = with_share(original, 1024, 0.2), all = original;
    double kept = 0, whole = 0;
    for (const SiteWork& s : one.sites) kept += s.macs;
    for (const SiteWork& s : original.sites) whole += s.macs;
    for (SiteWork& s : all.sites) s.macs *= kept / whole;
    CHECK(loss_of(original, one).points > loss_of(original, all).points);
}

TEST_CASE("a site that is gone counts as work that is gone") {
    const Measurement original = resnet34();
    Measurement dropped = original, emptied = original;
    std::erase_if(dropped.sites, [](const SiteWork& s) { return s.name == "layer2.1.conv1"; });
    for (SiteWork& s : emptied.sites)
        if (s.name == "layer2.1.conv1") s.macs = 0;
    CHECK(loss_of(original, dropped).points == loss_of(original, emptied).points);
    CHECK(loss_of(original, dropped).points > 0);
}

TEST_CASE("an output that sees less of the image loses more") {
    const Measurement original = sizes_of(zoo_graph("resnext29_2x64d"));
    Measurement blind = original;
    blind.receptive_field = 5;
    CHECK(loss_of(original, blind).points > 1);
}

TEST_CASE("receptive fields are those of the widest way through a network") {
    // Three, four, six and three blocks of two 3x3 convolutions, strides of 2 before the second, third and fourth stage, after a 3x3 stem.
    CHECK(resnet34().receptive_field == 1 + 2 + 2 * 6 * 1 + 2 * 1 + 2 * 7 * 2 + 2 * 2 + 2 * 11 * 4 + 2 * 4 + 2 * 5 * 8);
    CHECK(resnet34().image_side == 32);
    CHECK(sizes_of(zoo_graph("bert-tiny")).image_side == 0);
}

TEST_CASE("a share of capacity stands for a loss, and back") {
    for (double points : {0.0, 0.25, 1.0, 3.0}) CHECK(loss_at_kept(kept_at_loss(points)) == Approx(points).margin(1e-12));
    CHECK(kept_at_loss(1) == 0.5);
}
