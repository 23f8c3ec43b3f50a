#include "nest/net/net.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

bool plain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/'; }

int hexadecimal(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::span<const std::string_view> net_operators() {
    static constexpr std::array<std::string_view, 14> all{"layer",  "each",   "spread", "opaque", "same", "row",  "join",
                                                          "stream", "tangle", "none",   "write",  "read", "lack", "within"};
    return all;
}

bool is_net(const Term& term) { return std::find(net_operators().begin(), net_operators().end(), term.op().text()) != net_operators().end(); }

std::size_t net_parts(std::string_view op) {
    if (op == "row" || op == "join" || op == "stream" || op == "tangle") return 2;
    return op == "layer" || op == "each" || op == "spread" || op == "opaque" || op == "same" ? 0 : 1;
}

Term net_name(std::string_view node) {
    std::string text = "@";
    for (char c : node) text += plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return Term(text);
}

std::string node_named(const Term& name) {
    const std::string& text = name.op().text();
    if (name.size() > 0 || !text.starts_with('@')) throw UserError("'" + to_string(name) + "' is no name of a node: expected @NAME");
    std::string node;
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] != '%' || i + 2 >= text.size() || hexadecimal(text[i + 1]) < 0 || hexadecimal(text[i + 2]) < 0) {
            node += text[i];
            continue;
        }
        node += static_cast<char>(hexadecimal(text[i + 1]) * 16 + hexadecimal(text[i + 2]));
        i += 2;
    }
    return node;
}

NetSite net_site(const Term& site) {
    const bool kept = site.is("kept", 1);
    return {node_named(kept ? site[0] : site), kept};
}

Term net_site(const NetSite& site) { return site.kept ? Term("kept", {net_name(site.name)}) : net_name(site.name); }

std::vector<std::int64_t> widths_offered(std::int64_t channels, std::int64_t least, std::int64_t parts, std::int64_t step) {
    constexpr std::int64_t max_parts = 1024;
    if (least < 1 || least >= parts || parts > max_parts) return {};
    if (parts > channels) least = (least * channels + parts - 1) / parts, parts = channels;  // every width from the least one on
    const std::int64_t block = std::max<std::int64_t>(step, channels >= 16 ? 4 : 1);
    std::vector<std::int64_t> out;
    for (std::int64_t k = least; k < parts; ++k)
        if (const std::int64_t w = channels * k / parts / block * block; w > 0 && w < channels && (out.empty() || out.back() < w)) out.push_back(w);
    return out;
}

}  // namespace loopegg
