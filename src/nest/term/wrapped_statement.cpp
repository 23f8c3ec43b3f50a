#include "nest/term/wrapped_statement.hpp"

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "graph/functions.hpp"

namespace loopegg {

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
    if (e == "bias")
        s.finish = Term("+", {s.finish, operand("bias", false)});
    else if (e == "scale_shift") {
        Term scaled("*", {s.finish, operand("scale", false)});
        s.finish = Term("+", {scaled, operand("shift", false)});
    } else if (e == "add")
        s.finish = Term("+", {s.finish, operand("add", true)});
    else if (is_plain_function(e))
        s.finish = Term(e, {s.finish});
    else {
        std::vector<std::string_view> known{"bias", "scale_shift", "add"};
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
    // What is added to each element of the output lies as the output does.
    for (const FinishRead& r : s.finish_reads)
        if (r.dimensions.size() == s.write.index.size())
            for (std::size_t d = 0; d < r.dimensions.size(); ++d)
                if (r.dimensions[d] == *dim) s.buffers[static_cast<std::size_t>(r.buffer)].blocking.push_back({static_cast<int>(d), *factor});
    return s;
}

}  // namespace loopegg
