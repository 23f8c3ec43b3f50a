// JSON that remembers where every value was, so that a complaint about the meaning of a value can point at the value as a syntax error does.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/source.hpp"

namespace loopegg {

// Offsets of one value, of its key when the value is a member, and of the values inside it. A place has the same shape as its value.
struct JsonPlace {
    std::size_t offset = 0, key_offset = 0;
    std::map<std::string, JsonPlace, std::less<>> members;
    std::vector<JsonPlace> items;
};

// A value inside a document. A view is cheap to copy and keeps the document alive. Every accessor throws UserError with the place
// and what was expected when the value is not what was asked for.
class JsonView {
public:
    const nlohmann::json& value() const { return *value_; }
    Position where() const;      // of the value
    Position key_where() const;  // of the key, for a member; else of the value

    std::int64_t integer() const;                                     // 3.0 is refused, as is what does not fit in 64 bits
    std::int64_t integer(std::int64_t low, std::int64_t high) const;  // both ends included
    double number() const;
    bool boolean() const;
    const std::string& text() const;
    std::vector<JsonView> items() const;                            // of an array
    std::vector<std::pair<std::string, JsonView>> members() const;  // of an object, sorted by key
    std::vector<std::int64_t> integers() const;                     // an array of whole numbers
    std::vector<std::string> texts() const;                         // an array of strings

    JsonView at(std::string_view key) const;                        // a member that must be there
    std::optional<JsonView> find(std::string_view key) const;       // a member that may be there
    void only(std::initializer_list<std::string_view> keys) const;  // refuses other members, with 'did you mean'

    [[noreturn]] void fail(std::string message, std::string hint = {}) const;
    std::string kind() const;  // "a string", "an object", ... for messages

private:
    struct Document {
        SourcePtr source;
        nlohmann::json value;
        JsonPlace place;
    };
    friend JsonView read_json(const SourcePtr& source);
    JsonView(std::shared_ptr<const Document> document, const nlohmann::json* value, const JsonPlace* place)
        : document_(std::move(document)), value_(value), place_(place) {}
    JsonView child(const nlohmann::json& value, const JsonPlace& place) const { return {document_, &value, &place}; }

    std::shared_ptr<const Document> document_;
    const nlohmann::json* value_;
    const JsonPlace* place_;
};

// One JSON value and nothing after it. Throws UserError with the place of the first thing that is not JSON: bad syntax, bytes that
// are not UTF-8, a key twice in one object, nesting deeper than 200.
JsonView read_json(const SourcePtr& source);

// One JSON value on each line; empty lines are skipped. Places are those in the whole file.
std::vector<JsonView> read_json_lines(const SourcePtr& source);

// A file that the program wrote itself, as plain JSON. Throws UserError that names the file.
nlohmann::json parse_json_file(const std::filesystem::path& file);

}  // namespace loopegg
