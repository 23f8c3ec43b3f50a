#include "optimize/answer/named_sequences.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

bool spatial(const std::string& axis) { return axis == "oh" || axis == "ow"; }
bool channel(const std::string& axis) { return axis == "co" || axis == "ci"; }
bool channel_pair(const DigitPair& d) { return channel(d.first.axis) && channel(d.second.axis); }

// Which piece of the output channels a part of a cut covers; everything else about the part is what happens inside that piece.
bool is_cut(const DigitRange& r) { return r.digit.axis == "co" && r.hi > r.lo; }

bool space_with_channels(const std::string& a, const std::string& b) { return (spatial(a) && channel(b)) || (spatial(b) && channel(a)); }

bool groups_over_space(const Domain& d) {
    if (d.parts.size() != 1) return false;
    return std::any_of(d.parts[0].diagonals.begin(), d.parts[0].diagonals.end(),
                       [](const DigitPair& p) { return space_with_channels(p.first.axis, p.second.axis); });
}

bool only_channel_groups(const DomainPart& p) {
    return p.diagonals.size() == 1 && channel_pair(p.diagonals[0]) && std::all_of(p.ranges.begin(), p.ranges.end(), is_cut);
}
bool dense_piece(const DomainPart& p) { return p.diagonals.empty() && std::all_of(p.ranges.begin(), p.ranges.end(), is_cut); }

std::string cut_name(const Domain& d) {
    std::size_t dense = 0, grouped = 0;
    for (const DomainPart& p : d.parts) {
        if (!dense_piece(p) && !only_channel_groups(p)) return "unnamed";
        ++(dense_piece(p) ? dense : grouped);
    }
    if (grouped == 0) return "unnamed";
    return dense > 0 ? "part-group" : "mixed-group";
}

// A neural step as far as it groups two axes; the values that its rule does not have are empty.
struct Grouping {
    std::string rule, first, second, groups;
};

std::string axis_in(const Term& iterator) {
    const std::vector<Term> leaves = iterators_of(iterator);
    const auto name = leaves.size() == 1 ? axis_name(leaves.front()) : std::nullopt;
    return name ? name->name : std::string();
}

Grouping grouping_of(const DerivationStep& step) {
    Grouping g{step.rule, {}, {}, {}};
    for (const auto& [name, value] : step.with) {
        if (name == "?a") g.first = axis_in(value);
        if (name == "?b") g.second = axis_in(value);
        if (name == "?g") g.groups = to_string(value);
    }
    return g;
}

std::string digit_words(const Digit& d) {
    return d.stride == 1 ? fmt::format("({} mod {})", d.axis, d.radix) : fmt::format("({} div {} mod {})", d.axis, d.stride, d.radix);
}

std::string digit_text(const Digit& d) { return fmt::format("{}/{}%{}", d.axis, d.stride, d.radix); }

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
    if (groups_over_space(d)) return "spatial-group";
    const DomainPart& p = d.parts[0];
    if (p.ranges.empty() && p.diagonals.size() == 1 && channel_pair(p.diagonals[0])) return p.diagonals[0].first.radix == channels ? "depthwise" : "group";
    if (p.diagonals.empty() && p.ranges.size() == 1) return spatial(p.ranges[0].digit.axis) ? "spatial-bottleneck" : "bottleneck";
    return "unnamed";
}

std::string paper_sequence(const std::vector<DerivationStep>& steps) {
    bool cut = false;
    std::vector<Grouping> groupings;
    for (const DerivationStep& step : steps) {
        cut |= step.rule == (step.backwards ? "join-domain" : "cut-domain") || step.rule == "halve-domain";  // a cut is a join backwards
        if (step.neural) groupings.push_back(grouping_of(step));
    }
    const auto channels = [](const Grouping& g) { return channel(g.first) && channel(g.second); };
    if (groupings.size() == 1 && groupings[0].rule == "group-axes" && space_with_channels(groupings[0].first, groupings[0].second)) return "S1";
    if (!cut || !std::all_of(groupings.begin(), groupings.end(), channels)) return "";
    std::set<std::pair<std::string, std::string>> parts;  // rule and groups
    for (const Grouping& g : groupings) parts.emplace(g.rule, g.groups);
    if (groupings.size() == 1 && (groupings[0].rule == "group-first-part" || groupings[0].rule == "group-second-part")) return "S2";
    const bool two_and_four = parts == decltype(parts){{"group-first-part", "2"}, {"group-second-part", "4"}} ||
                              parts == decltype(parts){{"group-first-part", "4"}, {"group-second-part", "2"}};
    return groupings.size() == 2 && two_and_four ? "S3" : "";
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

std::string domain_text(const Domain& domain) {
    std::string text = domain.restore == Restore::none ? "" : to_string(domain.restore) + " ";
    for (const DomainPart& p : domain.parts) {
        text += "[";
        for (const DigitRange& r : p.ranges) text += fmt::format(" {}={}..{}", digit_text(r.digit), r.lo, r.hi);
        for (const DigitPair& d : p.diagonals) text += fmt::format(" {}={}", digit_text(d.first), digit_text(d.second));
        text += " ]";
    }
    return text.empty() ? "whole" : text;
}

}  // namespace loopegg
