#include "nest/term/bilinear.hpp"

#include <array>

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

}  // namespace loopegg
