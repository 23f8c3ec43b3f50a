#include "graph/functions.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
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

// Where the leaf is among the operands and the parameters; -1: it is a number.
int place_of(const ElementFunction& f, const std::string& leaf) {
    if (leaf == "x") return 0;
    if (leaf == "y") return 1;
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
        if (f.parameters[i].name == leaf) return f.operands + static_cast<int>(i);
    return -1;
}

struct Basic {
    std::string_view name;
    double (*apply)(const double* x);
};

const Basic basics[] = {
    {"+", [](const double* x) { return x[0] + x[1]; }},
    {"-", [](const double* x) { return x[0] - x[1]; }},
    {"*", [](const double* x) { return x[0] * x[1]; }},
    {"/", [](const double* x) { return x[0] / x[1]; }},
    {"max", [](const double* x) { return most(x[0], x[1]); }},
    {"min", [](const double* x) { return least(x[0], x[1]); }},
    {"exp", [](const double* x) { return std::exp(x[0]); }},
    {"sqrt", [](const double* x) { return std::sqrt(x[0]); }},
    {"tanh", [](const double* x) { return std::tanh(x[0]); }},
    {"erf", [](const double* x) { return std::erf(x[0]); }},
    {"floor", [](const double* x) { return std::floor(x[0]); }},
    {"round", [](const double* x) { return static_cast<double>(std::nearbyint(static_cast<float>(x[0]))); }},
    {"copy", [](const double* x) { return x[0]; }},
    {"square", [](const double* x) { return x[0] * x[0]; }},
    {"prelu", [](const double* x) { return x[0] < 0 ? x[0] * x[1] : x[0]; }},  // above zero nobody looks at a slope that is no number
};

const Basic* find_basic(std::string_view name) {
    auto row = std::find_if(std::begin(basics), std::end(basics), [&](const Basic& b) { return b.name == name; });
    return row == std::end(basics) ? nullptr : row;
}

const Basic& basic_of(std::string_view name) {
    const Basic* found = find_basic(name);
    if (!found) throw UserError("unknown scalar function '" + std::string(name) + "'");
    return *found;
}

}  // namespace

const std::vector<ElementFunction>& element_functions() {
    static const std::vector<FunctionParameter> quantized_range{{"scale", 1, 1}, {"zero", 0, 0}, {"low", -128, -128}, {"high", 127, 127}};
    static const std::vector<ElementFunction> all{
        {"relu", 1, {}, "(max 0 x)", "Relu", "F.relu({x})"},
        {"relu6", 1, {}, "(min 6 (max 0 x))", "", "F.relu6({x})"},
        {"silu", 1, {}, "(/ x (+ 1 (exp (- 0 x))))", "Silu", "F.silu({x})"},
        {"gelu", 1, {}, "(* (* x 0.5) (+ 1 (erf (* x 0.70710678118654752440))))", "", "F.gelu({x})"},
        {"gelu_tanh", 1, {}, "(* (* x 0.5) (+ 1 (tanh (* 0.7978845608028654 (+ x (* 0.044715 (* x (* x x))))))))", "", "F.gelu({x}, approximate='tanh')"},
        {"sigmoid", 1, {}, "(/ 1 (+ 1 (exp (- 0 x))))", "Sigmoid", "torch.sigmoid({x})"},
        {"tanh", 1, {}, "(tanh x)", "Tanh", "torch.tanh({x})"},
        {"hard_sigmoid", 1, {}, "(min 1 (max 0 (+ (* x 0.16666666666666666) 0.5)))", "", "F.hardsigmoid({x})"},
        {"hard_swish", 1, {}, "(* x (min 1 (max 0 (+ (* x 0.16666666666666666) 0.5))))", "HardSwish", "F.hardswish({x})"},
        {"leaky_relu", 1, {{"alpha", 0.01, 0.01}}, "(+ (max 0 x) (* alpha (min 0 x)))", "LeakyRelu", "F.leaky_relu({x}, {alpha})"},
        {"elu", 1, {{"alpha", 1, 1}}, "(+ (max 0 x) (* alpha (- (exp (min 0 x)) 1)))", "Elu", "F.elu({x}, {alpha})"},
        {"clip", 1, {{"low", 0, 0}, {"high", 1, 1}}, "(min high (max low x))", "", "torch.clamp({x}, {low}, {high})"},
        {"erf", 1, {}, "(erf x)", "Erf", "torch.erf({x})"},
        {"exp", 1, {}, "(exp x)", "Exp", "torch.exp({x})"},
        {"sqrt", 1, {}, "(sqrt x)", "Sqrt", "torch.sqrt({x})"},
        {"abs", 1, {}, "(max (- 0 x) x)", "Abs", "torch.abs({x})"},
        {"neg", 1, {}, "(- 0 x)", "Neg", "-{x}"},
        {"reciprocal", 1, {}, "(/ 1 x)", "Reciprocal", "torch.reciprocal({x})"},
        {"floor", 1, {}, "(floor x)", "Floor", "torch.floor({x})"},
        {"ceil", 1, {}, "(- 0 (floor (- 0 x)))", "Ceil", "torch.ceil({x})"},
        {"round", 1, {}, "(round x)", "Round", "torch.round({x})"},
        // Numbers of a few bits, as ONNX's QuantizeLinear defines them, and what they are as values again.
        {"quantize", 1, quantized_range, "(min high (max low (+ (round (/ x scale)) zero)))", "",
         "torch.clamp(torch.round({x} / {scale}) + {zero}, {low}, {high})"},
        {"fake_quantize", 1, quantized_range, "(* scale (- (min high (max low (+ (round (/ x scale)) zero))) zero))", "",
         "{x} + ((torch.clamp(torch.round({x} / {scale}) + {zero}, {low}, {high}) - {zero}) * {scale} - {x}).detach()"},
        {"softsign", 1, {}, "(/ x (+ 1 (max (- 0 x) x)))", "Softsign", "F.softsign({x})"},
        {"add", 2, {}, "(+ x y)", "Add", "{x} + {y}"},
        {"mul", 2, {}, "(* x y)", "Mul", "{x} * {y}"},
        {"sub", 2, {}, "(- x y)", "Sub", "{x} - {y}"},
        {"div", 2, {}, "(/ x y)", "Div", "{x} / {y}"},
        {"maximum", 2, {}, "(max x y)", "", "torch.maximum({x}, {y})"},
        {"minimum", 2, {}, "(min x y)", "", "torch.minimum({x}, {y})"},
        {"prelu", 2, {}, "(+ (max 0 x) (* y (min 0 x)))", "PRelu", "torch.where({x} < 0, {x} * {y}, {x})"},
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

void ReadyFunction::add(const Term& formula, std::span<const std::string_view> operands) {
    const std::string& text = formula.op().text();
    if (formula.size() == 0) {
        const auto named = std::find(operands.begin(), operands.end(), text);
        const auto number = number_in<double>(text);
        require(named != operands.end() || number, "a leaf of a formula is an operand or a number");
        steps_.push_back({.place = named == operands.end() ? -1 : static_cast<int>(named - operands.begin()), .number = number.value_or(0)});
        return;
    }
    const Basic* basic = find_basic(text);
    if (const ElementFunction* f = basic ? nullptr : find_function(text))
        return add(expanded(*f, {formula.children().begin(), formula.children().end()}), operands);
    for (const Term& child : formula.children()) add(child, operands);
    steps_.push_back({.apply = basic_of(text).apply, .takes = formula.size()});
}

ReadyFunction::ReadyFunction(const Term& formula, std::span<const std::string_view> operands) {
    add(formula, operands);
    require(steps_.size() <= max_steps, "a formula is longer than its stack");
}

ReadyFunction::ReadyFunction(const ElementFunction& function) {
    std::vector<std::string_view> names{"x", "y"};
    names.resize(static_cast<std::size_t>(function.operands));
    const std::vector<Term> operands(names.begin(), names.end());
    for (const FunctionParameter& p : function.parameters) names.push_back(p.name);
    *this = ReadyFunction(find_basic(function.name) ? Term(function.name, operands) : formula_of(function), names);
}

double ReadyFunction::operator()(const double* operands) const {
    double stack[max_steps];
    double* top = stack;  // behind the last value
    for (const Step& step : steps_) {
        top -= step.takes;
        *top = step.apply ? step.apply(top) : step.place >= 0 ? operands[step.place] : step.number;
        ++top;
    }
    return *stack;
}

const ReadyFunction& ready_function(const ElementFunction& function) {
    static const auto all = [] {
        std::unordered_map<std::string_view, ReadyFunction> map;
        for (const ElementFunction& f : element_functions()) map.emplace(f.name, ReadyFunction(f));
        return map;
    }();
    return all.at(function.name);
}

double apply_function(std::string_view name, std::span<const double> operands) {
    if (const ElementFunction* f = find_function(name)) return ready_function(*f)(operands.data());
    return basic_of(name).apply(operands.data());
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
