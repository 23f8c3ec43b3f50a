// What the independent checker says of schedules that run.
#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/audit/replay.hpp"
#include "optimize/run/request.hpp"
#include "rules/load.hpp"

using namespace loopegg;

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
