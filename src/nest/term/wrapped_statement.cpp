#include "nest/term/wrapped_statement.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "graph/functions.hpp"

namespace loopegg {
namespace {

// The dimensions that the digits of `p` name, the first one being 1. None where these are not all dimensions.
std::optional<std::vector<std::size_t>> dimensions_in_order(std::int64_t p, std::size_t rank) {
    std::vector<std::size_t> order, sorted;
    for (; p > 0; p /= 10) order.insert(order.begin(), static_cast<std::size_t>(p % 10 + 9) % 10);  // the digit 0 is dimension 9, which no buffer has
    sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t d = 0; d < sorted.size(); ++d)
        if (sorted[d] != d) return std::nullopt;
    return order.size() == rank ? std::optional(order) : std::nullopt;
}

template <typename T>
void reorder(std::vector<T>& values, const std::vector<std::size_t>& order) {
    std::vector<T> moved;
    for (std::size_t d : order) moved.push_back(values[d]);
    values = std::move(moved);
}

// The dimensions of a buffer by the pieces that they make up, one piece after another. None where a piece ends inside a dimension.
std::optional<std::vector<std::vector<std::size_t>>> dimensions_by_piece(const Shape& buffer, const Shape& pieces) {
    std::vector<std::vector<std::size_t>> all(pieces.size());
    std::size_t d = 0, last = pieces.size();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        for (std::int64_t size = 1; size != pieces[i]; size *= buffer[d++]) {
            if (size > pieces[i] || d == buffer.size()) return std::nullopt;
            all[i].push_back(d), last = i;
        }
    }
    for (; d < buffer.size(); ++d) {
        if (buffer[d] != 1 || last == pieces.size()) return std::nullopt;
        all[last].push_back(d);
    }
    return all;
}

}  // namespace

bool is_wrapper(const Term& stmt) { return stmt.is("epilogue", 2) || stmt.is("layout", 4) || stmt.is("order", 3); }

Statement with_finish(Statement s, const Term& stmt) {
    const std::string& e = stmt[0].op().text();
    std::size_t channel_dim = s.write.index.size() > 1 ? 1 : 0;
    auto operand = [&](const std::string& suffix, bool whole) {
        std::string name = "E" + std::to_string(s.finish_reads.size()) + suffix;
        std::vector<int> dimensions;
        Shape shape;
        for (std::size_t d = whole ? 0 : channel_dim; d < (whole ? s.buffers[0].shape.size() : channel_dim + 1); ++d) {
            dimensions.push_back(static_cast<int>(d));
            shape.push_back(s.buffers[0].shape[d]);
        }
        s.buffers.push_back({name, shape, whole ? BufferKind::input : BufferKind::weight, {}});
        s.finish_reads.push_back({static_cast<int>(s.buffers.size()) - 1, dimensions});
        return Term(name);
    };
    if (stmt[0].is("times", 1))
        s.finish = Term("*", {s.finish, stmt[0][0]});
    else if (e == "bias")
        s.finish = Term("+", {s.finish, operand("bias", false)});
    else if (e == "scale_shift") {
        Term scaled("*", {s.finish, operand("scale", false)});
        s.finish = Term("+", {scaled, operand("shift", false)});
    } else if (e == "add")
        s.finish = Term("+", {s.finish, operand("add", true)});
    else if (is_plain_function(e))
        s.finish = Term(e, {s.finish});
    else {
        std::vector<std::string_view> known{"bias", "scale_shift", "add", "times"};
        for (const ElementFunction& f : element_functions())
            if (is_plain_function(f.name)) known.push_back(f.name);
        throw UserError(Diagnostic{"unknown epilogue '" + e + "'", {}, did_you_mean(e, known)});
    }
    return s;
}

std::optional<int> walked_dimension(const Statement& s, int buffer, int axis) {
    const auto moves = [&](const Affine& index) { return index.coefficients[static_cast<std::size_t>(axis)] == 1; };
    const auto of = [&](const Access& a) -> std::optional<int> {
        for (std::size_t d = 0; d < a.index.size(); ++d)
            if (a.buffer == buffer && moves(a.index[d])) return static_cast<int>(d);
        return std::nullopt;
    };
    if (const auto d = of(s.write)) return d;
    for (const Access& a : s.reads)
        if (const auto d = of(a)) return d;
    for (const FinishRead& r : s.finish_reads)
        for (std::size_t d = 0; d < r.dimensions.size(); ++d)
            if (r.buffer == buffer && moves(s.write.index[static_cast<std::size_t>(r.dimensions[d])])) return static_cast<int>(d);
    return std::nullopt;
}

Statement with_blocking(Statement s, const Term& stmt) {
    int buffer = s.buffer(stmt[0].op().text());
    auto name = axis_name(stmt[1]);
    int axis = name ? s.axis(name->name) : -1;
    auto factor = stmt[2].integer();
    if (buffer < 0 || axis < 0 || !factor || *factor < 2) throw UserError("a layout is (layout BUFFER AXIS factor STMT), not " + to_string(stmt));
    const auto dim = walked_dimension(s, buffer, axis);
    if (!dim)
        throw UserError("axis '" + name->name + "' walks no dimension of " + s.buffers[static_cast<std::size_t>(buffer)].name + " in " + to_string(s.term));
    s.buffers[static_cast<std::size_t>(buffer)].blocking.push_back({*dim, *factor});
    if (buffer != s.write.buffer) return s;
    // What is added to each element of the output is as the output does.
    for (const FinishRead& r : s.finish_reads)
        if (r.dimensions.size() == s.write.index.size())
            for (std::size_t d = 0; d < r.dimensions.size(); ++d)
                if (r.dimensions[d] == *dim) s.buffers[static_cast<std::size_t>(r.buffer)].blocking.push_back({static_cast<int>(d), *factor});
    return s;
}

Statement with_order(Statement s, const Term& stmt) {
    const int at = s.buffer(stmt[0].op().text());
    const auto digits = stmt[1].integer();
    const auto order = at < 0 || !digits ? std::nullopt : dimensions_in_order(*digits, s.buffers[static_cast<std::size_t>(at)].shape.size());
    if (!order) throw UserError("an order is (order BUFFER P STMT), where P has one digit for each dimension of BUFFER, not " + to_string(stmt));
    Buffer& buffer = s.buffers[static_cast<std::size_t>(at)];
    const auto moved_to = [&](int d) { return static_cast<int>(std::find(order->begin(), order->end(), static_cast<std::size_t>(d)) - order->begin()); };
    reorder(buffer.shape, *order);
    for (Blocking& b : buffer.blocking) b.dimension = moved_to(b.dimension);
    if (at == s.write.buffer) {
        reorder(s.write.index, *order);
        for (FinishRead& r : s.finish_reads)
            for (int& d : r.dimensions) d = moved_to(d);
    }
    for (Access& read : s.reads)
        if (at == read.buffer) reorder(read.index, *order);
    for (FinishRead& r : s.finish_reads)
        if (at == r.buffer) reorder(r.dimensions, *order);
    return s;
}

std::optional<std::int64_t> order_beyond_move(const Statement& s, int buffer, std::int64_t p, const Shape& moved) {
    const Buffer& b = s.buffers[static_cast<std::size_t>(buffer)];
    const auto order = dimensions_in_order(p, moved.size());
    if (!order || !b.blocking.empty() || b.shape.size() > 9) return std::nullopt;
    const bool writes = buffer == s.write.buffer;
    Shape pieces = moved;
    if (writes) reorder(pieces, *order);
    const auto dimensions = dimensions_by_piece(b.shape, pieces);
    if (!dimensions) return std::nullopt;
    std::int64_t made = 0;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const std::size_t piece = writes ? static_cast<std::size_t>(std::find(order->begin(), order->end(), i) - order->begin()) : (*order)[i];
        for (std::size_t d : (*dimensions)[piece]) made = made * 10 + static_cast<std::int64_t>(d) + 1;
    }
    return made;
}

}  // namespace loopegg
