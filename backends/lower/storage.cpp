// How the values of a buffer are stored in memory: blocked layouts, and weights in the order of their visits.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/kernel/kernel.hpp"
#include "base/error.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

// Calls f(stored position, logical position) for every logical element of a blocked buffer.
template <class F>
void each_blocked(const KernelBuffer& p, F f) {
    const Buffer buffer{p.name, p.logical, p.kind, p.blocking};
    const Shape stored = buffer.stored_shape();
    std::vector<Index> variables;
    for (std::size_t d = 0; d < p.logical.size(); ++d) variables.push_back(Index::variable(static_cast<int>(d)));
    const std::vector<Index> index = buffer.stored_index(variables);
    std::vector<std::int64_t> at(p.logical.size(), 0);
    for (std::int64_t i = 0, n = element_count(p.logical); i < n; ++i) {
        std::int64_t rest = i, position = 0;
        for (std::size_t d = at.size(); d-- > 0;) at[d] = rest % p.logical[d], rest /= p.logical[d];
        for (std::size_t d = 0; d < stored.size(); ++d) position = position * stored[d] + index[d].at(at);
        f(position, i);
    }
}

// Calls f(stored position, logical position) for every element that a reader visits within the weight, in the order of its visits.
template <class F>
void each_visited(const KernelBuffer& p, const WeightReader& r, F f) {
    const std::size_t n = r.atoms.size(), rank = p.logical.size();
    std::vector<std::int64_t> digit(n, 0), at(r.offsets);
    for (std::int64_t i = 0, all = r.elements(); i < all; ++i) {
        std::int64_t position = 0;
        bool inside = true;
        for (std::size_t d = 0; d < rank; ++d) {
            inside = inside && at[d] >= 0 && at[d] < p.logical[d];
            position = position * p.logical[d] + at[d];
        }
        if (inside) f(static_cast<std::size_t>(r.start + i), static_cast<std::size_t>(position));
        for (std::size_t a = n; a-- > 0;) {  // the next digits, innermost fastest
            ++digit[a];
            for (std::size_t d = 0; d < rank; ++d) at[d] += r.coefficients[d][a];
            if (digit[a] < r.atoms[a].extent) break;
            for (std::size_t d = 0; d < rank; ++d) at[d] -= r.coefficients[d][a] * r.atoms[a].extent;
            digit[a] = 0;
        }
    }
}

// Pairs of numbers that are rounded already.
std::vector<float> in_words(const std::vector<float>& values, const std::string& kind) {
    const auto half = [&](float v) -> std::uint32_t { return kind == "fp16" ? fp16_bits(v) : std::bit_cast<std::uint32_t>(v) >> 16; };
    std::vector<float> words(values.size() / 2);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = std::bit_cast<float>(half(values[2 * i]) | half(values[2 * i + 1]) << 16);
    return words;
}

// The words of weights as whole numbers of 8 bits, and what comes behind them.
std::vector<float> int8_words(const KernelBuffer& p, std::span<const float> logical, const Int8Scales& scales) {
    const std::int64_t channels = p.logical[0], words = p.elements - int8_tail(channels);
    require(scales.weights.empty() || static_cast<std::int64_t>(scales.weights.size()) == channels, "int8 weights have a scale for each output channel");
    const std::size_t count = static_cast<std::size_t>(channels), each = logical.size() / count;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(4 * words));
    std::vector<bool> seen(logical.size());
    std::vector<std::int64_t> sums(count);
    for (const WeightReader& r : p.readers)
        each_visited(p, r, [&](std::size_t stored, std::size_t from) {
            const std::int8_t whole = whole_weight(logical[from], scales.weights.empty() ? 1 : scales.weights[from / each]);
            bytes[stored] = static_cast<std::uint8_t>(whole);
            if (!seen[from]) sums[from / each] += whole;
            seen[from] = true;
        });
    std::vector<float> out(static_cast<std::size_t>(p.elements));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    float* tail = out.data() + words;
    for (std::size_t c = 0; c < count; ++c) {
        tail[c] = scales.weights.empty() ? scales.input : scales.input * scales.weights[c];
        tail[count + c] = std::bit_cast<float>(static_cast<std::int32_t>(((p.signed_inputs ? 128 : 0) - static_cast<std::int64_t>(scales.zero)) * sums[c]));
    }
    tail[2 * count] = 1 / scales.input, tail[2 * count + 1] = scales.zero;
    return out;
}

}  // namespace

std::int64_t WeightReader::elements() const {
    std::int64_t n = 1;
    for (const Atom& a : atoms) n *= a.extent;
    return n;
}

std::vector<float> to_storage(const KernelBuffer& p, std::span<const float> logical, const Int8Scales& scales) {
    require(static_cast<std::int64_t>(logical.size()) == element_count(p.logical), "a buffer is given as many values as its shape has elements");
    if (p.rounding == "int8") return int8_words(p, logical, scales);
    if (!p.rounding.empty()) {
        std::vector<float> rounded(logical.size());
        std::transform(logical.begin(), logical.end(), rounded.begin(), [&](float v) { return rounded_to(p.rounding, v); });
        KernelBuffer plain = p;
        plain.rounding.clear(), plain.in_word = 1, plain.elements *= p.in_word;
        const std::vector<float> stored = to_storage(plain, rounded);
        return p.in_word > 1 ? in_words(stored, p.rounding) : stored;
    }
    if (p.readers.empty() && p.blocking.empty()) return {logical.begin(), logical.end()};
    std::vector<float> out(static_cast<std::size_t>(p.elements), 0.0f);
    if (p.readers.empty()) each_blocked(p, [&](std::int64_t s, std::int64_t l) { out[static_cast<std::size_t>(s)] = logical[static_cast<std::size_t>(l)]; });
    for (const WeightReader& r : p.readers) each_visited(p, r, [&](std::size_t s, std::size_t l) { out[s] = logical[l]; });
    return out;
}

std::vector<float> from_storage(const KernelBuffer& p, std::span<const float> stored) {
    require(p.readers.empty(), "weights in visiting order are not read back");
    if (p.blocking.empty()) return {stored.begin(), stored.end()};
    std::vector<float> out(static_cast<std::size_t>(element_count(p.logical)));
    each_blocked(p, [&](std::int64_t s, std::int64_t l) { out[static_cast<std::size_t>(l)] = stored[static_cast<std::size_t>(s)]; });
    return out;
}

}  // namespace loopegg
