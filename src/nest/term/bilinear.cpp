#include "nest/term/bilinear.hpp"

#include <array>

#include <numeric>
#include "base/number.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr std::string_view word = "correlation";

}  // namespace

std::optional<BilinearForm> bilinear_form(const Term& leaf) {
    const std::string& text = leaf.op().text();
    if (leaf.size() != 0 || !text.starts_with(word)) return {};
    std::array<RationalMatrix, 3> matrices;
    std::size_t at = word.size();
    for (RationalMatrix& matrix : matrices) {
        const std::size_t end = text.find(']', at);
        if (end == text.npos) return {};
        const auto read = rational_matrix(std::string_view(text).substr(at, end + 1 - at));
        if (!read) return {};
        matrix = *read, at = end + 1;
    }
    const BilinearForm form{matrices[0], matrices[1], matrices[2]};
    return at == text.size() && form.fits() ? std::optional(form) : std::nullopt;
}

Term to_term(const BilinearForm& form) { return Term(std::string(word) + to_string(form.output) + to_string(form.weights) + to_string(form.input)); }

std::optional<BilinearPair> bilinear_pair(const Term& how) {
    if (!how.is("bilinear", 2)) return {};
    const auto down = bilinear_form(how[0]), along = bilinear_form(how[1]);
    return down && along ? std::optional(BilinearPair{*down, *along}) : std::nullopt;
}

Term to_term(const BilinearPair& pair) { return Term("bilinear", {to_term(pair.down), to_term(pair.along)}); }

std::vector<float> bilinear_weights(const BilinearPair& pair, const std::vector<float>& weights) {
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const std::size_t height = size(pair.down.taps()), width = size(pair.along.taps()), channels = weights.size() / (height * width);
    const auto down = pair.down.weights.values(), along = pair.along.weights.values();
    std::vector<float> out(size(pair.products()) * channels);
    std::vector<double> rows(down.size() * width);
    for (std::size_t c = 0; c < channels; ++c) {
        const float* g = weights.data() + c * height * width;
        for (std::size_t u = 0; u < down.size(); ++u)
            for (std::size_t k = 0; k < width; ++k) {
                rows[u * width + k] = 0;
                for (std::size_t l = 0; l < height; ++l) rows[u * width + k] += down[u][l] * g[l * width + k];
            }
        for (std::size_t u = 0; u < down.size(); ++u)
            for (std::size_t v = 0; v < along.size(); ++v) {
                double sum = 0;
                for (std::size_t k = 0; k < width; ++k) sum += along[v][k] * rows[u * width + k];
                out[(u * along.size() + v) * channels + c] = static_cast<float>(sum);
            }
    }
    return out;
}

std::optional<Rational> rational(std::string_view text) {
    constexpr std::int64_t most = 999'999'999;
    const std::size_t bar = text.find('/');
    const auto over = number_in<std::int64_t>(text.substr(0, bar));
    const auto under = bar == text.npos ? std::optional<std::int64_t>(1) : number_in<std::int64_t>(text.substr(bar + 1));
    if (!over || !under || *over > most || *over < -most || *under < 1 || *under > most) return {};
    const std::int64_t common = std::gcd(*over, *under);
    return Rational{*over / common, *under / common};
}

std::string to_string(const Rational& r) { return std::to_string(r.over) + (r.under == 1 ? "" : "/" + std::to_string(r.under)); }

std::vector<std::vector<double>> RationalMatrix::values() const {
    std::vector<std::vector<double>> all;
    for (const auto& row : entries) {
        all.emplace_back();
        for (const Rational& r : row) all.back().push_back(r.value());
    }
    return all;
}

std::optional<RationalMatrix> rational_matrix(std::string_view text) {
    if (text.size() < 3 || text.front() != '[' || text.back() != ']') return {};
    RationalMatrix matrix;
    for (const std::string& row : split(text.substr(1, text.size() - 2), '|')) {
        auto& entries = matrix.entries.emplace_back();
        for (const std::string& entry : split(row, ',')) {
            const auto number = rational(entry);
            if (!number) return {};
            entries.push_back(*number);
        }
        if (entries.size() != matrix.entries.front().size()) return {};
    }
    if (matrix.entries.empty() || matrix.entries.front().empty() || matrix.rows() > max_matrix_side || matrix.columns() > max_matrix_side) return {};
    return matrix;
}

std::string to_string(const RationalMatrix& matrix) {
    std::string text = "[";
    for (std::size_t r = 0; r < matrix.entries.size(); ++r)
        for (std::size_t c = 0; c < matrix.entries[r].size(); ++c) text += (c > 0 ? "," : r > 0 ? "|" : "") + to_string(matrix.entries[r][c]);
    return text + "]";
}

}  // namespace loopegg
