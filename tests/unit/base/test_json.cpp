#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

using namespace loopegg;

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
