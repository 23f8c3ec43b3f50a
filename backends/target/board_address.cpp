#include "backends/target/board_address.hpp"

#include <string_view>

namespace loopegg {
namespace {

bool made_of(std::string_view text, std::string_view more) {
    for (char c : text)
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || more.find(c) != more.npos)) return false;
    return !text.empty() && text.size() <= 255 && text[0] != '-';
}

}  // namespace

std::string BoardAddress::words() const {
    const bool bracket = port && host.find(':') != host.npos;
    return (user.empty() ? "" : user + "@") + (bracket ? "[" + host + "]" : host) + (port ? ":" + std::to_string(port) : "");
}

std::optional<BoardAddress> parse_board_address(const std::string& text) {
    BoardAddress a;
    const std::size_t at = text.rfind('@');
    if (at != text.npos) a.user = text.substr(0, at);
    std::string rest = at == text.npos ? text : text.substr(at + 1), port;
    if (rest.starts_with('[')) {
        const std::size_t close = rest.find(']');
        if (close == rest.npos || (close + 1 < rest.size() && rest[close + 1] != ':')) return {};
        a.host = rest.substr(1, close - 1), port = close + 1 < rest.size() ? rest.substr(close + 1) : "";
        if (!made_of(a.host, ":.%")) return {};
    } else if (const std::size_t colon = rest.find(':'); colon != rest.npos && rest.find(':', colon + 1) == rest.npos) {
        a.host = rest.substr(0, colon), port = rest.substr(colon);
    } else {
        a.host = rest;
    }
    if (at != text.npos && !made_of(a.user, "._-+")) return {};
    if (!made_of(a.host, "._-:%")) return {};
    if (port.empty()) return a;
    if (port.size() < 2 || port.size() > 6 || port.find_first_not_of("0123456789", 1) != port.npos) return {};
    a.port = std::stoi(port.substr(1));
    if (a.port < 1 || a.port > 65535) return {};
    return a;
}

}  // namespace loopegg
