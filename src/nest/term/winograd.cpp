#include "nest/term/winograd.hpp"

#include <array>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.hpp"

namespace loopegg {
namespace {

// Exact while matrices are made: numerators and denominators stay small.
struct Fraction {
    std::int64_t over = 0, under = 1;
    Fraction(std::int64_t n = 0, std::int64_t d = 1) : over(n), under(d) {
        if (under < 0) over = -over, under = -under;
        if (const std::int64_t g = std::gcd(over, under); g > 1) over /= g, under /= g;
    }
    friend Fraction operator*(Fraction a, Fraction b) { return {a.over * b.over, a.under * b.under}; }
    friend Fraction operator/(Fraction a, Fraction b) { return {a.over * b.under, a.under * b.over}; }
    friend Fraction operator-(Fraction a, Fraction b) { return {a.over * b.under - b.over * a.under, a.under * b.under}; }
    double value() const { return static_cast<double>(over) / static_cast<double>(under); }
};

// Small points first: they make small entries, and errors grow with the entries.
const std::array<Fraction, 7> points{Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), Fraction(1, 2), Fraction(-1, 2)};

using Row = std::vector<Fraction>;

// The coefficients of the product of (x - p) over the first `count` points but one, lowest first.
Row vanishing_at(std::size_t count, std::size_t but) {
    Row poly{Fraction(1)};
    for (std::size_t l = 0; l < count; ++l) {
        if (l == but) continue;
        Row next(poly.size() + 1);
        for (std::size_t i = 0; i < poly.size(); ++i) {
            next[i + 1] = next[i + 1] - Fraction(-1) * poly[i];
            next[i] = next[i] - points[l] * poly[i];
        }
        poly = next;
    }
    return poly;
}

std::int64_t common_denominator(const Row& row) {
    std::int64_t all = 1;
    for (const Fraction& f : row) all = std::lcm(all, f.under);
    return all;
}

std::vector<double> values_of(const Row& row, Fraction times) {
    std::vector<double> out;
    for (const Fraction& f : row) out.push_back((f * times).value());
    return out;
}

WinogradForm make(int outputs, int taps) {
    WinogradForm form{outputs, taps, {}, {}, {}, 1};
    const auto count = static_cast<std::size_t>(form.products() - 1);  // of points; the last product is at infinity
    std::int64_t denominator = 1;
    std::vector<std::vector<double>> columns;  // of `output`
    for (std::size_t j = 0; j <= count; ++j) {
        const bool infinity = j == count;
        Row in = vanishing_at(count, j), out, weights;
        in.resize(count + 1);
        Fraction power(1), at(1);  // at: the value of the vanishing polynomial at the point itself
        for (std::size_t l = 0; l < count && !infinity; ++l)
            if (l != j) at = at * (points[j] - points[l]);
        for (int i = 0; i < outputs; ++i) {
            out.push_back(infinity ? Fraction(i == outputs - 1) : power);
            if (!infinity) power = power * points[j];
        }
        power = Fraction(1) / at;
        for (int k = 0; k < taps; ++k) {
            weights.push_back(infinity ? Fraction(k == taps - 1) : power);
            if (!infinity) power = power * points[j];
        }
        const Fraction in_scale(common_denominator(in)), out_scale(common_denominator(out));
        for (Fraction& w : weights) {
            w = w / (in_scale * out_scale);
            denominator = std::lcm(denominator, w.under);
        }
        form.input.push_back(values_of(in, in_scale));
        columns.push_back(values_of(out, out_scale));
        form.weights.push_back(values_of(weights, Fraction(1)));
    }
    for (int i = 0; i < outputs; ++i) {
        auto& row = form.output.emplace_back();
        for (const auto& column : columns) row.push_back(column[static_cast<std::size_t>(i)]);
    }
    form.denominator = static_cast<double>(denominator);
    return form;
}

}  // namespace

const WinogradForm& winograd_form(std::int64_t outputs, std::int64_t taps) {
    if (outputs < 2 || taps < 2 || outputs + taps - 2 > static_cast<std::int64_t>(points.size()))
        throw UserError("there is no Winograd form of " + std::to_string(outputs) + " outputs and " + std::to_string(taps) +
                        " taps: at least 2 of each, and at most " + std::to_string(points.size() + 2) + " together");
    static std::mutex making;
    static std::map<std::pair<std::int64_t, std::int64_t>, WinogradForm> made;
    const std::lock_guard lock(making);
    auto found = made.find({outputs, taps});
    if (found == made.end()) found = made.emplace(std::pair(outputs, taps), make(static_cast<int>(outputs), static_cast<int>(taps))).first;
    return found->second;
}

std::vector<float> winograd_weights(const WinogradForm& form, const std::vector<float>& weights) {
    const auto r = static_cast<std::size_t>(form.taps), p = static_cast<std::size_t>(form.products()), channels = weights.size() / (r * r);
    std::vector<float> out(p * p * channels);
    std::vector<double> rows(p * r);
    for (std::size_t c = 0; c < channels; ++c) {
        const float* g = weights.data() + c * r * r;
        for (std::size_t u = 0; u < p; ++u)
            for (std::size_t k = 0; k < r; ++k) {
                rows[u * r + k] = 0;
                for (std::size_t l = 0; l < r; ++l) rows[u * r + k] += form.weights[u][l] * g[l * r + k];
            }
        for (std::size_t u = 0; u < p; ++u)
            for (std::size_t v = 0; v < p; ++v) {
                double sum = 0;
                for (std::size_t k = 0; k < r; ++k) sum += form.weights[v][k] * rows[u * r + k];
                out[(u * p + v) * channels + c] = static_cast<float>(sum);
            }
    }
    return out;
}

}  // namespace loopegg
