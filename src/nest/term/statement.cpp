#include "nest/term/statement.hpp"

#include <algorithm>
#include <cstdlib>

#include "graph/functions.hpp"

namespace loopegg {

Index Affine::over(std::span<const Index> iterators) const {
    Index sum(0);
    for (std::size_t i = 0; i < coefficients.size(); ++i)
        if (coefficients[i] != 0) sum = sum + iterators[i] * coefficients[i];
    return sum + Index(offset);
}

std::int64_t Affine::at(std::span<const std::int64_t> iterators) const {
    std::int64_t sum = offset;
    for (std::size_t i = 0; i < coefficients.size(); ++i) sum += coefficients[i] * iterators[i];
    return sum;
}

Shape Buffer::stored_shape() const {
    Shape stored = shape, blocks;
    for (const Blocking& b : blocking) {
        auto& d = stored[static_cast<std::size_t>(b.dimension)];
        d = (d + b.factor - 1) / b.factor;
        blocks.push_back(b.factor);
    }
    stored.insert(stored.end(), blocks.begin(), blocks.end());
    return stored;
}

MemoryOrder Buffer::order() const {
    MemoryOrder all;
    for (const Blocking& b : blocking) {
        std::int64_t length = 1;
        for (std::size_t d = static_cast<std::size_t>(b.dimension) + 1; d < shape.size(); ++d) length *= shape[d];
        const std::int64_t extent = shape[static_cast<std::size_t>(b.dimension)];
        if (length > 1 || !all.empty() || extent % b.factor != 0) all.push_back({b.factor, length, extent % b.factor == 0 ? 0 : extent});
    }
    return all;
}

bool works_in_any_order(const Statement& s) {
    const auto same_place = [&](const Access& read) {
        for (std::size_t d = 0; d < s.write.index.size(); ++d)
            if (read.index.size() != s.write.index.size() || read.index[d].coefficients != s.write.index[d].coefficients ||
                read.index[d].offset != s.write.index[d].offset)
                return false;
        return !read.padded;
    };
    return s.combine == Combine::assign && s.coefficients.empty() && !s.keeps_an_order() && std::all_of(s.reads.begin(), s.reads.end(), same_place) &&
           std::all_of(s.buffers.begin(), s.buffers.end(),
                       [&](const Buffer& b) { return b.kind != BufferKind::weight && b.shape == s.buffers[0].shape && b.blocking.empty(); });
}

std::vector<Index> Buffer::stored_index(const std::vector<Index>& logical) const {
    std::vector<Index> stored = logical, inner;
    for (const Blocking& b : blocking) {
        auto& d = stored[static_cast<std::size_t>(b.dimension)];
        inner.push_back(d % b.factor);
        d = d / b.factor;
    }
    stored.insert(stored.end(), inner.begin(), inner.end());
    return stored;
}

AxisRole role_of(std::string_view name) {
    if (name == "ci" || name == "kd" || name == "kh" || name == "kw" || name == "k") return AxisRole::reduction;
    return name == "t" || name == "y" ? AxisRole::sequential : AxisRole::parallel;
}

int Statement::axis(std::string_view name) const {
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (axes[i].name == name) return static_cast<int>(i);
    return -1;
}

int Statement::buffer(std::string_view name) const {
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (buffers[i].name == name) return static_cast<int>(i);
    return -1;
}

bool Statement::writes_axis(int axis) const {
    for (const Affine& a : write.index)
        if (a.coefficients[static_cast<std::size_t>(axis)] != 0) return true;
    return false;
}

bool Statement::keeps_an_order() const {
    return std::any_of(axes.begin(), axes.end(), [](const Iterator& a) { return a.role == AxisRole::sequential; });
}

std::int64_t Statement::instances() const {
    std::int64_t count = 1;
    for (const Iterator& a : axes) count *= a.extent;
    return count;
}

Term naive_schedule(const Statement& statement) {
    Term sched("done");
    for (std::size_t i = statement.axes.size(); i-- > 0;)
        if (const Iterator& a = statement.axes[i]; a.extent > 1) sched = Term("at", {axis_leaf(a.name, a.extent), sched});
    return sched;
}

Term nest_of(const Statement& statement) { return Term("nest", {statement.term, naive_schedule(statement)}); }

Term with_epilogue(const Term& stmt, std::string_view epilogue) { return with_epilogue(stmt, Term(epilogue)); }
Term with_epilogue(const Term& stmt, const Term& epilogue) { return Term("epilogue", {epilogue, stmt}); }

Term with_layout(const Term& stmt, std::string_view buffer, std::string_view axis, std::int64_t factor) {
    return Term("layout", {Term(buffer), Term(axis), Term(factor), stmt});
}

Term with_layouts_of(const Term& from, Term stmt) {
    if (from.is("epilogue", 2) || from.is("order", 3)) return with_layouts_of(from[from.size() - 1], std::move(stmt));
    return from.is("layout", 4) ? Term("layout", {from[0], from[1], from[2], with_layouts_of(from[3], std::move(stmt))}) : stmt;
}

double apply_scalar(std::string_view f, std::span<const double> x) { return apply_function(f, x); }

}  // namespace loopegg
