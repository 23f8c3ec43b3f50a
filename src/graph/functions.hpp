// Functions of single elements as data: a row here is an operator of networks, with its loop nest and its LibTorch, ONNX and Python forms.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct FunctionParameter {
    std::string_view name;  // in our files and in ONNX alike
    double fallback;        // in our files
    double in_onnx;         // what ONNX takes when the file does not say
};

struct ElementFunction {
    std::string_view name;
    int operands;  // x, or x and y, whose dimensions of 1 stretch
    std::vector<FunctionParameter> parameters;
    std::string_view formula;  // over x, y, the parameters, numbers, and the basic functions
    std::string_view onnx;     // the ONNX operator of this meaning; empty where importer and exporter have code of their own for it
    std::string_view python;   // PyTorch's words, with {x}, {y} and parameters in braces
};

const std::vector<ElementFunction>& element_functions();
const ElementFunction* find_function(std::string_view name);       // null when there is none
const ElementFunction* find_onnx_function(std::string_view onnx);  // null when there is none

// A function of one operand and no parameters: a nest can take it in after its sums.
bool is_plain_function(std::string_view name);

// A function as steps over a stack, for loops over many elements. Formulas: + - * / max min exp sqrt tanh erf floor, round (of a float32, ties to even).
class ReadyFunction {
public:
    explicit ReadyFunction(const ElementFunction& function);
    // A formula over operands of these names, over numbers, basic functions and element functions.
    ReadyFunction(const Term& formula, std::span<const std::string_view> operands);
    double operator()(const double* operands) const;  // the operands, then the parameters

private:
    void add(const Term& formula, std::span<const std::string_view> operands);

    static constexpr std::size_t max_steps = 32;
    struct Step {
        double (*apply)(const double*) = nullptr;  // is called on `takes` values; null: the step puts a value on the stack
        std::size_t takes = 0;
        int place = -1;  // of the value among the operands; -1: the value is `number`
        double number = 0;
    };
    std::vector<Step> steps_;
};

const ReadyFunction& ready_function(const ElementFunction& function);

// Computes any function of one or two operands, whose parameters follow the operands. Functions that formulas are made of can be named too.
// Throws UserError for an unknown function.
double apply_function(std::string_view name, std::span<const double> operands);

// The formula with its operands and parameters put in.
Term expanded(const ElementFunction& function, const std::vector<Term>& operands);

// The function of a node as a term: its name, or (name parameters...).
Term function_term(const Node& node);

}  // namespace loopegg
