// Texts, terms, JSON and hashes: what is written is read back, and bad input is answered with its place.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <unistd.h>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "base/owner.hpp"
#include "base/quote.hpp"
#include "base/sexpr.hpp"
#include "base/symbol.hpp"
#include "base/text.hpp"

using namespace loopegg;

TEST_CASE("site globs", "[unit][base]") {
    CHECK(glob_matches("layer[34].*.conv?", "layer3.0.conv1"));
    CHECK_FALSE(glob_matches("layer[34].*.conv?", "layer2.0.conv1"));
    CHECK(glob_matches("*", ""));
    CHECK(glob_matches("*.conv1", "a.b.conv1"));
    CHECK_FALSE(glob_matches("a[", "a["));
    CHECK(glob_matches("[!x]b", "ab"));
    CHECK_FALSE(glob_matches(std::string(200, '*') + "b", std::string(5000, 'a')));
}

TEST_CASE("UTF-8 is checked strictly", "[unit][base]") {
    CHECK_FALSE(first_invalid_utf8("plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\xa5\x9a"));
    CHECK(first_invalid_utf8("ab\xc3") == 2);
    CHECK(first_invalid_utf8("\xc0\xaf") == 0);          // overlong
    CHECK(first_invalid_utf8("a\xed\xa0\x80") == 1);     // surrogate
    CHECK(first_invalid_utf8("\xf4\x90\x80\x80") == 0);  // beyond U+10FFFF
}

TEST_CASE("a near name is suggested, a far one is not", "[unit][base]") {
    std::vector<std::string> known{"conv2d", "linear", "matmul"};
    CHECK(did_you_mean("con2d", known) == "did you mean 'conv2d'?");
    CHECK(did_you_mean("lienar", known) == "did you mean 'linear'?");
    CHECK(did_you_mean("attention", known).empty());
}

TEST_CASE("numbers for people", "[unit][base]") {
    CHECK(with_commas(0) == "0");
    CHECK(with_commas(1234567) == "1,234,567");
    CHECK(with_commas(-1000) == "-1,000");
}

TEST_CASE("a name of C has letters, digits and underscores") {
    CHECK(c_name("resnet34-cifar10") == "resnet34_cifar10");
    CHECK(c_name("a(b);\n\"*/") == "a_b______");
    CHECK(c_name("") == "network");
    CHECK(c_name(std::string(500, 'x')).size() == 60);
}

TEST_CASE("a name in a comment is one line that ends no comment and no string", "[unit]") {
    const std::string s = comment_text("a */ \"\"\" ''' \\\n ??/ layer1.0.conv2[3]");
    for (const char* end : {"*/", "\"", "'", "\\", "\n", "??/\n"}) CHECK(s.find(end) == s.npos);
    CHECK(comment_text("layer1.0.conv2[3]") == "layer1.0.conv2[3]");
    CHECK(comment_text(std::string(5000, 'x')).size() < 300);
}

TEST_CASE("strings of other languages hold any text", "[unit]") {
    CHECK(python_string("a\"\\\n\r") == R"("a\"\\\x0a\x0d")");
    CHECK(python_string("\xff") == "\"\xEF\xBF\xBD\"");
    CHECK(dot_string("a\"]; b\n\x1b") == "\"a\\\"]; b\\n?\"");
    CHECK(shell_word("plain-1.2/x") == "plain-1.2/x");
    CHECK(shell_word("a b; 'c'") == R"('a b; '\''c'\''')");
    CHECK(shell_word("") == "''");
    CHECK(terminal_text("a\x1b[2J") == "a\\x1b[2J");
}

TEST_CASE("names of files stay in their folder", "[unit]") {
    for (const char* bad : {"", ".", "..", "../x", "a/b", ".hidden", "-rf", "a b", "a\nb", "caf\xc3\xa9"}) CHECK_FALSE(is_file_name(bad));
    for (const char* good : {"board", "pi-4", "a57", "h200.1", "x_y+z"}) CHECK(is_file_name(good));
}

TEST_CASE("an owner lives as long as its process, and one elsewhere as long as it says so", "[unit]") {
    CHECK(is_owner_alive(own_name(), 1e9));
    CHECK(is_owner_alive(own_name() + " 3", 1e9));
    std::string other = own_name();
    const std::size_t boot = other.find(' ');
    const std::string elsewhere = "another-boot" + other.substr(boot);
    CHECK(is_owner_alive(elsewhere, 1));
    CHECK_FALSE(is_owner_alive(elsewhere, 1000));
    // The same number with another beginning: a later process, or one of another container.
    const std::string pid = " " + std::to_string(::getpid()) + " ";
    const std::size_t at = other.find(pid) + pid.size();
    other.replace(at, other.find(' ', at) - at, "1");
    CHECK_FALSE(is_owner_alive(other, 0));
    for (const char* nobody : {"", "1234", "x y z", "a b 0 c d"}) CHECK_FALSE(is_owner_alive(nobody, 0));
}

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

namespace {

JsonView read(std::string text) { return read_json(make_source("x.json", std::move(text))); }

std::string complaint(const std::string& text) {
    try {
        read(text);
    } catch (const UserError& e) {
        return e.what();
    }
    return "";
}

template <class Use>
std::string complaint(const std::string& text, Use use) {
    try {
        use(read(text));
    } catch (const UserError& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("located JSON reads what nlohmann reads", "[unit][base]") {
    for (const char* text : {"null", "[]", "{}", " [1, -2, 3.5e2, true, false, null] ", R"({"a": {"b": [1, {"c": "d"}]}, "e": ""})",
                             R"("\u00e9\ud83e\udd5a\n\t\"\\\/")", "0", "-0.5", "1E+2", "9223372036854775807"})
        CHECK(read(text).value() == nlohmann::json::parse(text));
}

TEST_CASE("values know their places", "[unit][base]") {
    JsonView v = read("{\n  \"a\": [1, 22],\n  \"b\": \"x\"\n}");
    CHECK(v.at("a").items()[1].where().line() == 2);
    CHECK(v.at("a").items()[1].where().column() == 12);
    CHECK(v.at("b").key_where().column() == 3);
    CHECK(v.at("a").integers() == std::vector<std::int64_t>{1, 22});
}

TEST_CASE("what is not JSON is pointed at", "[errors][base]") {
    CHECK(complaint("{\"a\": 1,\n \"a\": 2}") == "x.json:2:2: error: the key \"a\" occurs twice in this object\n   \"a\": 2}\n   ^");
    CHECK(complaint("").find("1:1: error: the file is empty") != std::string::npos);
    CHECK(complaint("[1, 2").find("1:1: error: this '[' is never closed") != std::string::npos);
    CHECK(complaint("[1 2]").find("expected ',' or ']', found '2'") != std::string::npos);
    CHECK(complaint("[01]").find("may not begin with 0") != std::string::npos);
    CHECK(complaint("[1,]").find("a comma before ']'") != std::string::npos);
    CHECK(complaint("ture").find("did you mean 'true'?") != std::string::npos);
    CHECK(complaint("\"\\ud800\"").find("is alone") != std::string::npos);
    CHECK(complaint("\"a\x01\"").find("control character") != std::string::npos);
    CHECK(complaint("\"\xff\"").find("not valid UTF-8") != std::string::npos);
    CHECK(complaint(std::string(100000, '[')).find("nested deeper than 200") != std::string::npos);
    CHECK(complaint("1e999").find("too large") != std::string::npos);
    CHECK(complaint("{} {}").find("something follows") != std::string::npos);
}

TEST_CASE("a value of the wrong kind is pointed at", "[errors][base]") {
    CHECK(complaint("{\"a\": 1.5}", [](JsonView v) { v.at("a").integer(); }).find("1:7: error: expected a whole number, found a fraction") !=
          std::string::npos);
    CHECK(complaint("[99999999999999999999]", [](JsonView v) { v.integers(); }).find("does not fit in 64 bits") != std::string::npos);
    CHECK(complaint("{\"shpe\": 1}", [](JsonView v) { v.only({"shape", "name"}); }).find("did you mean 'shape'?") != std::string::npos);
    CHECK(complaint("{\"shpe\": 1}", [](JsonView v) { v.at("shape"); }).find("\"shpe\" is here") != std::string::npos);
    CHECK(complaint("[\"x\", 1]", [](JsonView v) { v.texts(); }).find("1:7: error: expected a string, found a number") != std::string::npos);
}

TEST_CASE("values are framed: where one ends matters", "[unit][base]") {
    CHECK(Hasher().add("ab").add("c").finish() != Hasher().add("a").add("bc").finish());
    CHECK(Hasher().add("").finish() != Hasher().finish());
}

TEST_CASE("stored keys never change: these are part of the file format", "[unit][base]") {
    CHECK(hash_of("loopegg").hex() == "4ba3dfdbb10f905625102e58282c865a");
    CHECK(Hasher().add(1).add(2.5).add("x").finish().hex() == "59b0b34c65b9be1a8e84497619db8077");
}

TEST_CASE("near inputs do not collide", "[unit][base]") {
    std::set<Hash128> seen;
    for (int i = 0; i < 100'000; ++i) seen.insert(Hasher().add(i).add(i / 7).finish());
    CHECK(seen.size() == 100'000);
}

TEST_CASE("SHA-256 is that of FIPS 180-4", "[unit][base]") {
    CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256_of(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("lengths around a block are padded as they should be", "[unit][base]") {
    CHECK(sha256_of(std::string(55, 'a')) == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    CHECK(sha256_of(std::string(56, 'a')) == "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    CHECK(sha256_of(std::string(64, 'a')) == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST_CASE("a file has the hash of its bytes", "[unit][base]") {
    const auto file = std::filesystem::temp_directory_path() / "sha256.bin";
    write_file(file, std::string_view("a\0b\xff", 4));
    CHECK(sha256_of_file(file) == sha256_of(std::string_view("a\0b\xff", 4)));
    std::filesystem::remove(file);
}
