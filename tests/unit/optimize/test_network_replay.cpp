// The audit of the steps that made a network: it follows true ones and refuses any that were edited.
#include <catch2/catch.hpp>

#include "../network/small_networks.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/net/net.hpp"
#include "network/derivation.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/audit/network_replay.hpp"
#include "optimize/audit/replay.hpp"
#include "optimize/run/request.hpp"
#include "rules/load.hpp"

using namespace loopegg;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

struct Claim {
    Claim() : small(residual_chain(), network_rules(shipped_network_rules())) {
        NetRewriter rewriter(small.book);
        const auto curve = small.front->curve();
        const Derivation d = derive(small.network, small.book, rewriter, small.front->network(curve.size() / 2));
        claim = {{"original", to_string(d.from)}, {"chosen", to_string(d.to)}, {"steps", to_json(d.steps)}};
        graph = graph_of(d.to, small.original);
    }
    std::string fault(const std::function<void(json&)>& edit) const {
        json edited = claim;
        edit(edited);
        return replay_network(edited, small.original, small.book).fault;
    }

    SmallFront small;
    json claim;
    Graph graph;
};

}  // namespace

TEST_CASE("the steps of a network lead to its graph", "[unit][optimize]") {
    const Claim c;
    const NetworkReplay replay = replay_network(c.claim, c.small.original, c.small.book);
    CHECK(replay.fault == "");
    CHECK(replay.steps == c.claim["steps"].size());
    CHECK(replay.graph == c.graph);
}

TEST_CASE("steps that were edited are refused", "[unit][optimize]") {
    const Claim c;
    REQUIRE(c.claim["steps"].size() > 3);
    CHECK_THAT(c.fault([](json& j) { j["steps"].erase(1); }), Contains("step"));
    CHECK_THAT(c.fault([](json& j) { j["steps"].erase(j["steps"].size() - 1); }), Contains("do not lead to"));
    CHECK_THAT(c.fault([](json& j) { j["steps"][0]["rule"] = "no-such-rule"; }), Contains("is no rule"));
    CHECK_THAT(c.fault([](json& j) { j["steps"][0]["neural"] = false; }), Contains("of the other kind"));
    CHECK_THAT(c.fault([](json& j) { j["steps"][0]["at"] = {9, 9, 9}; }), Contains("no such place"));
    CHECK(c.fault([](json& j) { j["chosen"] = j["original"]; }) != "");
    CHECK_THAT(c.fault([&](json& j) { j["original"] = to_string(net_of(chain_of(16, 16))); }), Contains("do not begin at"));
}

TEST_CASE("a width that the rule does not list is refused", "[unit][optimize]") {
    const Claim c;
    bool edited = false;
    CHECK_THAT(c.fault([&](json& j) {
        for (json& step : j["steps"])
            if (!edited && step.contains("with")) edited = true, step["with"].begin().value() = "5";
    }),
               Contains("step"));
    REQUIRE(edited);
}

TEST_CASE("widths are multiples of what the run asked for", "[unit][optimize]") {
    const Claim c;
    CHECK(c.fault([](json& j) { j["channels_multiple"] = 1; }) == "");
    CHECK_THAT(c.fault([](json& j) { j["channels_multiple"] = 1000; }), Contains("is none of"));
}

TEST_CASE("a site that is narrowed, grouped and restored by a convolution is checked as the two nests that run", "[unit][optimize]") {
    const std::string chosen =
        "(restore pointwise (nest (conv2d 1 1 8 4 6 6 1 1 1 1 0 0 1 1) (at (diag 2 (span co:8 0 4) ci:4) (at (rem (span co:8 0 4) 2) (at (rem ci:4 2) (at oh:6 "
        "(at ow:6 (at kh:1 (at kw:1 done)))))))))";
    const std::string restoring = "(nest (conv2d 1 1 8 4 6 6 1 1 1 1 0 0 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))";
    const auto checked = [&](const std::string& schedule) {
        const nlohmann::json site{{"name", "conv"},
                                  {"original", chosen},
                                  {"chosen", chosen},
                                  {"proofs", nlohmann::json::array()},
                                  {"effect", domain_text(domain_of(parse_term(chosen)))},
                                  {"schedule", schedule},
                                  {"restoring", restoring}};
        return replay(nlohmann::json::array({site}), load_rules(rules_file("discover"))).front();
    };
    const std::string narrow = "(nest (conv2d 1 1 4 4 6 6 1 1 1 1 0 0 1 1) ";
    CHECK(checked(narrow + "(at (diag 2 ci co) (at (rem co 2) (at oh (at (rem ci 2) (at ow (at kh (at kw done))))))))").why == "");
    CHECK(checked(narrow + "(at co (at ci (at oh (at ow (at kh (at kw done)))))))").why ==
          "the schedule that runs does not visit the instances of the chosen nest");
    CHECK(checked(narrow + "(at (diag 2 (rem co 2) ci) (at (quo co 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))").why ==
          "the schedule that runs does not visit the instances of the chosen nest");
}
