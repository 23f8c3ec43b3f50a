// Whether three matrices are the correlation that they are stated to be, over the rational numbers.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nest/term/bilinear.hpp"

namespace loopegg {

// One entry with which, in place of the entry that is there, everything would be right.
struct BilinearRepair {
    enum class Matrix { output, weights, input };
    Matrix matrix;
    std::size_t row, column;
    std::string entry;
};

struct BilinearFault {
    std::string why;  // the first product that is wrong
    std::vector<BilinearRepair> repairs;
};

// The identity: for all i, k and l, the sum over products u of output[i][u] weights[u][k] input[u][l] is 1 where l = i + k, and else 0.
// None where it holds. The form must fit.
std::optional<BilinearFault> bilinear_fault(const BilinearForm& form);

}  // namespace loopegg
