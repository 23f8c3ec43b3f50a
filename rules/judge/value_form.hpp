// What a VALUE of a rule computes at one element of its output, as a scalar term over what it reads.
//
// A nest that is a variable, or that sums up, is one unknown function of its operands: its value at the element is a leaf. What follows it element by
// element is written out. In a value, every nest without `restore` computes all of its outputs, so a function of each element is done to every element.
#pragma once
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "rules/rule.hpp"

namespace loopegg {

struct NoValueForm : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// One operand of a value, or all those of a nest that is a variable.
struct ValueOperand {
    std::string kind;    // "element", "channel of ?n", "operands of ?n": equal where sizes are
    std::string name;    // its leaf: "#3"
    std::string suffix;  // of an epilogue's: "bias", "scale", "shift", "add"
};

struct ValueForm {
    std::vector<ValueOperand> operands;  // in the order in which the value takes them
    Term element;                        // scalar operators over (leaf ...), numbers and variables
};

class ValueReader {
public:
    explicit ValueReader(const Rule& rule);

    ValueForm left();
    ValueForm right();  // after the left side, whose nests it may use

private:
    struct Shape {
        std::string key;    // of the output: "?n", "(?b ?c ?x)"
        bool flat = false;  // one dimension: its channels are its elements
    };
    struct Read {
        ValueForm form;
        Shape shape;
    };
    struct Input {
        std::string buffer;
        Read value;
        bool then = false;  // its operands come first; else in the place of the buffer
    };

    Read value(const Term& v);
    Read nest(const Term& term, const Input* input);
    Read base(const Term& statement, const Term& schedule, const Term& restore, const Input* input);
    Read pointwise(const Term& statement, const Term& schedule, const Term& restore, const Input* input);
    Read moved(const Term& order, const Term& schedule, const Term& restore, const Input* input);
    Read ordered(const Term& order, const Term& schedule, const Term& restore, const Input* input);
    Read unknown(const Term& statement, const std::string& key, const Input* input);
    void epilogue(const Term& e, Read& of);
    Read prepared(const Term& how, const Term& inner);
    void fold_bias(Read& of);
    void fold_scale(Read& of);
    std::size_t first_epilogue_operand(const Read& of, const char* suffix) const;
    Term fresh(std::vector<ValueOperand>& into, const std::string& kind, const std::string& suffix);
    std::string channel(const Shape& shape) const;
    bool has_guard(const std::string& text) const;
    bool sums_weights(const Term& statement) const;
    void note_preparations(const Term& pattern);
    void check_schedule(const std::string& axes, const Term& schedule, const Term& restore);
    const ChoiceCall* order_choice(const Term& number) const;

    const Rule& rule_;
    bool on_right_ = false;
    int operands_ = 0;
    std::map<std::string, std::string> schedules_;  // of the left side's functions of elements: the axes, by schedule
    std::set<std::string> preparations_;            // "?h ?v" of (prepare ?h ?v) on the left
    std::map<std::string, Term> plain_;             // nests that sum weighted products and do nothing after it, by the leaf of their operands
};

}  // namespace loopegg
