#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "base/symbol.hpp"

using namespace loopegg;

TEST_CASE("a term prints as it was read", "[unit][base]") {
    CHECK(to_string(parse_term("(at co  (at ci done)) ; order")) == "(at co (at ci done))");
    CHECK(parse_term("(f \"a b\")")[0].op().text() == "\"a b\"");
    CHECK(parse_term("-12").integer() == -12);
    CHECK_FALSE(parse_term("12x").integer().has_value());
}

TEST_CASE("unreadable terms are answered with their place", "[errors][base]") {
    auto message = [](const char* text) -> std::string {
        try {
            parse_term(text, "t");
        } catch (const UserError& e) {
            return e.what();
        }
        return "no error";
    };
    CHECK(message("(f (g x)") == "t:1:1: error: this '(' is never closed\n  (f (g x)\n  ^");
    CHECK(message("(f x))") == "t:1:6: error: this ')' closes nothing\n  (f x))\n       ^");
    CHECK(message("(f\n ())") == "t:2:2: error: '()' is no term: expected an operator\n   ())\n   ^");
    CHECK(message("(f \"abc)") == "t:1:4: error: this string is never closed\n  (f \"abc)\n     ^");
    CHECK(message("x \xff").rfind("t:1:3: error: this byte is not valid UTF-8", 0) == 0);
    CHECK(message(std::string(5000, '(').c_str()).rfind("t:1:2001: error: nested deeper", 0) == 0);
}

namespace {
rc::Gen<Term> any_term(int depth) {
    auto name = rc::gen::element<std::string>("f", "g", "co", "?x", "17", "+");
    if (depth == 0) return rc::gen::map(name, [](std::string s) { return Term(s); });
    return rc::gen::mapcat(rc::gen::inRange(0, 4), [=](int n) {
        return rc::gen::map(rc::gen::pair(name, rc::gen::container<std::vector<Term>>(static_cast<std::size_t>(n), any_term(depth - 1))),
                            [](std::pair<std::string, std::vector<Term>> p) { return Term(p.first, std::move(p.second)); });
    });
}
}  // namespace

TEST_CASE("reading back what was printed gives the same term", "[unit][base][property]") {
    CHECK(rc::check("round trip", [] {
        Term t = *any_term(4);
        RC_ASSERT(parse_term(to_string(t)) == t);
        RC_ASSERT(parse_term(to_string(t)).hash() == t.hash());
    }));
}

TEST_CASE("a name comes back from its symbol, wherever it lies in the table", "[unit][base]") {
    CHECK(Symbol().text().empty());
    CHECK(Symbol("") == Symbol());
    const Symbol first("symbol-test-first");
    const std::string& text = first.text();
    for (int i = 0; i < 20000; ++i) {  // past several blocks of the table
        const std::string name = "symbol-test-" + std::to_string(i);
        const Symbol symbol(name);
        if (symbol.text() != name || symbol != Symbol(name) || Symbol::from_id(symbol.id()) != symbol) FAIL(name);
    }
    CHECK(&text == &first.text());  // references stay valid while others intern
    CHECK(text == "symbol-test-first");
}

TEST_CASE("threads that intern the same names get the same symbols", "[unit][base]") {
    constexpr int names = 5000;
    std::vector<std::vector<Symbol>> seen(4);
    std::vector<std::thread> threads;
    for (std::vector<Symbol>& mine : seen)
        threads.emplace_back([&mine] {
            for (int i = 0; i < names; ++i) {
                mine.emplace_back("symbol-thread-" + std::to_string(i));
                if (mine.back().text().empty()) return;
            }
        });
    for (std::thread& t : threads) t.join();
    for (const std::vector<Symbol>& mine : seen) CHECK(mine == seen.front());
    CHECK(seen.front().size() == names);
}
