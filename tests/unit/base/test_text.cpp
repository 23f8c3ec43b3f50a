#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/owner.hpp"
#include "base/quote.hpp"
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
