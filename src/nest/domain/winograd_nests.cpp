#include "nest/domain/winograd_nests.hpp"

#include <algorithm>
#include <array>

#include "nest/domain/domain.hpp"
#include "nest/term/winograd.hpp"

namespace loopegg {
namespace {

Term shaped(std::string_view op, std::initializer_list<std::int64_t> values) {
    std::vector<Term> children;
    for (std::int64_t v : values) children.emplace_back(v);
    return Term(op, std::move(children));
}

// Channels are stored in blocks of 16, 8 or 4: one vector of a wide machine, or several vectors of a narrow one.
constexpr std::int64_t least_block = 4;
Term in_blocks(const Term& stmt, std::string_view buffer, std::string_view axis, std::int64_t channels) {
    std::int64_t block = 16;
    while (channels % block != 0) block /= 2;
    return with_layout(stmt, buffer, axis, block);
}

bool of_channels(const std::string& axis) { return axis == "co" || axis == "ci"; }

bool restricts_channels_alone(const Domain& domain) {
    return std::all_of(domain.parts.begin(), domain.parts.end(), [](const DomainPart& part) {
        return std::all_of(part.ranges.begin(), part.ranges.end(), [](const DigitRange& r) { return of_channels(r.digit.axis); }) &&
               std::all_of(part.diagonals.begin(), part.diagonals.end(),
                           [](const DigitPair& d) { return of_channels(d.first.axis) && of_channels(d.second.axis); });
    });
}

}  // namespace

std::optional<WinogradNests> winograd_nests(const Term& nest, std::int64_t outputs, std::int64_t taps) {
    const NestParts parts = nest_parts(nest);
    Term conv = parts.statement;
    std::vector<Term> epilogues;  // outermost first
    for (; conv.is("epilogue", 2); conv = conv[1]) epilogues.push_back(conv[0]);
    if (!conv.is("conv2d", 14) || parts.restore == "pointwise") return {};
    std::array<std::int64_t, 14> v{};
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = conv[i].integer().value_or(0);
    const auto [N, G, CO, CI, IH, IW, KH, KW, SH, SW, PH, PW, DH, DW] = v;
    if (KH != taps || KW != taps || SH != 1 || SW != 1 || DH != 1 || DW != 1 || CO % least_block != 0 || CI % least_block != 0) return {};
    const Domain domain = domain_of(nest);
    if (!restricts_channels_alone(domain)) return {};

    const std::int64_t side = winograd_form(outputs, taps).products(), OH = IH + 2 * PH - taps + 1, OW = IW + 2 * PW - taps + 1;
    const std::int64_t tiles = ((OH + outputs - 1) / outputs) * ((OW + outputs - 1) / outputs);
    const Term input = in_blocks(shaped("winograd_input", {outputs, taps, N, G * CI, IH, IW, PH, PW}), "O", "c", CI);
    const Term products = in_blocks(in_blocks(shaped("conv2d", {N, side * side * G, CO, CI, 1, tiles, 1, 1, 1, 1, 0, 0, 1, 1}), "I", "ci", CI), "O", "co", CO);
    Term output = in_blocks(shaped("winograd_output", {outputs, taps, N, G * CO, OH, OW}), "I", "c", CO);
    for (auto e = epilogues.rbegin(); e != epilogues.rend(); ++e) output = with_epilogue(output, *e);
    const Term kept = nest_from({products, schedule_of(statement_of(products), domain), parts.restore});
    return WinogradNests{nest_of(statement_of(input)), kept, nest_of(statement_of(output))};
}

}  // namespace loopegg
