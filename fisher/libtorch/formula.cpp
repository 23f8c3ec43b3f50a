#include "fisher/libtorch/formula.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"
#include "graph/functions.hpp"

namespace loopegg {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Basic {
    std::string_view name;
    at::Tensor (*apply)(const Tensors& x);
};

const Basic basics[] = {
    {"+", [](const Tensors& x) { return x[0] + x[1]; }},
    {"-", [](const Tensors& x) { return x[0] - x[1]; }},
    {"*", [](const Tensors& x) { return x[0] * x[1]; }},
    {"/", [](const Tensors& x) { return x[0] / x[1]; }},
    {"max", [](const Tensors& x) { return at::maximum(x[0], x[1]); }},
    {"min", [](const Tensors& x) { return at::minimum(x[0], x[1]); }},
    {"exp", [](const Tensors& x) { return at::exp(x[0]); }},
    {"sqrt", [](const Tensors& x) { return at::sqrt(x[0]); }},
    {"tanh", [](const Tensors& x) { return at::tanh(x[0]); }},
    {"erf", [](const Tensors& x) { return at::erf(x[0]); }},
    {"floor", [](const Tensors& x) { return at::floor(x[0]); }},
};

}  // namespace

at::Tensor formula_value(const Term& formula, const at::Tensor& like, const std::function<at::Tensor(const std::string& name)>& leaf) {
    const std::string& text = formula.op().text();
    if (formula.size() == 0) {
        const auto number = number_in<double>(text);
        return number ? at::scalar_tensor(*number, like.options()) : leaf(text);
    }
    const auto basic = std::find_if(std::begin(basics), std::end(basics), [&](const Basic& b) { return b.name == text; });
    if (basic == std::end(basics)) {
        const ElementFunction* f = find_function(text);
        require(f != nullptr, "a formula is made of basic functions and element functions");
        return formula_value(expanded(*f, {formula.children().begin(), formula.children().end()}), like, leaf);
    }
    Tensors parts;
    for (const Term& child : formula.children()) parts.push_back(formula_value(child, like, leaf));
    return basic->apply(parts);
}

}  // namespace loopegg
