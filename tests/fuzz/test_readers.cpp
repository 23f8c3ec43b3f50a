// The short run: every seed, and the same damage to them each time. LOOPEGG_DEEP=1 tries a hundred times as much.
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/json.hpp"
#include "fuzz/readers.hpp"
#include "made_onnx.hpp"

#include <catch2/catch.hpp>

using namespace loopegg;

namespace {

// Seeded damage to texts and binary files, for the short run in ./test.

const char* const awkward[] = {"(",
                               ")",
                               "\"",
                               "{",
                               "}",
                               "[",
                               "]",
                               ":",
                               ",",
                               ";",
                               "\\",
                               "0",
                               "-1",
                               "1e999",
                               "9223372036854775807",
                               "-9223372036854775808",
                               "18446744073709551616",
                               "4294967296",
                               "null",
                               "true",
                               "\"\"",
                               "NaN",
                               "\xff",
                               "\xc3",
                               "\xf0\x9f\xa5\x9a",
                               "?a",
                               "=>",
                               "~>",
                               "\n",
                               "\t",
                               "conv2d",
                               "done",
                               "((((((((((((((((",
                               "[[[[[[[[[[[[[[[["};

// One to four small changes: bytes flipped, runs cut, doubled or taken from `other`, words that readers stumble over put in.
std::string damaged(std::string text, const std::string& other, std::mt19937& random) {
    auto below = [&](std::size_t n) { return n ? random() % n : 0; };
    auto insert = [&](const std::string& what) { text.insert(below(text.size() + 1), what); };
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
        std::size_t at = below(text.size()), length = 1 + below(16);
        switch (below(8)) {
            case 0:
                if (!text.empty()) text[at] = static_cast<char>(random());
                break;
            case 1:
                if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
                break;
            case 2:
                if (!text.empty()) text.erase(at, length);
                break;
            case 3: insert(text.substr(at, length)); break;
            case 4: insert(awkward[below(std::size(awkward))]); break;
            case 5:
                if (!other.empty()) insert(other.substr(below(other.size()), 1 + below(64)));
                break;
            case 6: text.resize(at); break;
            default:
                if (!text.empty()) text.replace(at, length, awkward[below(std::size(awkward))]);
                break;
        }
    }
    return text;
}

std::string from_hex(const std::string& digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return bytes;
}

// corpus.py describes the forms of a seed.
std::string content(const nlohmann::json& seed) {
    if (seed.is_string()) return seed;
    if (seed.is_array()) {
        std::string text;
        for (const nlohmann::json& line : seed) text += (&line == &seed.front() ? "" : "\n") + line.get<std::string>();
        return text;
    }
    if (seed.contains("exported")) return test::exported_onnx().at(seed.at("exported"));
    return seed.contains("hex") ? from_hex(seed.at("hex")) : read_file(LOOPEGG_SOURCE "/" + seed.at("file").get<std::string>());
}

std::vector<std::string> corpus(const Reader& reader) {
    static const nlohmann::json seeds = nlohmann::json::parse(read_file(LOOPEGG_SOURCE "/tests/fuzz/corpus.json"));
    std::vector<std::string> texts;
    for (const nlohmann::json& seed : seeds.at(reader.name)) texts.push_back(content(seed));
    return texts;
}

}  // namespace

TEST_CASE("every corpus is read or refused with a reason", "[errors]") {
    for (const Reader& reader : readers()) {
        INFO(reader.name);
        std::vector<std::string> texts = corpus(reader);
        REQUIRE(!texts.empty());
        std::size_t accepted = 0;
        for (const std::string& text : texts) {
            try {
                reader.read(text);
                ++accepted;
            } catch (const std::exception&) {
            }
            CHECK_NOTHROW(try_reader(reader, text));
        }
        CHECK(accepted > 0);  // a corpus of refusals alone would test one line of the reader
    }
}

TEST_CASE("damaged files are read or refused with a reason", "[errors]") {
    const int count = std::getenv("LOOPEGG_DEEP") ? 300000 : 3000;
    for (const Reader& reader : readers()) {
        std::vector<std::string> texts = corpus(reader);
        std::mt19937 random(7);
        for (int i = 0; i < count; ++i) {
            std::string text = damaged(texts[random() % texts.size()], texts[random() % texts.size()], random);
            try {
                try_reader(reader, text);
            } catch (const std::exception& e) {
                FAIL_CHECK(reader.name << ", input " << i << ": " << e.what() << "\n" << text);
                break;
            }
        }
    }
}
