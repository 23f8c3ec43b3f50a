#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "extract/best_terms.hpp"
#include "extract/from_egraph.hpp"
#include "extract/serialized.hpp"
#include "unit/extract/small_egraphs.hpp"

using namespace loopegg;

namespace {

// All complaints about a text, as "line:column message | hint".
std::vector<std::string> complaints_about(const std::string& text) {
    try {
        egraph_of(text);
    } catch (const UserError& e) {
        std::vector<std::string> all;
        for (const Diagnostic& d : e.diagnostics())
            all.push_back((d.where.known() ? std::to_string(d.where.line()) + ":" + std::to_string(d.where.column()) + " " : "") + d.message +
                          (d.hint.empty() ? "" : " | " + d.hint));
        return all;
    }
    return {};
}

std::string file_with(const std::string& cost, const std::string& child = "b", const std::string& root = "A") {
    return "{\"nodes\": {\n \"a\": {\"op\": \"f\", \"children\": [\"" + child + "\"], \"eclass\": \"A\", \"cost\": " + cost +
           "},\n \"b\": {\"op\": \"x\", \"eclass\": \"B\"}},\n\"root_eclasses\": [\"" + root + "\"]}";
}

}  // namespace

TEST_CASE("a serialized e-graph is read, written and read again", "[unit]") {
    const SerializedEGraph g = egraph_of(file_with("2.5"));
    CHECK(g.nodes.size() == 2);
    CHECK(g.nodes[0].cost == 2.5);
    CHECK(g.nodes[1].cost == 1);  // without one
    CHECK(g.roots == std::vector<ClassIndex>{0});
    const SerializedEGraph again = egraph_of(to_json(g));
    CHECK(to_json(again) == to_json(g));
}

TEST_CASE("what is wrong with a serialized e-graph is said with its place", "[errors]") {
    CHECK(complaints_about(file_with("-1")) == std::vector<std::string>{"2:61 a cost must not be negative, but this one is -1"});
    CHECK(complaints_about(file_with("\"cheap\"")) == std::vector<std::string>{"2:61 a cost must be a number that is not negative, not a string"});
    CHECK(complaints_about(file_with("null")) == std::vector<std::string>{"2:61 a cost must be a number that is not negative, not null"});
    CHECK(complaints_about(file_with("[1]")) == std::vector<std::string>{"2:61 a cost must be a number that is not negative, not an array"});
    CHECK(complaints_about(file_with("1", "c")).at(0).starts_with("2:32 child 'c' is no node of this e-graph"));
    CHECK(complaints_about(file_with("1", "b", "AA")).at(0) == "4:19 root 'AA' is no class of this e-graph | did you mean 'A'?");
    CHECK(complaints_about(file_with("-1", "c", "Z")).size() == 3);  // all of them, not the first alone
    CHECK(complaints_about("{\"nodes\": {}, \"root_eclasses\": []}").at(0).find("there are no nodes") != std::string::npos);
    CHECK(complaints_about("{\"nodes\": {\"a\": {\"op\": \"f\", \"eclass\": \"A\"}}, \"root_eclasses\": []}").at(0).find("no root") != std::string::npos);
    CHECK(complaints_about("{\"nodes\": {\"a\": {\"op\": \"f\"}}, \"root_eclasses\": [\"A\"]}").size() >= 1);
    CHECK(complaints_about("{\"nodes\": 3}").size() == 1);
    CHECK(complaints_about("[]").size() == 1);
    CHECK(complaints_about("{").size() == 1);
}

TEST_CASE("a live e-graph is copied with its costs, and classes find their way back", "[unit]") {
    EGraph live;
    const ClassId sum = live.add(parse_term("(+ (* a 2) (* a 2))")), shift = live.add(parse_term("(<< a 1)"));
    live.merge(live.add(parse_term("(* a 2)")), shift);
    live.rebuild();
    const EGraphCopy all = copy_of(live, std::vector{sum});
    CHECK(all.egraph.nodes.size() == live.node_count());
    CHECK(all.egraph.roots.size() == 1);
    CHECK(all.class_of[all.egraph.roots[0]] == live.find(sum));
    // Without shifts the number 1 is not reached.
    const EGraphCopy few = copy_of(live, std::vector{sum}, [](const NodeView& n) { return n.op.text() == "<<" ? -1.0 : 1.0; });
    CHECK(few.egraph.nodes.size() == all.egraph.nodes.size() - 2);
    CHECK_THROWS_AS(copy_of(live, std::vector{sum}, [](const NodeView& n) { return n.op.text() == "a" ? -1.0 : 1.0; }), UserError);
    CHECK(copy_of(live).egraph.roots.empty());
    CHECK(to_dot(all.egraph).starts_with("digraph"));
    CHECK_THROWS_AS(to_dot(all.egraph, 2), UserError);
    const SmallestTerms smallest(live);
    CHECK(smallest.size(sum) == 7);
    CHECK(to_string(smallest.term(shift)) == "(* a 2)");
}
