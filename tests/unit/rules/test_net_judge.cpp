// Rules over whole networks: the shipped ones are sound, and rules that are nearly right are refused.
#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "rules/load.hpp"
#include "rules/net_judge.hpp"

using namespace loopegg;

namespace {

// What the judge says against the only rule of a file; empty where it says nothing.
std::string against(const std::string& rule) {
    const Loaded loaded = check_rules(make_source("test.rules", "(language nest)\n" + rule), {.judge = false});
    INFO((loaded.mistakes.empty() ? "" : loaded.mistakes[0].what.message));
    REQUIRE(loaded.mistakes.empty());
    const auto refutation = judge_net_rule(*loaded.book.rules().front());
    return refutation ? refutation->message : "";
}

}  // namespace

TEST_CASE("the shipped rules over networks are sound", "[rules]") {
    const Loaded loaded = check_rules(shipped("rules/networks.rules"), {.judge = false});
    REQUIRE(loaded.mistakes.empty());
    int judged = 0;
    for (const Rule* rule : loaded.book.rules()) {
        INFO(rule->name);
        const auto refutation = judge_net_rule(*rule);
        if (refutation) FAIL(refutation->message << ": " << refutation->instance);
        ++judged;
    }
    CHECK(judged == 18);
}

TEST_CASE("exact rules over networks that move widths wrongly are refused", "[rules]") {
    CHECK(against("(rule r (write ?w (row ?x ?y)) => (row (write ?w ?x) ?y) :when (fresh ?y))") != "");
    CHECK(against("(rule r (write ?w (row ?x ?y)) => (row ?x ?y))") != "");
    CHECK(against("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) (lack ?m ?y)))") != "");
    CHECK(against("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) ?y))") != "");
    CHECK(against("(rule r (lack ?m (layer ?l ?n)) => (layer ?l (with-fewer-inputs ?n (+ ?m 1))))") != "");
    CHECK(against("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n (- ?w 1))))") != "");
    CHECK(against("(rule r (within ?w (row ?x ?y)) => (row (within ?w ?x) ?y))") != "");
    CHECK(against("(rule r (join ?j ?x ?f) => (join ?j ?f ?x))") != "");
    CHECK(against("(rule r (row ?x (each ?f ?n)) => ?x)") != "");
    CHECK(against("(rule r (row (stream ?x ?s) ?y) => (row ?x ?y))") != "");
}

TEST_CASE("neural rules over networks leave something out, and leave a network", "[rules]") {
    CHECK(against("(rule r (join (add ?j) ?x ?f) ~> ?f :when (computes ?f) (capacity))") == "leaves nothing out: a neural rule must restrict");
    CHECK(against("(rule r (row ?x ?y) ~> (row (write ?w ?x) ?y) :for ?w (shares 1 8 ?x) :when (capacity))").find("no network") != std::string::npos);
    CHECK(against("(rule r (row ?x ?y) ~> ?x :when (computes ?y) (capacity))") != "");
    CHECK(against("(rule r (join (add ?j) ?x ?f) ~> (join (add ?j) ?f ?f) :when (capacity))") != "");
    // Thirds of a width, and one layer in place of two.
    CHECK(against("(rule r (row ?x ?y) ~> (row (write (/ (channels ?x) 2) ?x) (read (/ (channels ?x) 2) ?y)) :when (narrowable ?x) (whole ?x) (computes ?y) "
                  "(separate ?y) (capacity))") == "");
    CHECK(against("(rule r (row ?x (row ?y ?z)) ~> (row ?x ?z) :when (computes ?y) (= (channels ?x) (channels ?y)) (capacity))") == "");
}
