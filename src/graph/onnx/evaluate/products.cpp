// Products of matrices.
#include <algorithm>
#include <map>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

OnnxTensor product(OnnxTensor a, OnnxTensor b) {
    if (a.dims.empty() || b.dims.empty()) problem("a product needs at least one dimension");
    const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
    if (row) a.dims.insert(a.dims.begin(), 1);
    if (column) b.dims.push_back(1);
    const std::int64_t m = a.dims[a.dims.size() - 2], k = a.dims.back(), n = b.dims.back();
    if (b.dims[b.dims.size() - 2] != k) problem("the inner dimensions differ");
    const Ints outer_a(a.dims.begin(), a.dims.end() - 2), outer_b(b.dims.begin(), b.dims.end() - 2), outer = broadcast(outer_a, outer_b);
    Ints dims = outer;
    dims.push_back(m), dims.push_back(n);
    OnnxTensor y = make(element_type(a), dims);
    expect_work(static_cast<double>(size_of(y)) * static_cast<double>(k));
    each(outer, {broadcast_strides(outer_a, outer), broadcast_strides(outer_b, outer)}, [&](std::size_t p, const Ints& o) {
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (std::int64_t l = 0; l < k; ++l) sum += number(a, at((o[0] * m + i) * k + l)) * number(b, at((o[1] * k + l) * n + j));
                set(y, at((static_cast<std::int64_t>(p) * m + i) * n + j), sum);
            }
    });
    if (column) dims.pop_back();
    if (row) dims.erase(dims.end() - (column ? 1 : 2));
    y.dims = dims;
    return y;
}

Outputs matmul(const OnnxNode&, Inputs in, std::int64_t) { return {product(need(in, 0), need(in, 1))}; }

OnnxTensor turned(const OnnxTensor& t) {
    if (t.dims.size() != 2) problem("a matrix is expected");
    OnnxTensor out = make(element_type(t), {t.dims[1], t.dims[0]});
    for (std::int64_t i = 0; i < t.dims[0]; ++i)
        for (std::int64_t j = 0; j < t.dims[1]; ++j) copy_element(out, at(j * t.dims[0] + i), t, at(i * t.dims[1] + j));
    return out;
}

Outputs gemm(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor a = attr_int(node, "transA", 0) ? turned(need(in, 0)) : need(in, 0), b = attr_int(node, "transB", 0) ? turned(need(in, 1)) : need(in, 1);
    if (a.dims.size() != 2 || b.dims.size() != 2) problem("matrices are expected");
    const double alpha = attr_float(node, "alpha", 1), beta = attr_float(node, "beta", 1);
    OnnxTensor y = product(a, b);
    const OnnxTensor* c = maybe(in, 2);
    if (c && broadcast(c->dims, y.dims) != y.dims) problem("its bias does not fit");
    each(y.dims, {c ? broadcast_strides(c->dims, y.dims) : Ints(2, 0)},
         [&](std::size_t i, const Ints& o) { set(y, i, alpha * number(y, i) + (c ? beta * number(*c, at(o[0])) : 0)); });
    return {y};
}

Outputs einsum(const OnnxNode& node, Inputs in, std::int64_t) {
    std::string equation;
    for (char c : attr_text(node, "equation", ""))
        if (c != ' ') equation += c;
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos || equation.find('.') != std::string::npos) problem("an einsum without an arrow or with an ellipsis is not supported");
    std::vector<std::string> terms(1);
    for (char c : equation.substr(0, arrow))
        if (c == ',')
            terms.emplace_back();
        else
            terms.back() += c;
    const std::string result = equation.substr(arrow + 2);
    if (terms.size() != in.size()) problem("an einsum with another number of inputs");
    std::map<char, std::int64_t> extent;
    std::string order = result;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const OnnxTensor& t = need(in, i);
        if (terms[i].size() != t.dims.size()) problem("an einsum term of another number of dimensions");
        for (std::size_t d = 0; d < t.dims.size(); ++d) {
            auto [it, fresh] = extent.emplace(terms[i][d], t.dims[d]);
            if (!fresh && it->second != t.dims[d]) problem("einsum dimensions that do not match");
            if (order.find(terms[i][d]) == std::string::npos) order += terms[i][d];
        }
    }
    Ints dims, all;
    for (char c : result) {
        if (!extent.contains(c) || std::count(result.begin(), result.end(), c) > 1) problem("an einsum result that is not supported");
        dims.push_back(extent[c]);
    }
    for (char c : order) all.push_back(extent[c]);
    OnnxTensor y = make(element_type(need(in, 0)), dims);
    auto walk = [&](const std::string& term, const Ints& shape) {
        const Ints own = strides_of(shape);
        Ints strides(order.size(), 0);
        for (std::size_t d = 0; d < term.size(); ++d) strides[order.find(term[d])] += own[d];
        return strides;
    };
    std::vector<Ints> strides{walk(result, dims)};
    for (std::size_t i = 0; i < in.size(); ++i) strides.push_back(walk(terms[i], in[i]->dims));
    std::vector<double> sums(size_of(y), 0);
    each(all, strides, [&](std::size_t, const Ints& o) {
        double value = 1;
        for (std::size_t i = 0; i < in.size(); ++i) value *= number(*in[i], at(o[i + 1]));
        sums[at(o[0])] += value;
    });
    for (std::size_t i = 0; i < sums.size(); ++i) set(y, i, sums[i]);
    return {y};
}

}  // namespace

Operation product_operation(const std::string& op) {
    static const std::map<std::string, Operation> all{{"MatMul", matmul}, {"Gemm", gemm}, {"Einsum", einsum}};
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
