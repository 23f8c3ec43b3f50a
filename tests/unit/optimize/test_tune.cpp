#include <catch2/catch.hpp>

#include <unordered_set>

#include "backends/measure/network_measure.hpp"
#include "backends/target/target.hpp"
#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/loop_tree.hpp"
#include "optimize/run/times.hpp"
#include "optimize/tune/statement_kind.hpp"
#include "optimize/tune/tune.hpp"
#include "rewrite/schedule_rules.hpp"

using namespace loopegg;

namespace {

// A machine made of arithmetic: likes vectors of eight and hates scalar code; some candidates fail.
class PaperMachine : public Measurer {
public:
    std::vector<Measured> measure(std::span<const Candidate> candidates) override {
        std::vector<Measured> out;
        for (const Candidate& c : candidates) {
            ++asked;
            seen.insert(c.nest);
            const std::string text = to_string(c.nest);
            if (fail_all || asked <= fail_first) {
                out.push_back({std::nullopt, "it crashed"});
                continue;
            }
            double ms = 10;
            if (text.find("(vec") != std::string::npos) ms = 3;
            if (text.find(" 8) done)") != std::string::npos) ms = 1;
            out.push_back({Latency{ms, 0.1, 5, c.target, true, false}, "", seconds});
        }
        return out;
    }
    int asked = 0;
    double seconds = 0;  // that each candidate costs
    std::unordered_set<Term> seen;
    bool fail_all = false;
    int fail_first = 0;  // so many candidates
};

const Term conv = complete(parse_term("(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));

std::vector<Term> first_schedules(const Term& nest) {
    static const ScheduleRules rules(shipped("rules/tune-cpu.rules"), VectorMachine{2, 8, 32});
    return rules.schedules(nest, 64);
}

TuneOptions small() {
    TuneOptions o;
    o.starts = first_schedules;
    o.trials = 12, o.per_round = 4;
    return o;
}

}  // namespace

TEST_CASE("tuning finds what the machine likes, within its trials", "[unit][optimize]") {
    PaperMachine machine;
    Progress quiet(Progress::Mode::quiet);
    const auto tuned = tune(std::vector{conv, conv}, machine, small(), quiet);
    REQUIRE(tuned.size() == 2);
    CHECK(tuned[0].nest == tuned[1].nest);  // equal nests are tuned once
    CHECK(machine.asked <= 12);
    CHECK(tuned[0].best.latency->median_ms == 1);
    CHECK(domain_of(tuned[0].nest) == domain_of(conv));
    CHECK_NOTHROW(resolve(tuned[0].nest));
}

TEST_CASE("a nest that nothing can be measured for keeps its schedule and its reason", "[unit][optimize]") {
    PaperMachine machine;
    machine.fail_all = true;
    Progress quiet(Progress::Mode::quiet);
    const auto tuned = tune(std::vector{conv}, machine, small(), quiet);
    CHECK(tuned[0].nest == conv);
    CHECK_FALSE(tuned[0].best.latency);
    CHECK(tuned[0].best.why == "it crashed");
    CHECK(tuned[0].failed == tuned[0].tried);
}

TEST_CASE("where all trials of a nest failed, other schedules are tried until one works", "[unit][optimize]") {
    PaperMachine machine;
    machine.fail_first = 3;
    Progress quiet(Progress::Mode::quiet);
    TuneOptions options = small();
    options.trials = options.per_round = 1;
    const auto tuned = tune(std::vector{conv}, machine, options, quiet);
    REQUIRE(tuned[0].best.latency);
    CHECK(tuned[0].failed == 3);
    CHECK(machine.asked == 4);
}

TEST_CASE("the schedule that a nest comes with is measured, whatever was learnt from others", "[unit][optimize]") {
    PaperMachine machine;
    Progress quiet(Progress::Mode::quiet);
    TuneOptions options = small();
    options.starts = [](const Term& nest) {
        std::vector<Term> all{nest};
        for (Term& t : first_schedules(nest)) all.push_back(std::move(t));
        return all;
    };
    std::vector<Term> nests;  // so many that the last ones are picked by a model, which has learnt that schedules like these are slow
    for (int i = 1; i <= 60; ++i) nests.push_back(complete(parse_term("(nest (linear 4 " + std::to_string(8 * i) + " 8) (at n (at co (at ci done))))")));
    tune(nests, machine, options, quiet);
    for (const Term& nest : nests) CHECK(machine.seen.contains(nest));
}

TEST_CASE("a nest in which the network spends more time has more trials, and all together what they have", "[unit][optimize]") {
    PaperMachine machine;
    Progress quiet(Progress::Mode::quiet);
    TuneOptions options = small();
    options.role = [](std::size_t nest) { return TuneOptions::Role{nest == 0 ? 10.0 : 1.0, nest}; };
    std::vector<Term> nests;
    for (int i = 1; i <= 4; ++i)
        nests.push_back(complete(
            parse_term("(nest (conv2d 1 1 " + std::to_string(16 * i) + " 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))")));
    const auto tuned = tune(nests, machine, options, quiet);
    for (int i = 1; i < 4; ++i) CHECK(tuned[0].tried > tuned[static_cast<std::size_t>(i)].tried);
    CHECK(machine.asked <= 4 * 12);
    CHECK(machine.asked > 4 * 12 - 4);
}

TEST_CASE("what is much slower than the nest that it would stand for has no more than a first round", "[unit][optimize]") {
    PaperMachine machine;  // of 16 channels it makes vectors of eight, which it likes; of 2 it can make none
    Progress quiet(Progress::Mode::quiet);
    TuneOptions options = small();
    options.role = [](std::size_t) { return TuneOptions::Role{1, 0}; };
    const Term slow = complete(parse_term("(nest (conv2d 1 1 2 8 3 3 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));
    const auto tuned = tune(std::vector{conv, slow}, machine, options, quiet);
    REQUIRE(tuned[1].best.latency->median_ms > 2 * tuned[0].best.latency->median_ms);
    CHECK(tuned[1].tried <= options.per_round);
    CHECK(tuned[0].tried > options.per_round);
}

namespace {

// Knows some schedules, and estimates all others to take next to nothing.
class FarMachine : public Measurer {
public:
    std::vector<Measured> measure(std::span<const Candidate> candidates) override {
        std::vector<Measured> out;
        for (const Candidate& c : candidates) {
            asked.push_back(c.nest);
            const bool is_known = known.contains(c.nest);
            out.push_back({Latency{is_known ? 5.0 : 0.001, 0, is_known ? 21 : 0, c.target, is_known, false}, ""});
        }
        return out;
    }
    std::unordered_set<Term> known;
    std::vector<Term> asked;
};

}  // namespace

TEST_CASE("an estimate is never better than a measured time, and what is estimated is waited for", "[unit][optimize]") {
    Progress quiet(Progress::Mode::quiet);
    TuneOptions options = small();
    options.wait_for_times = true;
    FarMachine machine;
    CHECK_FALSE(tune(std::vector{conv}, machine, options, quiet)[0].best.latency->measured);
    REQUIRE(machine.asked.size() == 4);  // one round: nothing was learnt
    const std::vector<Term> first = machine.asked;
    machine.known = {first[2]}, machine.asked.clear();
    TunedNest tuned = tune(std::vector{conv}, machine, options, quiet)[0];
    CHECK(machine.asked == first);  // the rest of the round is still to come
    CHECK(tuned.nest == first[2]);
    CHECK(tuned.best.latency->measured);
    CHECK(tuned.also.empty());
    machine.known = {first.begin(), first.end()}, machine.asked.clear();
    tuned = tune(std::vector{conv}, machine, options, quiet)[0];
    CHECK(machine.asked.size() == 8);  // all of it is known, so the next round is asked for
    CHECK(tuned.best.latency->measured);
}

TEST_CASE("when time is up in the first round, the nests that are needed still have a trial", "[unit][optimize]") {
    PaperMachine machine;
    machine.seconds = 1;
    Progress quiet(Progress::Mode::quiet);
    TuneOptions options = small();
    options.together = 4, options.seconds = 3;
    options.role = [](std::size_t nest) { return TuneOptions::Role{1, nest == 3 ? 2 : nest, nest != 2}; };
    std::vector<Term> nests;
    for (int i = 1; i <= 4; ++i)
        nests.push_back(complete(
            parse_term("(nest (conv2d 1 1 " + std::to_string(16 * i) + " 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))")));
    const auto tuned = tune(nests, machine, options, quiet);
    CHECK(tuned[0].tried == 4);
    CHECK(tuned[1].tried == 1);
    CHECK(tuned[2].tried == 0);
    CHECK(tuned[3].tried == 1);  // part of a row that computes an original
}

TEST_CASE("a candidate is charged once, and a repetition of the run spends as much", "[unit][optimize]") {
    PaperMachine machine;
    machine.seconds = 2;
    for (int run = 0; run < 2; ++run) {
        ChargedOnce charged(machine);
        const std::vector<Candidate> all{{conv, "host"}, {first_schedules(conv)[0], "host"}, {conv, "host"}};
        const std::vector<Measured> answers = charged.measure(all), again = charged.measure(std::span(all).first(1));
        CHECK(answers[0].seconds == 2);
        CHECK(answers[1].seconds == 2);
        CHECK(answers[2].seconds == 0);
        CHECK(again[0].seconds == 0);
        CHECK(again[0].latency->median_ms == answers[0].latency->median_ms);
        CHECK(charged.charged() == 4);
    }
}

TEST_CASE("statements are of one kind where they differ in their channels alone", "[unit][optimize]") {
    const auto kind = [](const std::string& stmt) { return statement_kind(parse_term(stmt)); };
    const std::string narrow = kind("(epilogue relu (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1))");
    CHECK(narrow == kind("(epilogue relu (conv2d 1 1 40 24 8 8 3 3 1 1 1 1 1 1))"));
    CHECK(narrow != kind("(conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1)"));
    CHECK(narrow != kind("(epilogue relu (conv2d 1 1 16 8 4 4 3 3 1 1 1 1 1 1))"));
    CHECK(narrow != kind("(epilogue relu (conv2d 1 1 16 8 8 8 1 1 1 1 1 1 1 1))"));
}

TEST_CASE("a network on a machine that runs it step by step takes as long as its steps, measured where all of them are", "[unit][optimize]") {
    FarMachine machine;
    const Term other = complete(parse_term("(nest (zip + 8) (at x done))")), network("network", {conv, other, conv});
    const Target target = find_target("host");
    machine.known = {conv, other};
    const Measured all = sum_of_steps(network, target, machine);
    CHECK(all.latency->measured);
    CHECK(all.latency->median_ms == Approx(15));
    CHECK(all.latency->n == 21);
    machine.known = {conv};
    CHECK_FALSE(sum_of_steps(network, target, machine).latency->measured);
}
