#include "optimize/named_sequences.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"

namespace loopegg {
namespace {

bool spatial(const std::string& axis) { return axis == "oh" || axis == "ow"; }
bool channel(const std::string& axis) { return axis == "co" || axis == "ci"; }
bool channel_pair(const DigitPair& d) { return channel(d.first.axis) && channel(d.second.axis); }

// Which piece of the output channels a part of a cut covers; everything else about the part is what happens inside that piece.
bool is_cut(const DigitRange& r) { return r.digit.axis == "co" && r.hi > r.lo; }

// S1: a spatial axis walks together with a channel axis.
bool is_s1(const Domain& d) {
    if (d.parts.size() != 1 || d.parts[0].diagonals.empty()) return false;
    return std::any_of(d.parts[0].diagonals.begin(), d.parts[0].diagonals.end(), [](const DigitPair& p) {
        return (spatial(p.first.axis) && channel(p.second.axis)) || (spatial(p.second.axis) && channel(p.first.axis));
    });
}

bool only_channel_groups(const DomainPart& p) {
    return p.diagonals.size() == 1 && channel_pair(p.diagonals[0]) && std::all_of(p.ranges.begin(), p.ranges.end(), is_cut);
}
bool dense_piece(const DomainPart& p) { return p.diagonals.empty() && std::all_of(p.ranges.begin(), p.ranges.end(), is_cut); }

std::string cut_name(const Domain& d) {
    std::size_t dense = 0;
    std::vector<std::int64_t> groups;
    for (const DomainPart& p : d.parts) {
        if (dense_piece(p))
            ++dense;
        else if (only_channel_groups(p))
            groups.push_back(p.diagonals[0].first.radix);
        else
            return "unnamed";
    }
    std::sort(groups.begin(), groups.end());
    if (dense >= 1 && !groups.empty()) return "S2";
    if (groups == std::vector<std::int64_t>{2, 4}) return "S3";
    return groups.empty() ? "unnamed" : "mixed-group";
}

std::string digit_words(const Digit& d) {
    return d.stride == 1 ? fmt::format("({} mod {})", d.axis, d.radix) : fmt::format("({} div {} mod {})", d.axis, d.stride, d.radix);
}

std::string part_words(const DomainPart& p) {
    std::vector<std::string> words;
    for (const DigitRange& r : p.ranges)
        words.push_back(r.lo == 0 ? fmt::format("{} keeps {} of {}", digit_words(r.digit), r.hi, r.digit.radix)
                                  : fmt::format("{} in {}..{} of {}", digit_words(r.digit), r.lo, r.hi, r.digit.radix));
    for (const DigitPair& d : p.diagonals) words.push_back(fmt::format("{} and {} in {} diagonal blocks", d.first.axis, d.second.axis, d.first.radix));
    return words.empty() ? "everything" : join(words, ", ");
}

}  // namespace

std::string effect_name(const Domain& d, std::int64_t channels) {
    if (d.whole()) return "dense";
    if (d.restore == Restore::pointwise) return d.parts.size() == 1 && dense_piece(d.parts[0]) ? "pointwise" : "unnamed";
    if (d.parts.size() > 1) return cut_name(d);
    if (is_s1(d)) return "S1";
    const DomainPart& p = d.parts[0];
    if (p.ranges.empty() && p.diagonals.size() == 1 && channel_pair(p.diagonals[0])) return p.diagonals[0].first.radix == channels ? "depthwise" : "group";
    if (p.diagonals.empty() && p.ranges.size() == 1) return spatial(p.ranges[0].digit.axis) ? "spatial-bottleneck" : "bottleneck";
    return "unnamed";
}

std::string effect_words(const Domain& d) {
    if (d.whole()) return "everything";
    std::vector<std::string> words;
    for (const DomainPart& p : d.parts) words.push_back(part_words(p));
    std::string text = join(words, "; then ");
    if (d.restore == Restore::repeat) text += "; missing outputs repeat";
    if (d.restore == Restore::zero) text += "; missing outputs are zero";
    if (d.restore == Restore::pointwise) text += "; a 1x1 convolution makes all channels of these";
    return text;
}

std::string narrower_words(const Term& is, const Term& was) { return fmt::format("{} instead of {}", to_string(is), to_string(was)); }

std::string restriction_kind(const Domain& d) {
    std::set<std::string> parts, blocks;
    for (const DomainPart& p : d.parts) {
        for (const DigitRange& r : p.ranges) parts.insert(r.digit.axis);
        for (const DigitPair& b : p.diagonals) blocks.insert({b.first.axis, b.second.axis});
    }
    std::string text;
    for (const auto& [axes, how] : {std::pair(&parts, "part "), std::pair(&blocks, "blocks ")}) {
        for (const std::string& axis : *axes) text += axis + " ";
        if (!axes->empty()) text += how;
    }
    return d.whole() ? "" : text + to_string(d.restore);
}

}  // namespace loopegg
