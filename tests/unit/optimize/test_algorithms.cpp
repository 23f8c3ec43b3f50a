// Rows of nests that stand for a site, by the rules of algorithms.rules.
#include <catch2/catch.hpp>

#include <algorithm>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/value.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/audit/replay.hpp"
#include "optimize/tune/algorithms.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

const std::string loops = "(at co (at ci (at oh (at ow (at kh (at kw done))))))";
Term conv(const std::string& shape) { return complete(parse_term("(nest (epilogue relu (epilogue bias (conv2d " + shape + "))) " + loops + ")")); }

std::vector<Term> rows(const Term& nest, bool strict_fp = false) {
    const RuleBook book = load_rules(shipped("rules/algorithms.rules"), {.judge = false, .deep = false});
    return rows_for(nest, book, *book.find_phase("algorithms"), strict_fp);
}

}  // namespace

TEST_CASE("a convolution of 3x3 and stride 1 has a row of nests for each form", "[unit]") {
    const std::vector<Term> all = rows(conv("1 1 8 16 8 8 3 3 1 1 1 1 1 1"));
    REQUIRE(all.size() == 2);
    for (const Term& row : all) {
        const std::vector<Term> nests = nests_of(row[1]);
        REQUIRE(nests.size() == 3);
        CHECK(plain_statement(nest_parts(nests[0]).statement).op().text() == "winograd_input");
        CHECK(plain_statement(nest_parts(nests[1]).statement).op().text() == "conv2d");
        CHECK(nest_parts(nests[2]).statement.is("epilogue", 2));
        CHECK(with_nests(row, nests) == row);
    }
    CHECK(all[0][0] != all[1][0]);
}

TEST_CASE("sums that must keep their order have none, nor has any other site", "[unit]") {
    CHECK(rows(conv("1 1 8 16 8 8 3 3 1 1 1 1 1 1"), true).empty());
    CHECK(rows(conv("1 1 8 16 8 8 3 3 2 2 1 1 1 1")).empty());
    CHECK(rows(complete(parse_term("(nest (linear 2 8 8) (at n (at co (at ci done))))"))).empty());
}

TEST_CASE("the checker of proofs knows a row of the chosen nest from any other", "[unit]") {
    const Term chosen = complete(parse_term("(nest (conv2d 1 1 8 16 8 8 3 3 1 1 1 1 1 1) " + loops + ")"));
    const Term other = complete(parse_term("(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) " + loops + ")"));
    const RuleBook book = load_rules(shipped("rules/algorithms.rules"), {.judge = false, .deep = false});
    auto site = [&](const Term& row) {
        return nlohmann::json::array({{{"name", "s"},
                                       {"original", to_string(chosen)},
                                       {"chosen", to_string(chosen)},
                                       {"proofs", nlohmann::json::array()},
                                       {"effect", domain_text(domain_of(chosen))},
                                       {"schedule", to_string(bare(row))}}});
    };
    const Term row = rows(chosen)[0];
    const auto verdict = [&](const Term& r) { return replay(site(r), book).at(0).why; };
    CHECK(verdict(row) == "");
    CHECK(verdict(rows(other)[0]).find("of the row") != std::string::npos);
    std::vector<Term> nests = nests_of(row[1]);
    nests.pop_back();
    CHECK(verdict(with_nests(row, nests)).find("has not the nests") != std::string::npos);
}
