#include "base/json.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json_reader.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

namespace loopegg {

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
