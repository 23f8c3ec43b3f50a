#include "graph/functions.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"

namespace loopegg {
namespace {

// What is no number stays, whichever of the two it is.
double least(double a, double b) { return a < b || a != a ? a : b; }
double most(double a, double b) { return a > b || a != a ? a : b; }

const std::unordered_map<std::string_view, const ElementFunction*>& by_name() {
    static const auto all = [] {
        std::unordered_map<std::string_view, const ElementFunction*> map;
        for (const ElementFunction& f : element_functions()) map[f.name] = &f;
        return map;
    }();
    return all;
}

const Term& formula_of(const ElementFunction& function) {
    static const auto all = [] {
        std::unordered_map<std::string_view, Term> map;
        for (const ElementFunction& f : element_functions()) map[f.name] = parse_term(f.formula, std::string(f.name));
        return map;
    }();
    return all.at(function.name);
}

// Where the leaf stands among the operands and the parameters; -1: it is a number.
int place_of(const ElementFunction& f, const std::string& leaf) {
    if (leaf == "x") return 0;
    if (leaf == "y") return 1;
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
        if (f.parameters[i].name == leaf) return f.operands + static_cast<int>(i);
    return -1;
}

double value_of(const ElementFunction& f, const Term& formula, std::span<const double> operands) {
    const std::string& text = formula.op().text();
    if (formula.size() == 0) {
        if (int place = place_of(f, text); place >= 0) return operands[static_cast<std::size_t>(place)];
        double number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        return number;
    }
    double values[3];
    for (std::size_t i = 0; i < formula.size(); ++i) values[i] = value_of(f, formula[i], operands);
    return apply_function(text, std::span<const double>(values, formula.size()));
}

}  // namespace

const std::vector<ElementFunction>& element_functions() {
    static const std::vector<ElementFunction> all{
        // clang-format off
        {"relu",         1, {},                                          "(max 0 x)",                                                  "Relu",       "F.relu({x})"},
        {"relu6",        1, {},                                          "(min 6 (max 0 x))",                                          "",           "F.relu6({x})"},
        {"silu",         1, {},                                          "(/ x (+ 1 (exp (- 0 x))))",                                  "Silu",       "F.silu({x})"},
        {"gelu",         1, {},                                          "(* (* x 0.5) (+ 1 (erf (* x 0.70710678118654752440))))",     "",           "F.gelu({x})"},
        {"gelu_tanh",    1, {},                                          "(* (* x 0.5) (+ 1 (tanh (* 0.7978845608028654 (+ x (* 0.044715 (* x (* x x))))))))", "", "F.gelu({x}, approximate='tanh')"},
        {"sigmoid",      1, {},                                          "(/ 1 (+ 1 (exp (- 0 x))))",                                  "Sigmoid",    "torch.sigmoid({x})"},
        {"tanh",         1, {},                                          "(tanh x)",                                                   "Tanh",       "torch.tanh({x})"},
        {"hard_sigmoid", 1, {},                                          "(min 1 (max 0 (+ (* x 0.16666666666666666) 0.5)))",          "",           "F.hardsigmoid({x})"},
        {"hard_swish",   1, {},                                          "(* x (min 1 (max 0 (+ (* x 0.16666666666666666) 0.5))))",    "HardSwish",  "F.hardswish({x})"},
        {"leaky_relu",   1, {{"alpha", 0.01, 0.01}},                     "(+ (max 0 x) (* alpha (min 0 x)))",                          "LeakyRelu",  "F.leaky_relu({x}, {alpha})"},
        {"elu",          1, {{"alpha", 1, 1}},                           "(+ (max 0 x) (* alpha (- (exp (min 0 x)) 1)))",              "Elu",        "F.elu({x}, {alpha})"},
        {"clip",         1, {{"low", 0, 0}, {"high", 1, 1}},             "(min high (max low x))",                                     "",           "torch.clamp({x}, {low}, {high})"},
        {"erf",          1, {},                                          "(erf x)",                                                    "Erf",        "torch.erf({x})"},
        {"exp",          1, {},                                          "(exp x)",                                                    "Exp",        "torch.exp({x})"},
        {"sqrt",         1, {},                                          "(sqrt x)",                                                   "Sqrt",       "torch.sqrt({x})"},
        {"abs",          1, {},                                          "(max (- 0 x) x)",                                            "Abs",        "torch.abs({x})"},
        {"neg",          1, {},                                          "(- 0 x)",                                                    "Neg",        "-{x}"},
        {"reciprocal",   1, {},                                          "(/ 1 x)",                                                    "Reciprocal", "torch.reciprocal({x})"},
        {"floor",        1, {},                                          "(floor x)",                                                  "Floor",      "torch.floor({x})"},
        {"ceil",         1, {},                                          "(- 0 (floor (- 0 x)))",                                      "Ceil",       "torch.ceil({x})"},
        {"softsign",     1, {},                                          "(/ x (+ 1 (max (- 0 x) x)))",                                "Softsign",   "F.softsign({x})"},
        {"add",          2, {},                                          "(+ x y)",                                                    "Add",        "{x} + {y}"},
        {"mul",          2, {},                                          "(* x y)",                                                    "Mul",        "{x} * {y}"},
        {"sub",          2, {},                                          "(- x y)",                                                    "Sub",        "{x} - {y}"},
        {"div",          2, {},                                          "(/ x y)",                                                    "Div",        "{x} / {y}"},
        {"maximum",      2, {},                                          "(max x y)",                                                  "",           "torch.maximum({x}, {y})"},
        {"minimum",      2, {},                                          "(min x y)",                                                  "",           "torch.minimum({x}, {y})"},
        {"prelu",        2, {},                                          "(+ (max 0 x) (* y (min 0 x)))",                              "PRelu",      "torch.where({x} < 0, {x} * {y}, {x})"},
        // clang-format on
    };
    return all;
}

const ElementFunction* find_function(std::string_view name) {
    auto found = by_name().find(name);
    return found == by_name().end() ? nullptr : found->second;
}

const ElementFunction* find_onnx_function(std::string_view onnx) {
    for (const ElementFunction& f : element_functions())
        if (!onnx.empty() && f.onnx == onnx) return &f;
    return nullptr;
}

bool is_plain_function(std::string_view name) {
    const ElementFunction* f = find_function(name);
    return f && f->operands == 1 && f->parameters.empty();
}

double basic_function(std::string_view f, std::span<const double> x) {
    if (f == "+") return x[0] + x[1];
    if (f == "-") return x[0] - x[1];
    if (f == "*") return x[0] * x[1];
    if (f == "/") return x[0] / x[1];
    if (f == "max") return most(x[0], x[1]);
    if (f == "min") return least(x[0], x[1]);
    if (f == "exp") return std::exp(x[0]);
    if (f == "sqrt") return std::sqrt(x[0]);
    if (f == "tanh") return std::tanh(x[0]);
    if (f == "erf") return std::erf(x[0]);
    if (f == "floor") return std::floor(x[0]);
    if (f == "copy") return x[0];
    if (f == "square") return x[0] * x[0];
    throw UserError("unknown scalar function '" + std::string(f) + "'");
}

double apply_function(std::string_view name, std::span<const double> operands) {
    if (name == "relu") return operands[0] < 0 ? 0 : operands[0];
    if (name == "prelu") return operands[0] < 0 ? operands[0] * operands[1] : operands[0];   // a slope that is no number is not looked at above zero
    if (const ElementFunction* f = find_function(name); f && formula_of(*f).op().text() != name) return value_of(*f, formula_of(*f), operands);
    return basic_function(name, operands);
}

Term expanded(const ElementFunction& function, const std::vector<Term>& operands) {
    std::function<Term(const Term&)> put = [&](const Term& formula) -> Term {
        if (formula.size() == 0) {
            const int place = place_of(function, formula.op().text());
            return place < 0 ? formula : operands.at(static_cast<std::size_t>(place));
        }
        std::vector<Term> children;
        for (const Term& child : formula.children()) children.push_back(put(child));
        return Term(formula.op(), std::move(children));
    };
    return put(formula_of(function));
}

Term function_term(const Node& node) {
    const ElementFunction* f = find_function(node.op);
    require(f != nullptr, "a node of an element function is expected");
    // Two operands under one basic function are that function: "+", not "add".
    const Term& formula = formula_of(*f);
    if (f->operands == 2 && formula.size() == 2 && formula[0].size() == 0 && formula[1].size() == 0) return Term(formula.op());
    std::vector<Term> parameters;
    for (const FunctionParameter& p : f->parameters) parameters.emplace_back(fmt::format("{}", node.real(p.name)));
    return Term(f->name, std::move(parameters));
}

}  // namespace loopegg
