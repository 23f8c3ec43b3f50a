#include "fisher/libtorch/loops.hpp"

#include <algorithm>
#include <cstddef>

namespace loopegg {

CodeCounts count_codes(std::span<const float> values, std::int64_t images) {
    constexpr std::size_t block = 2048;  // codes of a block stay in the first cache
    CodeCounts counts;
    const std::size_t units = values.size() / static_cast<std::size_t>(images);
    for (std::size_t begin = 0; begin < units; begin += block) {
        const std::size_t size = std::min(block, units - begin);
        const float* first = values.data() + begin;
        std::array<std::uint32_t, block> code{}, moves{};
        for (std::int64_t n = 0; n < images; ++n) {
            const float* x = values.data() + static_cast<std::size_t>(n) * units + begin;
            for (std::size_t u = 0; u < size; ++u) {
                code[u] |= static_cast<std::uint32_t>(x[u] > 0) << n;
                moves[u] |= static_cast<std::uint32_t>(x[u] != first[u]);
            }
        }
        for (std::size_t u = 0; u < size; ++u) ++counts.units[code[u]], counts.idle += moves[u] == 0;
    }
    return counts;
}

double sum_of_squared_products(std::span<const float> a, std::span<const float> b, std::int64_t columns) {
    constexpr std::size_t lanes = 8;  // eight separate sums, so that the order is fixed and the compiler can make vectors
    double total = 0;
    const std::size_t width = static_cast<std::size_t>(columns);
    for (std::size_t row = 0; row + width <= a.size(); row += width) {
        std::array<double, lanes> sums{};
        std::size_t i = 0;
        for (; i + lanes <= width; i += lanes)
            for (std::size_t l = 0; l < lanes; ++l) sums[l] += static_cast<double>(a[row + i + l]) * static_cast<double>(b[row + i + l]);
        double sum = 0;
        for (; i < width; ++i) sum += static_cast<double>(a[row + i]) * static_cast<double>(b[row + i]);
        for (double s : sums) sum += s;
        total += sum * sum;
    }
    return total;
}

}  // namespace loopegg
