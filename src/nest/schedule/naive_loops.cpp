#include "nest/schedule/naive_loops.hpp"

#include <algorithm>
#include <cstdlib>

#include "nest/term/axis.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

// Whether the iterator goes up by one where the axis does, as long as no digit above the axis changes.
bool steps_by_one(const Term& axis, const Term& iterator) {
    if (axis.size() == 0) return axis == iterator;
    if (axis.is("rem", 2) || axis.is("span", 3)) return steps_by_one(axis[0], iterator);
    if (!axis.is("diag", 3)) return false;
    return std::any_of(axis.children().begin() + 1, axis.children().end(),
                       [&](const Term& side) { return axis_extent(side) == axis[0].integer() && steps_by_one(side, iterator); });
}

// The dimension in blocks is the innermost one.
std::size_t innermost_dimension(const Buffer& b) { return b.blocking.empty() ? b.shape.size() - 1 : static_cast<std::size_t>(b.blocking.back().dimension); }
// A dimension of one element has no neighbours.
std::size_t neighbours_along(const Buffer& b) {
    std::size_t d = innermost_dimension(b);
    while (b.blocking.empty() && d > 0 && b.shape[d] == 1) --d;
    return d;
}
std::int64_t block_of(const Buffer& b, std::int64_t extent) { return b.blocking.empty() ? extent : std::min(extent, b.blocking.back().factor); }

NaiveLoop naive_loop(const Statement& statement, const Term& axis) {
    constexpr std::int64_t far = 1 << 20;  // further than any window reaches
    NaiveLoop loop{axis, axis_extent(axis)};
    for (const Access& read : statement.reads) loop.strides.emplace_back(read.index.size(), 0);
    for (const Term& leaf : iterators_of(axis)) {
        const auto a = static_cast<std::size_t>(statement.axis(axis_name(leaf)->name));
        const std::int64_t step = steps_by_one(axis, leaf) ? 1 : far;
        loop.reduction = loop.reduction && !statement.writes_axis(static_cast<int>(a));
        if (statement.write.index[innermost_dimension(statement.buffers[0])].coefficients[a] * step == 1)
            loop.contiguous = true, loop.neighbours = block_of(statement.buffers[0], loop.extent);
        for (std::size_t r = 0; r < statement.reads.size(); ++r)
            for (std::size_t d = 0; d < loop.strides[r].size(); ++d) loop.strides[r][d] += std::abs(statement.reads[r].index[d].coefficients[a]) * step;
    }
    for (std::size_t r = 0; r < statement.reads.size(); ++r)
        if (statement.buffers[static_cast<std::size_t>(statement.reads[r].buffer)].kind == BufferKind::input && loop.moves(r)) loop.weights_only = false;
    return loop;
}

NaiveLoops::ScatteredSum scattered_sum(const std::vector<NaiveLoop>& loops, std::size_t read, const Shape& shape) {
    NaiveLoops::ScatteredSum longest{read};
    std::int64_t pitch = 1;  // elements of memory between neighbours of a dimension
    for (std::size_t d = shape.size(); d-- > 0; pitch *= shape[d])
        for (const NaiveLoop& l : loops)
            if (l.reduction && l.strides[read][d] * pitch > 1 && l.extent > longest.steps)
                longest = {read, l.extent, l.strides[read][d] * pitch * static_cast<std::int64_t>(sizeof(float))};
    return longest;
}

}  // namespace

bool NaiveLoop::moves(std::size_t read) const {
    return std::any_of(strides[read].begin(), strides[read].end(), [](std::int64_t s) { return s != 0; });
}

std::optional<std::size_t> NaiveLoops::innermost_reduction() const {
    for (std::size_t i = loops.size(); i-- > 0;)
        if (loops[i].reduction) return i;
    return std::nullopt;
}

std::optional<std::size_t> NaiveLoops::row_loop() const {
    std::optional<std::size_t> row;
    for (std::size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].reduction) continue;
        if (loops[i].contiguous) return row;
        row = i;
    }
    return row;
}

std::vector<std::int64_t> divisors(std::int64_t extent, std::int64_t most) {
    std::vector<std::int64_t> all;
    for (std::int64_t k = 1; k <= std::min(extent, most); ++k)
        if (extent % k == 0) all.push_back(k);
    return all;
}

bool crosses_edge(const Statement& statement, const Access& read) {
    return read.padded && statement.buffers[static_cast<std::size_t>(read.buffer)].blocking.empty();
}

NaiveLoops naive_loops(const Statement& statement, Term schedule) {
    NaiveLoops nest;
    for (; schedule.is("at", 2); schedule = schedule[1]) {
        NaiveLoop loop = naive_loop(statement, schedule[0]);
        (loop.extent == 1 ? nest.fixed : nest.loops).push_back(std::move(loop));
    }
    for (std::size_t r = 0; r < statement.reads.size(); ++r) {
        const Buffer& b = statement.buffers[static_cast<std::size_t>(statement.reads[r].buffer)];
        if (crosses_edge(statement, statement.reads[r])) nest.padded = r;
        nest.innermost.push_back(b.kind == BufferKind::weight ? std::nullopt : std::optional(neighbours_along(b)));
        if (b.name == "I" && b.blocking.empty())
            if (auto sum = scattered_sum(nest.loops, r, b.shape); sum.steps > 0) nest.scattered = sum;
    }
    return nest;
}

std::optional<std::int64_t> end_of_whole_vectors(const NaiveLoop& loop, std::int64_t lanes) {
    const bool in_blocks = loop.contiguous && loop.neighbours != loop.extent;
    if (lanes < 1 || in_blocks || loop.extent <= lanes || loop.extent % lanes == 0) return {};
    return loop.extent / lanes * lanes;
}

NaiveLoops over_span(NaiveLoops nest, std::size_t loop, std::int64_t from, std::int64_t to) {
    NaiveLoop& l = nest.loops[loop];
    l.axis = Term("span", {l.axis, Term(from), Term(to)}), l.extent = to - from;
    l.neighbours = std::min(l.neighbours, l.extent);
    return nest;
}

}  // namespace loopegg
