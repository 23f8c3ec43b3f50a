// Graph nodes as statements.
#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/functions.hpp"
#include "graph/loop_operators.hpp"
#include "graph/operators.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

Term shaped(std::string_view op, std::initializer_list<std::int64_t> values) {
    std::vector<Term> children;
    for (std::int64_t v : values) children.emplace_back(v);
    return Term(op, std::move(children));
}

std::int64_t product(const Shape& shape, std::size_t from, std::size_t to) {
    std::int64_t p = 1;
    for (std::size_t i = from; i < to; ++i) p *= shape[i];
    return p;
}

Term conv2d(const Node& node) {
    const Shape& in = node.input_shapes[0];
    std::int64_t g = node.integer("groups");
    const auto &k = node.integers("kernel"), &s = node.integers("stride"), &p = node.integers("padding"), &d = node.integers("dilation");
    return shaped("conv2d", {in[0], g, node.shape[1] / g, in[1] / g, in[2], in[3], k[0], k[1], s[0], s[1], p[0], p[1], d[0], d[1]});
}

Term pool(const Node& node, std::string op) {
    const Shape& in = node.input_shapes[0];
    const auto &k = node.integers("kernel"), &s = node.integers("stride"), &p = node.integers("padding"), &e = node.integers("padding_end");
    if (p != e) return shaped(op + "_uneven", {in[0], in[1], in[2], in[3], k[0], k[1], s[0], s[1], p[0], p[1], e[0], e[1]});
    return shaped(op, {in[0], in[1], in[2], in[3], k[0], k[1], s[0], s[1], p[0], p[1]});
}

// Neighbouring dimensions that an operand either has or lacks together become one dimension. At most four dimensions may be left.
Term elementwise(const Node& node) {
    const Shape& out = node.shape;
    const Term function = function_term(node);
    auto has = [&](std::size_t operand, std::size_t d) {
        const Shape& shape = node.input_shapes[operand];
        std::size_t missing = out.size() - shape.size();
        return d >= missing && shape[d - missing] == out[d];
    };
    std::vector<std::int64_t> dims;
    std::vector<std::pair<bool, bool>> kinds;
    for (std::size_t d = 0; d < out.size(); ++d) {
        if (out[d] == 1) continue;
        std::pair kind{has(0, d), has(1, d)};
        if (!kinds.empty() && kinds.back() == kind)
            dims.back() *= out[d];
        else
            dims.push_back(out[d]), kinds.push_back(kind);
    }
    if (dims.empty()) dims = {1}, kinds = {{true, true}};
    if (dims.size() == 1 && kinds[0] == std::pair(true, true)) return Term("zip", {function, Term(dims[0])});
    if (dims.size() > 4)
        throw UserError(Diagnostic{fmt::format("node '{}' stretches its operands over more than four runs of dimensions", node.name), node.where, ""});
    std::vector<Term> children{function};
    std::int64_t left = 0, right = 0;
    for (std::size_t d = 0; d < 4; ++d) {
        children.emplace_back(d < dims.size() ? dims[d] : std::int64_t{1});
        if (d >= dims.size() || kinds[d].first) left |= std::int64_t{1} << d;
        if (d >= dims.size() || kinds[d].second) right |= std::int64_t{1} << d;
    }
    children.emplace_back(left);
    children.emplace_back(right);
    return Term("stretch", std::move(children));
}

std::vector<Term> softmax(const Node& node) {
    std::int64_t axis = node.integer("axis");
    const Shape& in = node.shape;
    std::size_t at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(in.size()) : axis);
    std::int64_t r = product(in, 0, at), c = in[at], s = product(in, at + 1, in.size());
    return {shaped("row_max", {r, c, s}), shaped("row_exp_sum", {r, c, s}), shaped("row_softmax", {r, c, s})};
}

std::vector<Term> terms_of(const Node& node) {
    const std::string& op = node.op;
    const Shape& out = node.shape;
    std::int64_t size = element_count(out);
    auto biased = [&](Term stmt) { return std::vector{node.flag("bias") ? with_epilogue(stmt, "bias") : stmt}; };
    if (op == "conv2d") return biased(conv2d(node));
    if (op == "linear") return biased(shaped("linear", {size / out.back(), out.back(), node.input_shapes[0].back()}));
    if (op == "matmul") {
        std::int64_t m = out[out.size() - 2], n = out.back();
        return {shaped("matmul", {size / (m * n), m, n, node.input_shapes[0].back()})};
    }
    if (op == "batch_norm") return {shaped("channel_scale", {out[0], out[1], product(out, 2, out.size())})};
    if (op == "layer_norm") {
        std::int64_t c = out.back(), r = size / c;
        return {shaped("row_mean", {r, c, 1}), shaped("row_square", {r, c, 1}),
                Term("row_norm", {Term(r), Term(c), Term(fmt::format("{}", node.real("eps")))})};
    }
    if (const ElementFunction* f = find_function(op)) return {f->operands == 1 ? Term("map", {function_term(node), Term(size)}) : elementwise(node)};
    if (const LoopOperator* row = find_loop_operator(op)) {
        std::vector<Term> sizes;
        for (std::int64_t size : sizes_of(*row, node)) sizes.emplace_back(size);
        return {Term(op, std::move(sizes))};
    }
    if (op == "scale") return {Term("scale", {Term(fmt::format("{}", node.real("value"))), Term(size)})};
    if (op == "softmax") return softmax(node);
    if (op == "max_pool") return {pool(node, "max_pool")};
    if (op == "avg_pool") {
        const auto& p = node.integers("padding");
        return {pool(node, node.flag("count_padding") || (p[0] == 0 && p[1] == 0 && p == node.integers("padding_end")) ? "avg_pool" : "avg_pool_inside")};
    }
    if (op == "global_avg_pool") return {shaped("row_mean", {out[0] * out[1], size == 0 ? 0 : element_count(node.input_shapes[0]) / size, 1})};
    if (op.starts_with("reduce_")) {
        const auto& axes = node.integers("axes");
        const Shape& in = node.input_shapes[0];
        const std::size_t first = static_cast<std::size_t>(axes.front()), last = static_cast<std::size_t>(axes.back());
        return {shaped("row_" + op.substr(7), {product(in, 0, first), product(in, first, last + 1), product(in, last + 1, in.size())})};
    }
    return {};
}

}  // namespace

std::vector<Statement> statements_of(const Node& node) {
    std::vector<Statement> all;
    for (const Term& term : terms_of(node)) all.push_back(statement_of(term));
    return all;
}

Term nest_of(const Node& node) {
    std::vector<Statement> all = statements_of(node);
    require(!all.empty(), "only a compute node has a nest");
    if (node.domain.whole()) return nest_of(all[0]);
    return nest_from({all[0].term, schedule_of(all[0], node.domain), restore_word(node.domain.restore)});
}

}  // namespace loopegg
