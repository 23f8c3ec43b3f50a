#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "base/symbol.hpp"

using namespace loopegg;

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
