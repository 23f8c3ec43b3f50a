// The short run: every file of every corpus, and the same damage to them each time. LOOPEGG_DEEP=1 tries a hundred times as much.
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "fuzz/mutate.hpp"
#include "fuzz/readers.hpp"

#include <catch2/catch.hpp>

using namespace loopegg;

namespace {

std::vector<std::string> corpus(const Reader& reader) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(LOOPEGG_CORPUS) / reader.name)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> texts;
    for (const auto& p : paths) texts.push_back(read_file(p));
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
