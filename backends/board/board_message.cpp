#include "backends/board/board_message.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace loopegg {
namespace {

constexpr std::size_t max_head = 1 << 16;

}  // namespace

std::int64_t count_of(const std::string& word, std::int64_t most) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > most) throw BadMessage("'" + word.substr(0, 40) + "' is no count");
    return value;
}

BoardMessage& BoardMessage::add(std::string key, std::string value) {
    for (char& c : value)
        if (c == '\n' || c == '\r' || c == '\0') c = ' ';
    lines.emplace_back(std::move(key), std::move(value));
    return *this;
}
BoardMessage& BoardMessage::add(std::string key, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return add(std::move(key), std::string(text));
}
BoardMessage& BoardMessage::add_count(std::string key, std::int64_t value) { return add(std::move(key), std::to_string(value)); }

std::string BoardMessage::text(std::string_view key) const {
    for (const auto& [k, value] : lines)
        if (k == key) return value;
    return "";
}
std::vector<std::string> BoardMessage::all(std::string_view key) const {
    std::vector<std::string> found;
    for (const auto& [k, value] : lines)
        if (k == key) found.push_back(value);
    return found;
}
double BoardMessage::number(std::string_view key, double otherwise) const {
    const std::string word = text(key);
    if (word.empty()) return otherwise;
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) throw BadMessage("'" + word.substr(0, 40) + "' is no number");
    return value;
}
std::int64_t BoardMessage::count(std::string_view key, std::int64_t most) const { return count_of(text(key), most); }

std::string BoardMessage::encode() const {
    std::string out;
    for (const auto& [key, value] : lines) out += key + " " + value + "\n";
    return out + "bytes " + std::to_string(bytes.size()) + "\n\n" + bytes;
}

std::optional<BoardMessage> MessageReader::next() {
    const std::size_t end = pending_.find("\n\n");
    if (end == pending_.npos || end > max_head) {
        if (pending_.size() > max_head) throw BadMessage("its head does not end");
        return {};
    }
    BoardMessage m;
    std::int64_t bytes = -1;
    for (std::size_t at = 0; at < end;) {
        const std::size_t stop = std::min(pending_.find('\n', at), end), space = pending_.find(' ', at);
        if (space >= stop) throw BadMessage("'" + pending_.substr(at, std::min<std::size_t>(stop - at, 60)) + "' is no line of a message");
        std::string key = pending_.substr(at, space - at), value = pending_.substr(space + 1, stop - space - 1);
        if (key == "bytes")
            bytes = count_of(value, max_);
        else
            m.lines.emplace_back(std::move(key), std::move(value));
        at = stop + 1;
    }
    if (bytes < 0) throw BadMessage("a message does not say its bytes");
    const std::size_t whole = end + 2 + static_cast<std::size_t>(bytes);
    if (pending_.size() < whole) return {};
    m.bytes = pending_.substr(end + 2, static_cast<std::size_t>(bytes));
    pending_.erase(0, whole);
    return m;
}

}  // namespace loopegg
