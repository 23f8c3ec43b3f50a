#include "nest/domain/bilinear_nests.hpp"

#include <algorithm>
#include <array>

#include "nest/domain/domain.hpp"

namespace loopegg {
namespace {

Term shaped(std::string_view op, std::initializer_list<RationalMatrix> matrices, std::initializer_list<std::int64_t> values) {
    std::vector<Term> children;
    for (const RationalMatrix& matrix : matrices) children.emplace_back(to_string(matrix));
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

std::optional<BilinearNests> bilinear_nests(const Term& nest, const BilinearPair& pair) {
    const NestParts parts = nest_parts(nest);
    Term conv = parts.statement;
    std::vector<Term> epilogues;  // outermost first
    for (; conv.is("epilogue", 2); conv = conv[1]) epilogues.push_back(conv[0]);
    if (!conv.is("conv2d", 14) || parts.restore == "pointwise") return {};
    std::array<std::int64_t, 14> v{};
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = conv[i].integer().value_or(0);
    const auto [N, G, CO, CI, IH, IW, KH, KW, SH, SW, PH, PW, DH, DW] = v;
    const auto& [down, along] = pair;
    if (KH != down.taps() || KW != along.taps() || SH != 1 || SW != 1 || DH != 1 || DW != 1) return {};
    if (CO % least_block != 0 || CI % least_block != 0) return {};
    const Domain domain = domain_of(nest);
    if (!restricts_channels_alone(domain)) return {};

    const auto tiles = [](std::int64_t size, std::int64_t each) { return (size + each - 1) / each; };
    const std::int64_t OH = IH + 2 * PH - KH + 1, OW = IW + 2 * PW - KW + 1, MH = down.outputs(), MW = along.outputs();
    const Term input = in_blocks(shaped("bilinear_input", {down.input, along.input}, {MH, MW, N, G * CI, IH, IW, PH, PW}), "O", "c", CI);
    const Term products =
        in_blocks(in_blocks(shaped("conv2d", {}, {N, pair.products() * G, CO, CI, 1, tiles(OH, MH) * tiles(OW, MW), 1, 1, 1, 1, 0, 0, 1, 1}), "I", "ci", CI),
                  "O", "co", CO);
    Term output = in_blocks(shaped("bilinear_output", {down.output, along.output}, {N, G * CO, OH, OW}), "I", "c", CO);
    for (auto e = epilogues.rbegin(); e != epilogues.rend(); ++e) output = with_epilogue(output, *e);
    const Term kept = nest_from({products, schedule_of(statement_of(products), domain), parts.restore});
    return BilinearNests{nest_of(statement_of(input)), kept, nest_of(statement_of(output))};
}

Term bilinear_row(const BilinearPair& pair, const BilinearNests& nests) {
    return Term("prepare", {to_term(pair), Term("then", {Term("then", {Term("site", {nests.input}), nests.products}), nests.output})});
}

}  // namespace loopegg
