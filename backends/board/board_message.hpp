// What loopegg and the worker on a board say to each other: lines 'KEY VALUE', one 'bytes N' last, an empty line, then N bytes.
#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loopegg {

// The other side sent something that is no message.
class BadMessage : public std::exception {
public:
    explicit BadMessage(std::string why) : why_(std::move(why)) {}
    const char* what() const noexcept override { return why_.c_str(); }

private:
    std::string why_;
};

struct BoardMessage {
    std::vector<std::pair<std::string, std::string>> lines{};  // in order; a key may be several times
    std::string bytes{};

    BoardMessage& add(std::string key, std::string value);
    BoardMessage& add(std::string key, double value);
    BoardMessage& add_count(std::string key, std::int64_t value);
    std::string text(std::string_view key) const;  // of the first line of that key; "" where there is none
    std::vector<std::string> all(std::string_view key) const;
    double number(std::string_view key, double otherwise) const;        // throws BadMessage for a value that is no finite number
    std::int64_t count(std::string_view key, std::int64_t most) const;  // throws BadMessage unless the key is there, with a value from 0 to `most`
    std::string encode() const;
};

std::int64_t count_of(const std::string& word, std::int64_t most);  // throws BadMessage unless the word is a whole number from 0 to `most`

// Takes bytes as they come and gives messages when they are whole.
class MessageReader {
public:
    explicit MessageReader(std::int64_t max_bytes) : max_(max_bytes) {}
    void take(std::string_view bytes) { pending_.append(bytes); }
    std::optional<BoardMessage> next();  // none: no whole message has come yet. Throws BadMessage
    bool empty() const { return pending_.empty(); }

private:
    std::int64_t max_;
    std::string pending_;
};

}  // namespace loopegg
