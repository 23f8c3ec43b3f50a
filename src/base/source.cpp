#include "base/source.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loopegg {
namespace {

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t line_start(const std::string& text, std::size_t offset) {
    offset = std::min(offset, text.size());
    auto newline = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
    return newline == std::string::npos ? 0 : newline + 1;
}

}  // namespace

SourcePtr make_source(std::string name, std::string text) { return std::make_shared<const Source>(Source{std::move(name), std::move(text)}); }

int Position::line() const {
    auto end = source->text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, source->text.size()));
    return 1 + static_cast<int>(std::count(source->text.begin(), end, '\n'));
}

int Position::column() const {
    std::size_t end = std::min(offset, source->text.size());
    int column = 1;
    for (std::size_t i = line_start(source->text, offset); i < end; ++i) column += !continues_code_point(source->text[i]);
    return column;
}

std::string Position::excerpt() const {
    // Long lines (minified JSON, say) are cut to a window around the place.
    constexpr std::size_t before = 60, window = 100;
    const std::string& text = source->text;
    std::size_t begin = line_start(text, offset), place = std::min(offset, text.size());
    std::size_t end = std::min(text.find('\n', place), text.size());
    if (place - begin > before) begin = place - before;
    end = std::min(end, begin + window);
    while (begin > 0 && begin < text.size() && continues_code_point(text[begin])) --begin;
    while (end < text.size() && continues_code_point(text[end])) ++end;
    // What a terminal cannot show is shown as '?': control characters, and every byte of a line that is not UTF-8.
    bool readable = !first_invalid_utf8(std::string_view(text).substr(begin, end - begin));
    std::string line, caret;
    for (std::size_t i = begin; i < end; ++i) {
        unsigned char c = static_cast<unsigned char>(text[i]);
        line += c == '\t' ? ' ' : (c < 0x20 || c == 0x7F || (c > 0x7F && !readable)) ? '?' : text[i];
        if (i < place && !(readable && continues_code_point(text[i]))) caret += ' ';
    }
    return line + "\n" + caret + "^";
}

}  // namespace loopegg
