#include <catch2/catch.hpp>

#include <unistd.h>

#include "base/owner.hpp"
#include "base/quote.hpp"

using namespace loopegg;

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
    CHECK(owner_lives(own_name(), 1e9));
    CHECK(owner_lives(own_name() + " 3", 1e9));
    std::string other = own_name();
    const std::size_t boot = other.find(' ');
    const std::string elsewhere = "another-boot" + other.substr(boot);
    CHECK(owner_lives(elsewhere, 1));
    CHECK_FALSE(owner_lives(elsewhere, 1000));
    // The same number with another beginning: a later process, or one of another container.
    const std::string pid = " " + std::to_string(::getpid()) + " ";
    const std::size_t at = other.find(pid) + pid.size();
    other.replace(at, other.find(' ', at) - at, "1");
    CHECK_FALSE(owner_lives(other, 0));
    for (const char* nobody : {"", "1234", "x y z", "a b 0 c d"}) CHECK_FALSE(owner_lives(nobody, 0));
}
