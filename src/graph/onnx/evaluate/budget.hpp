// How many elements an evaluation may make: a short file could ask for gigabytes otherwise.
#pragma once
#include <cstdint>

namespace loopegg {

// While it lives, what this thread evaluates may make so many elements together, intermediate ones included, and throws EvaluationProblem where it would
// make more. Without a budget, each tensor has a limit of its own.
class ElementBudget {
public:
    explicit ElementBudget(std::int64_t elements);
    ~ElementBudget();
    ElementBudget(const ElementBudget&) = delete;
    ElementBudget& operator=(const ElementBudget&) = delete;

private:
    std::int64_t outer_left_, outer_granted_;
};

}  // namespace loopegg
