// The reference of what is computed block by block: one row after the other, in double precision.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/term/blockwise.hpp"

namespace loopegg {
namespace {

using Row = std::vector<double>;

// One row of one matrix.
class RowReference {
public:
    RowReference(const Blockwise& b, const std::vector<std::vector<float>>& buffers) : b_(b), buffers_(buffers), rows_(b.parts.size()) {}

    const Row& run(std::int64_t matrix, std::int64_t row) {
        matrix_ = matrix, block_ = row / b_.row_block, row_ = row % b_.row_block;
        for (std::size_t p = 0; p < b_.parts.size(); ++p) {
            const BlockPart& part = b_.parts[p];
            if (part.kind == BlockPart::Kind::product)
                product(part, rows_[p]);
            else if (part.kind == BlockPart::Kind::map)
                map(part, rows_[p]);
            else if (part.kind == BlockPart::Kind::sum)
                sum(part, rows_[p]);
            else
                divide(part, rows_[p]);
        }
        return rows_.back();
    }

private:
    const Row& made(const BlockPart& part, std::size_t buffer) const { return rows_[static_cast<std::size_t>(part.views[buffer].part)]; }
    // Where an operand's elements begin for a block of columns.
    const float* begin(const BlockPart& part, std::size_t buffer, std::int64_t column_block) const {
        const BlockView& v = part.views[buffer];
        const std::int64_t shared = matrix_ / v.share, matrix = v.period > 0 ? shared % v.period : shared;
        return buffers_[static_cast<std::size_t>(v.buffer)].data() + matrix * v.matrix + block_ * v.row + column_block * v.column;
    }
    std::int64_t column_blocks() const { return (b_.columns + b_.column_block - 1) / b_.column_block; }
    std::int64_t columns_of(std::int64_t column_block) const { return std::min(b_.column_block, b_.columns - column_block * b_.column_block); }
    // The distance in an operand from one value of an axis to the next.
    static std::int64_t step(const BlockPart& part, int buffer, const char* axis) {
        std::int64_t all = 0;
        for (const Access& a : part.statement.reads)
            for (std::size_t d = 0; a.buffer == buffer && d < a.index.size(); ++d)
                all += a.index[d].coefficients[static_cast<std::size_t>(part.statement.axis(axis))] * part.views[static_cast<std::size_t>(buffer)].strides[d];
        return all;
    }
    static double finished(const Statement& s, const Term& t, double acc) {
        if (t.size() == 0) return t.op().text() == "acc" ? acc : std::stod(t.op().text());
        std::vector<double> operands;
        for (const Term& child : t.children()) operands.push_back(finished(s, child, acc));
        return apply_scalar(t.op().text(), operands);
    }

    void product(const BlockPart& p, Row& out) const {
        const int i = p.statement.buffer("I"), j = p.statement.buffer("J");
        const std::int64_t left_k = step(p, i, "k"), left_i = step(p, i, "i"), right_k = step(p, j, "k"), right_j = step(p, j, "j");
        const std::int64_t depth = p.statement.axes[3].extent;
        out.assign(static_cast<std::size_t>(b_.columns), 0);
        for (std::int64_t c = 0; c < column_blocks(); ++c) {
            const float *left = begin(p, static_cast<std::size_t>(i), c) + row_ * left_i, *right = begin(p, static_cast<std::size_t>(j), c);
            double* to = out.data() + c * b_.column_block;
            for (std::int64_t k = 0; k < depth; ++k)
                for (std::int64_t x = 0; x < columns_of(c); ++x) to[x] += static_cast<double>(left[k * left_k]) * right[k * right_k + x * right_j];
        }
        for (double& v : out) v = finished(p.statement, p.statement.finish, v);
    }

    void map(const BlockPart& p, Row& out) const {
        out = made(p, 1);
        const double most = p.wide() ? *std::max_element(out.begin(), out.end()) : 0;
        for (std::int64_t c = 0; c < column_blocks(); ++c)
            for (std::int64_t x = 0; x < columns_of(c); ++x) {
                double& v = out[static_cast<std::size_t>(c * b_.column_block + x)];
                v = p.wide() ? std::exp(v - most) : value(p.statement.value, {v, p.views.size() > 2 ? other(p, c, x) : 0});
            }
    }
    double other(const BlockPart& p, std::int64_t column_block, std::int64_t column) const {
        return begin(p, 2, column_block)[row_ * p.views[2].strides[0] + column * p.views[2].strides[1]];
    }
    // `operands` are I and J.
    static double value(const Term& t, const std::array<double, 2>& operands) {
        if (t.size() == 0) return t.op().text() == "I" ? operands[0] : t.op().text() == "J" ? operands[1] : std::stod(to_string(t));
        std::vector<double> all;
        for (const Term& child : t.children()) all.push_back(value(child, operands));
        return apply_scalar(t.op().text(), all);
    }

    void sum(const BlockPart& p, Row& out) const {
        const Row& from = made(p, static_cast<std::size_t>(p.statement.buffer("I")));
        const int j = p.statement.buffer("J");
        if (j < 0) {
            double all = 0;
            for (const double v : from) all += v;
            out.assign(1, all);
            return;
        }
        const std::int64_t right_k = step(p, j, "k"), right_j = step(p, j, "j"), width = p.statement.axes[2].extent;
        out.assign(static_cast<std::size_t>(width), 0);
        for (std::int64_t k = 0; k < b_.columns; ++k) {
            const float* right = begin(p, static_cast<std::size_t>(j), k / b_.column_block) + k % b_.column_block * right_k;
            for (std::int64_t x = 0; x < width; ++x) out[static_cast<std::size_t>(x)] += from[static_cast<std::size_t>(k)] * right[x * right_j];
        }
    }

    void divide(const BlockPart& p, Row& out) const {
        out = made(p, 1);
        for (double& v : out) v /= made(p, 2)[0];
    }

    const Blockwise& b_;
    const std::vector<std::vector<float>>& buffers_;
    std::vector<Row> rows_;
    std::int64_t matrix_ = 0, block_ = 0, row_ = 0;
};

}  // namespace

std::vector<float> blockwise_reference(const Blockwise& b, const std::vector<std::vector<float>>& buffers) {
    RowReference reference(b, buffers);
    std::vector<float> out;
    for (std::int64_t matrix = 0; matrix < b.matrices; ++matrix)
        for (std::int64_t row = 0; row < b.rows; ++row)
            for (const double v : reference.run(matrix, row)) out.push_back(static_cast<float>(v));
    return out;
}

}  // namespace loopegg
