#include "base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "base/embedded.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

// The syntax of JSON alone: turns a text into a value and the places of its parts. Other files include base/json.hpp instead.

constexpr int max_depth = 200;  // far beyond what our formats need, far below what the call stack allows

class Parser {
public:
    explicit Parser(const SourcePtr& source) : source_(source), text_(source->text) {}

    void document(nlohmann::json& value, JsonPlace& place) {
        if (auto bad = first_invalid_utf8(text_)) fail("this byte is not valid UTF-8", *bad);
        if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
        blanks();
        if (at_ == text_.size()) fail("the file is empty, expected JSON", at_);
        parse(value, place, 0);
        blanks();
        if (at_ != text_.size()) fail("something follows the end of the JSON value", at_);
    }

private:
    [[noreturn]] void fail(std::string message, std::size_t offset, std::string hint = {}) const {
        throw UserError(Diagnostic{std::move(message), {source_, offset}, std::move(hint)});
    }

    void blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
    }
    bool take(char c) {
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    std::string here() const {
        if (at_ >= text_.size()) return "the end of the file";
        unsigned char c = static_cast<unsigned char>(text_[at_]);
        return c > 0x20 && c < 0x7F ? fmt::format("'{}'", text_[at_]) : fmt::format("byte 0x{:02x}", c);
    }

    void parse(nlohmann::json& value, JsonPlace& place, int depth) {
        place.offset = at_;
        if (depth > max_depth) fail(fmt::format("nested deeper than {} levels", max_depth), at_);
        if (at_ >= text_.size()) fail("expected a value, found the end of the file", at_);
        switch (char c = text_[at_]) {
            case '{': return object(value, place, depth);
            case '[': return array(value, place, depth);
            case '"': value = string(); return;
            default:
                if (c == '-' || (c >= '0' && c <= '9')) return number(value);
                return word(value);
        }
    }

    void object(nlohmann::json& value, JsonPlace& place, int depth) {
        std::size_t open = at_++;
        value = nlohmann::json::object();
        blanks();
        if (take('}')) return;
        while (true) {
            std::size_t key_offset = at_;
            if (at_ >= text_.size()) fail("this '{' is never closed", open);
            if (text_[at_] == '}') fail("a comma before '}': JSON allows none", at_);
            if (text_[at_] != '"') fail(fmt::format("expected a key in double quotes, found {}", here()), at_);
            std::string key = string();
            blanks();
            if (!take(':')) fail(fmt::format("expected ':' after the key \"{}\", found {}", key, here()), at_);
            blanks();
            if (value.contains(key)) fail(fmt::format("the key \"{}\" occurs twice in this object", key), key_offset);
            JsonPlace& inner = place.members[key];
            inner.key_offset = key_offset;
            parse(value[key], inner, depth + 1);
            blanks();
            if (take('}')) return;
            if (at_ >= text_.size()) fail("this '{' is never closed", open);
            if (!take(',')) fail(fmt::format("expected ',' or '}}', found {}", here()), at_);
            blanks();
        }
    }

    void array(nlohmann::json& value, JsonPlace& place, int depth) {
        std::size_t open = at_++;
        value = nlohmann::json::array();
        blanks();
        if (take(']')) return;
        while (true) {
            if (at_ >= text_.size()) fail("this '[' is never closed", open);
            if (text_[at_] == ']') fail("a comma before ']': JSON allows none", at_);
            place.items.emplace_back().key_offset = at_;
            value.emplace_back();
            parse(value.back(), place.items.back(), depth + 1);
            blanks();
            if (take(']')) return;
            if (at_ >= text_.size()) fail("this '[' is never closed", open);
            if (!take(',')) fail(fmt::format("expected ',' or ']', found {}", here()), at_);
            blanks();
        }
    }

    void number(nlohmann::json& value) {
        std::size_t start = at_;
        bool whole = true;
        auto digits = [&] {
            std::size_t first = at_;
            while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
            if (at_ == first) fail(fmt::format("expected a digit, found {}", here()), at_);
        };
        take('-');
        std::size_t lead = at_;
        digits();
        if (text_[lead] == '0' && at_ > lead + 1) fail("a number may not begin with 0", start);
        if (take('.')) whole = false, digits();
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            whole = false, ++at_;
            if (!take('+')) take('-');
            digits();
        }
        const char *begin = text_.data() + start, *end = text_.data() + at_;
        if (std::int64_t i = 0; whole && std::from_chars(begin, end, i).ec == std::errc{}) {
            value = i;
            return;
        }
        double d = 0;
        if (std::from_chars(begin, end, d).ec != std::errc{} || !std::isfinite(d)) fail("this number is too large or too small for a double", start);
        value = d;
    }

    void word(nlohmann::json& value) {
        static const std::vector<std::string> known{"true", "false", "null"};
        std::size_t start = at_;
        while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
        std::string_view typed = std::string_view(text_).substr(start, at_ - start);
        if (typed == "true")
            value = true;
        else if (typed == "false")
            value = false;
        else if (typed == "null")
            value = nullptr;
        else if (typed.empty())
            fail(fmt::format("expected a value, found {}", here()), start);
        else
            fail(fmt::format("'{}' is no JSON value; strings are in double quotes", typed.substr(0, 40)), start, did_you_mean(typed, known));
    }

    unsigned hex4() {
        unsigned code = 0;
        for (int i = 0; i < 4; ++i, ++at_) {
            char c = at_ < text_.size() ? text_[at_] : '\0';
            int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
            if (digit < 0) fail("'\\u' needs four hexadecimal digits", at_);
            code = code * 16 + static_cast<unsigned>(digit);
        }
        return code;
    }

    void append_code_point(std::string& out, unsigned c) {
        auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
        if (c < 0x80)
            put(c);
        else if (c < 0x800)
            put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
        else if (c < 0x10000)
            put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
        else
            put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
    }

    std::string string() {
        std::size_t open = at_++;
        std::string out;
        while (at_ < text_.size()) {
            char c = text_[at_];
            if (c == '"') {
                ++at_;
                return out;
            }
            if (c == '\n') fail("this string is not closed on its line", open);
            if (static_cast<unsigned char>(c) < 0x20) fail("a control character in a string must be written as an escape", at_);
            if (c != '\\') {
                out += c, ++at_;
                continue;
            }
            std::size_t escape = at_++;
            switch (at_ < text_.size() ? text_[at_++] : '\0') {
                case '"': out += '"'; break;
                case '\\': out += '\\'; break;
                case '/': out += '/'; break;
                case 'b': out += '\b'; break;
                case 'f': out += '\f'; break;
                case 'n': out += '\n'; break;
                case 'r': out += '\r'; break;
                case 't': out += '\t'; break;
                case 'u': {
                    unsigned code = hex4();
                    if (code >= 0xD800 && code < 0xDC00 && text_.compare(at_, 2, "\\u") == 0) {
                        at_ += 2;
                        unsigned low = hex4();
                        if (low < 0xDC00 || low > 0xDFFF) fail("this half of a surrogate pair is alone", escape);
                        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                    } else if (code >= 0xD800 && code <= 0xDFFF) {
                        fail("this half of a surrogate pair is alone", escape);
                    }
                    append_code_point(out, code);
                    break;
                }
                default: fail("unknown escape in a string", escape);
            }
        }
        fail("this string is never closed", open);
    }

    const SourcePtr& source_;
    const std::string& text_;
    std::size_t at_ = 0;
};

// Fills value and place from the whole text, or throws UserError.
void parse_json(const SourcePtr& source, nlohmann::json& value, JsonPlace& place) { Parser(source).document(value, place); }

}  // namespace

JsonView read_json(const SourcePtr& source) {
    auto document = std::make_shared<JsonView::Document>();
    document->source = source;
    parse_json(source, document->value, document->place);
    return {document, &document->value, &document->place};
}

std::vector<JsonView> read_json_lines(const SourcePtr& source) {
    std::vector<JsonView> out;
    std::size_t line = 0;
    for (const std::string& text : split(source->text, '\n')) {
        // Each line is a document of its own. Empty lines before it give its places the numbers that they have in the file.
        if (text.find_first_not_of(" \t\r") != text.npos) out.push_back(read_json(make_source(source->name, std::string(line, '\n') + text)));
        ++line;
    }
    return out;
}

nlohmann::json as_json(const Diagnostic& d) {
    nlohmann::json e{{"message", d.message}};
    if (d.where.known()) e["file"] = d.where.source->name, e["line"] = d.where.line(), e["column"] = d.where.column();
    if (!d.hint.empty()) e["hint"] = d.hint;
    return e;
}

nlohmann::json parse_json_file(const std::filesystem::path& file) {
    try {
        return nlohmann::json::parse(read_file(file));
    } catch (const nlohmann::json::exception& e) {
        throw UserError(fmt::format("cannot read '{}': {}", file.string(), e.what()));
    }
}

Position JsonView::where() const { return {document_->source, place_->offset}; }
Position JsonView::key_where() const { return {document_->source, place_->key_offset}; }

void JsonView::fail(std::string message, std::string hint) const { throw UserError(Diagnostic{std::move(message), where(), std::move(hint)}); }

std::string JsonView::kind() const {
    switch (value_->type()) {
        case nlohmann::json::value_t::null: return "null";
        case nlohmann::json::value_t::object: return "an object";
        case nlohmann::json::value_t::array: return "an array";
        case nlohmann::json::value_t::string: return "a string";
        case nlohmann::json::value_t::boolean: return "a truth value";
        default: return "a number";
    }
}

std::int64_t JsonView::integer() const {
    if (value_->is_number_integer()) return value_->get<std::int64_t>();
    if (value_->is_number_float() && std::abs(value_->get<double>()) >= 9e18) fail("this whole number does not fit in 64 bits");
    fail(value_->is_number() ? "expected a whole number, found a fraction" : fmt::format("expected a whole number, found {}", kind()));
}

std::int64_t JsonView::integer(std::int64_t low, std::int64_t high) const {
    std::int64_t i = integer();
    if (i < low || i > high) fail(fmt::format("expected a whole number from {} to {}, found {}", low, high, i));
    return i;
}

double JsonView::number() const {
    if (!value_->is_number()) fail(fmt::format("expected a number, found {}", kind()));
    return value_->get<double>();
}

bool JsonView::boolean() const {
    if (!value_->is_boolean()) fail(fmt::format("expected true or false, found {}", kind()));
    return value_->get<bool>();
}

const std::string& JsonView::text() const {
    if (!value_->is_string()) fail(fmt::format("expected a string, found {}", kind()));
    return value_->get_ref<const std::string&>();
}

std::vector<JsonView> JsonView::items() const {
    if (!value_->is_array()) fail(fmt::format("expected an array, found {}", kind()));
    std::vector<JsonView> all;
    for (std::size_t i = 0; i < value_->size(); ++i) all.push_back(child((*value_)[i], place_->items[i]));
    return all;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
    if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind()));
    std::vector<std::pair<std::string, JsonView>> all;
    for (const auto& [key, place] : place_->members) all.emplace_back(key, child(value_->at(key), place));
    return all;
}

std::vector<std::int64_t> JsonView::integers() const {
    std::vector<std::int64_t> all;
    for (const JsonView& item : items()) all.push_back(item.integer());
    return all;
}

std::vector<std::string> JsonView::texts() const {
    std::vector<std::string> all;
    for (const JsonView& item : items()) all.push_back(item.text());
    return all;
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
    if (!value_->is_object()) fail(fmt::format("expected an object, found {}", kind()));
    auto place = place_->members.find(key);
    if (place == place_->members.end()) return std::nullopt;
    return child(value_->at(place->first), place->second);
}

JsonView JsonView::at(std::string_view key) const {
    if (auto found = find(key)) return *found;
    std::vector<std::string> present;
    for (const auto& [name, place] : place_->members) present.push_back(name);
    std::string hint;
    if (!did_you_mean(key, present).empty())
        for (const std::string& name : present)
            if (did_you_mean(key, std::span(&name, 1)) == did_you_mean(key, present)) hint = fmt::format("\"{}\" is here: is that meant?", name);
    fail(fmt::format("this object has no \"{}\"", key), hint);
}

void JsonView::only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, view] : members())
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            std::vector<std::string_view> known(keys);
            throw UserError(Diagnostic{fmt::format("unknown key \"{}\"", key), view.key_where(), did_you_mean(key, known)});
        }
}

}  // namespace loopegg
