// A float as the double of the same shortest decimal: 1e-5f becomes 1e-5, not 9.99999974e-06.
#pragma once
#include <charconv>

namespace loopegg {

inline double shortest_double(float value) {
    char text[64];
    double out = value;
    auto end = std::to_chars(text, text + sizeof text, value).ptr;
    std::from_chars(text, end, out);
    return out;
}

}  // namespace loopegg
