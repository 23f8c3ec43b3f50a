#include "base/quote.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace loopegg {
namespace {

bool letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// UTF-8, whatever it was.
std::string valid(std::string_view text) {
    std::string out;
    while (auto bad = first_invalid_utf8(text)) {
        out += text.substr(0, *bad);
        out += "\xEF\xBF\xBD";
        text.remove_prefix(*bad + 1);
    }
    return out.append(text);
}

}  // namespace

std::string comment_text(std::string_view name) {
    constexpr std::size_t most = 200;
    std::string out(name.substr(0, most));
    for (char& c : out)
        if (!letter_or_digit(c) && std::string_view(" _.-/:,()[]+=").find(c) == std::string_view::npos) c = '?';
    return name.size() > most ? out + "..." : out;
}

std::string python_string(std::string_view text) {
    std::string out = "\"";
    for (char c : valid(text)) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (control(c))
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out + "\"";
}

std::string dot_string(std::string_view text) {
    std::string out = "\"";
    for (char c : valid(text)) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (c == '\n')
            out += "\\n";
        else
            out += control(c) ? '?' : c;
    }
    return out + "\"";
}

std::string shell_word(std::string_view text) {
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return letter_or_digit(c) || std::string_view("_./:=+,-@%").find(c) != std::string_view::npos;
    });
    if (plain) return std::string(text);
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string c_name(std::string_view name) {
    std::string out(name.substr(0, 60));
    for (char& c : out)
        if (!letter_or_digit(c)) c = '_';
    return out.empty() ? "network" : out;
}

std::string terminal_text(std::string_view text) {
    std::string out;
    for (char c : valid(text)) out += control(c) && c != '\t' ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
    return out;
}

bool is_file_name(std::string_view name) {
    if (name.empty() || name.size() > 100 || name[0] == '.' || name[0] == '-') return false;
    return std::all_of(name.begin(), name.end(), [](char c) { return letter_or_digit(c) || c == '_' || c == '-' || c == '+' || c == '.'; });
}

}  // namespace loopegg
