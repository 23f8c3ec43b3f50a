// ONNX's numbers of element types.
#pragma once
#include <optional>

namespace loopegg::onnx_type {

enum Type : int {
    float32 = 1,
    uint8 = 2,
    int8 = 3,
    uint16 = 4,
    int16 = 5,
    int32 = 6,
    int64 = 7,
    text = 8,
    boolean = 9,
    float16 = 10,
    float64 = 11,
    uint32 = 12,
    uint64 = 13,
    complex64 = 14,
    complex128 = 15,
    bfloat16 = 16
};

// The smallest and the largest number of a type that values are quantized to; none for other types.
struct WholeRange {
    double low, high;
};
inline std::optional<WholeRange> whole_range(int type) {
    switch (type) {
        case uint8: return WholeRange{0, 255};
        case int8: return WholeRange{-128, 127};
        case uint16: return WholeRange{0, 65535};
        case int16: return WholeRange{-32768, 32767};
        default: return {};
    }
}

}  // namespace loopegg::onnx_type
