// Rules over whole networks: the shipped ones are sound, and rules that are nearly right are refused.
#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "rules/judge/net_proof.hpp"
#include "rules/load.hpp"
#include "rules/net_judge.hpp"

using namespace loopegg;

namespace {

Loaded loaded_rule(const std::string& rule) {
    Loaded loaded = check_rules(make_source("test.rules", "(language nest)\n" + rule), {.judge = false});
    INFO((loaded.mistakes.empty() ? "" : loaded.mistakes[0].what.message));
    REQUIRE(loaded.mistakes.empty());
    return loaded;
}

// What small networks say against the only rule of a file; empty where they say nothing.
std::string against(const std::string& rule) {
    const Loaded loaded = loaded_rule(rule);
    const auto refutation = judge_net_rule(*loaded.book.rules().front());
    return refutation ? refutation->message : "";
}

// Why the rule is not proved; empty where it is.
std::string unproved(const std::string& rule) {
    const Loaded loaded = loaded_rule(rule);
    return prove_net_rule(*loaded.book.rules().front()).why;
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
        CHECK(prove_net_rule(*rule).why == "");
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

TEST_CASE("exact rules over networks are proved for all widths", "[rules]") {
    CHECK(unproved("(rule r (row (row ?x ?y) ?z) => (row ?x (row ?y ?z)))") == "");
    CHECK(unproved("(rule r (row ?x (row ?y ?z)) <=> (row (row ?x ?y) ?z))") == "");
    CHECK(unproved("(rule r (write ?w (write ?w ?x)) => (write ?w ?x))") == "");
    CHECK(unproved("(rule r (read ?w (read ?w ?x)) => (lack (- (channels-in ?x) ?w) ?x))") == "");
    CHECK(unproved("(rule r (write ?w (row ?x ?y)) => (row (write ?w ?x) (lack (- (channels ?x) ?w) ?y)) :when (channelwise ?y) (= (absent 1 ?y) 1))") == "");
}

// Small networks have at most 16 channels, and none of their sites is kept.
TEST_CASE("a rule over networks that is right for small widths alone is not proved", "[rules]") {
    for (const char* w : {"(min ?w 48)", "(- ?w (floor-div ?w 100))", "(% ?w 97)", "(max ?w (floor-div ?w 40))"}) {
        INFO(w);
        CHECK(against("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n " + std::string(w) + ")) :when (changeable ?l))") == "");
        CHECK(unproved("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n " + std::string(w) + ")) :when (changeable ?l))") != "");
    }
    CHECK(unproved("(rule r (join (add ?j) ?x ?f) => ?x :when (= (channels ?x) 48))") != "");
    CHECK(unproved("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) (lack ?m ?y)))").find("does not read") != std::string::npos);
    CHECK(unproved("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) (lack ?m ?y)) :when (channelwise ?x) (= (absent 1 ?x) 1))") == "");
    CHECK(unproved("(rule r (write ?w (join (add ?j) ?x ?y)) => (join (add ?j) (write ?w ?x) ?y))") != "");
    CHECK(unproved("(rule r (write ?w (row ?x ?y)) => (row ?x (write ?w ?y)))") != "");
    CHECK(unproved("(rule r (row (stream ?x ?s) ?y) ~> (row (stream ?x (write 4 ?x)) ?y) :when (capacity))") != "");
}

TEST_CASE("a rule that changes a site asks whether it may", "[rules]") {
    CHECK(against("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n ?w)))") == "");
    CHECK_THAT(unproved("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n ?w)))"), Catch::Contains("(changeable ?l)"));
    CHECK_THAT(unproved("(rule r (lack ?m (layer ?l ?n)) => (layer ?l (with-fewer-inputs ?n ?m)))"), Catch::Contains("(changeable ?l)"));
    CHECK(unproved("(rule r (join (add ?j) ?x ?f) ~> (join (add ?j) ?x (none ?f)) :when (computes ?f) (capacity))") != "");
    CHECK(unproved("(rule r (join (add ?j) ?x ?f) ~> (join (add ?j) ?x (none ?f)) :when (computes ?f) (free ?f) (capacity))") == "");
}
