// The text of a rule file, changed for a test.
#pragma once
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>

#include "base/files.hpp"

// The file without one rule.
inline std::string text_without(const std::filesystem::path& file, const std::string& rule) {
    std::string text = loopegg::read_file(file);
    const std::size_t begin = text.find("(rule " + rule + " ");
    REQUIRE(begin != text.npos);
    std::size_t end = begin, depth = 0;
    do {
        depth += text[end] == '(', depth -= text[end] == ')';
        ++end;
    } while (depth > 0);
    return text.erase(begin, end - begin);
}
