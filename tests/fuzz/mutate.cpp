#include "fuzz/mutate.hpp"

namespace loopegg {
namespace {

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

}  // namespace

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

}  // namespace loopegg
