#include "rules/judge/value_form.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "egraph/rewrite.hpp"
#include "graph/functions.hpp"

namespace loopegg {
namespace {

bool is_plain_variable(const Term& t) { return t.size() == 0 && is_variable(t.op()); }

Term leaf(const std::string& name, const Term& of) { return Term("leaf", {Term(name), of}); }
Term leaf(const std::string& name, const std::string& where) { return leaf(name, Term(where)); }

// What each element is after a move: the same function of elements that were moved. A move that keeps the order of all dimensions is none.
Term moved_element(const Term& element, const std::string& how) {
    if (how.starts_with("1234 ")) return element;
    if (element.op().text() == "leaf") return leaf("moved by " + how, element);
    std::vector<Term> children;
    for (const Term& child : element.children()) children.push_back(moved_element(child, how));
    return Term(element.op(), std::move(children));
}

template <class T>
void append(std::vector<T>& into, const std::vector<T>& more) {
    into.insert(into.end(), more.begin(), more.end());
}

}  // namespace

ValueReader::ValueReader(const Rule& rule) : rule_(rule) { note_preparations(rule.left[0].term); }

ValueForm ValueReader::left() { return value(rule_.left[0].term).form; }
ValueForm ValueReader::right() {
    on_right_ = true;
    return value(rule_.right[0].term).form;
}

void ValueReader::note_preparations(const Term& pattern) {
    if (pattern.is("prepare", 2)) preparations_.insert(to_string(pattern[0]) + " " + to_string(pattern[1]));
    for (const Term& child : pattern.children()) note_preparations(child);
}

bool ValueReader::has_guard(const std::string& text) const {
    return std::any_of(rule_.guards.begin(), rule_.guards.end(), [&](const GuardCall& g) { return g.text == text; });
}

bool ValueReader::sums_weights(const Term& statement) const {
    if (is_plain_variable(statement)) return has_guard("(weighted-sum " + to_string(statement) + ")");
    return statement.op().text() == "conv2d" || statement.op().text() == "linear";
}

Term ValueReader::fresh(std::vector<ValueOperand>& into, const std::string& kind, const std::string& suffix) {
    into.push_back({kind, "#" + std::to_string(operands_++), suffix});
    return leaf(into.back().name, kind);
}

std::string ValueReader::channel(const Shape& shape) const { return shape.flat ? "element" : "channel of " + shape.key; }

ValueReader::Read ValueReader::value(const Term& v) {
    if (v.is("site", 1)) return nest(v[0], nullptr);
    if (v.is("then", 2)) {
        const Input input{"I", value(v[0]), true};
        return nest(v[1], &input);
    }
    if (v.is("feed", 3)) {
        const Input input{to_string(v[0]), value(v[1])};
        return nest(v[2], &input);
    }
    if (v.is("prepare", 2)) return prepared(v[0], v[1]);
    if (!is_plain_variable(v)) throw NoValueForm("'" + to_string(v) + "' is no value that the judge knows");
    Read made;
    made.shape.key = to_string(v);
    made.form.element = fresh(made.form.operands, "operands of " + to_string(v), "");
    return made;
}

ValueReader::Read ValueReader::nest(const Term& term, const Input* input) {
    if (term.is("restore", 2)) {
        if (!term[1].is("nest", 2)) throw NoValueForm("'" + to_string(term) + "' is no nest that the judge knows");
        return base(term[1][0], term[1][1], term[0], input);
    }
    if (term.is("nest", 2)) return base(term[0], term[1], {}, input);
    if (!is_plain_variable(term)) throw NoValueForm("'" + to_string(term) + "' is no nest that the judge knows");
    return unknown(term, to_string(term), input);
}

// A function of some inputs that the judge knows no more of. Its other operands come in their order around the input.
ValueReader::Read ValueReader::unknown(const Term& statement, const std::string& key, const Input* input) {
    Read made;
    made.shape.key = to_string(statement);
    const std::string group = "operands of " + to_string(statement);
    if (!input) {
        made.form.element = fresh(made.form.operands, group, "");
        made.form.element = Term("leaf", {Term(key), made.form.element});
        return made;
    }
    std::vector<Term> parts{Term(key), Term(input->buffer), input->value.form.element};
    if (input->then) {
        append(made.form.operands, input->value.form.operands);
        parts.push_back(fresh(made.form.operands, group + " but I", ""));
    } else {
        parts.push_back(fresh(made.form.operands, group + " before " + input->buffer, ""));
        append(made.form.operands, input->value.form.operands);
        parts.push_back(fresh(made.form.operands, group + " after " + input->buffer, ""));
    }
    made.form.element = Term("leaf", std::move(parts));
    return made;
}

ValueReader::Read ValueReader::base(const Term& statement, const Term& schedule, const Term& restore, const Input* input) {
    if (statement.is("epilogue", 2)) {
        Read made = base(statement[1], schedule, restore, input);
        epilogue(statement[0], made);
        return made;
    }
    const std::string& op = statement.op().text();
    if (op == "layout") throw NoValueForm("layouts are not judged in rules over sites");
    if (op == "order") return statement[2].op().text() == "move" ? moved(statement, schedule, restore, input) : ordered(statement, schedule, restore, input);
    if (op == "map" || op == "zip" || op == "scale" || op == "channel_scale") return pointwise(statement, schedule, restore, input);
    const std::string key = to_string(statement) + " " + to_string(schedule) + (restore ? " " + to_string(restore) : "");
    Read made = unknown(statement, key, input);
    if (sums_weights(statement) && !restore && !input) plain_[made.form.operands[0].name] = made.form.element;
    return made;
}

// Each element of the output is a function of the same elements of the inputs, so how the nest runs does not matter.
ValueReader::Read ValueReader::pointwise(const Term& s, const Term& schedule, const Term& restore, const Input* input) {
    const std::string& op = s.op().text();
    std::string axes;
    for (std::size_t i = op == "channel_scale" ? 0 : 1; i < s.size(); ++i) axes += " " + to_string(s[i]);
    check_schedule(axes, schedule, restore);
    if (input && !input->then) throw NoValueForm("a value is fed into a function of each element");
    Read made;
    made.shape.flat = op != "channel_scale";
    made.shape.key = op == "channel_scale" ? fmt::format("({} {} {})", to_string(s[0]), to_string(s[1]), to_string(s[2])) : to_string(s[1]);
    Term x;
    if (input)
        made.form.operands = input->value.form.operands, x = input->value.form.element;
    else
        x = fresh(made.form.operands, "element", "");
    if (op == "map") {
        std::vector<Term> operands{x};
        operands.insert(operands.end(), s[0].children().begin(), s[0].children().end());
        made.form.element = s[0].op().text() == "copy" ? x : Term(s[0].op(), std::move(operands));
    } else if (op == "scale") {
        made.form.element = Term("*", {x, s[0]});
    } else if (op == "zip") {
        made.form.element = Term(s[0].op(), {x, fresh(made.form.operands, "element", "")});
    } else {
        // Where the input has as many images, channels and elements, its channels are the ones that are scaled.
        std::string channels = channel(made.shape);
        const std::string inner = input ? input->value.shape.key : "";
        if (input && has_guard(fmt::format("(output-shape {} {} {} {})", inner, to_string(s[0]), to_string(s[1]), to_string(s[2]))))
            channels = channel(input->value.shape), made.shape = input->value.shape;
        const Term a = fresh(made.form.operands, channels, ""), b = fresh(made.form.operands, channels, "");
        made.form.element = Term("+", {Term("*", {x, a}), b});
    }
    return made;
}

void ValueReader::check_schedule(const std::string& axes, const Term& schedule, const Term& restore) {
    if (restore) throw NoValueForm("the outputs of a function of each element come back in a way that the judge does not know");
    const std::string key = to_string(schedule);
    if (!is_plain_variable(schedule)) throw NoValueForm("the schedule of a function of each element is no variable");
    if (!on_right_) {
        auto [at, fresh] = schedules_.emplace(key, axes);
        if (!fresh && at->second != axes) throw NoValueForm("'" + key + "' schedules two nests");
    } else if (const auto at = schedules_.find(key); at == schedules_.end() || at->second != axes) {
        throw NoValueForm("'" + key + "' is no schedule of such a nest");
    }
}

// (order I P (move A B C D)): the elements of the input in another order.
ValueReader::Read ValueReader::moved(const Term& order, const Term& schedule, const Term& restore, const Input* input) {
    const Term& move = order[2];
    if (to_string(order[0]) != "I" || move.size() != 4) throw NoValueForm("'" + to_string(order) + "' is no move that the judge knows");
    const std::string how = fmt::format("{} {} {} {} {}", to_string(order[1]), to_string(move[0]), to_string(move[1]), to_string(move[2]), to_string(move[3]));
    check_schedule(how, schedule, restore);
    if (input && !input->then) throw NoValueForm("a value is fed into a move");
    Read made;
    made.shape.key = "move " + how;
    if (input)
        made.form = input->value.form;
    else
        made.form.element = fresh(made.form.operands, "moved by " + how, "");
    made.form.element = moved_element(made.form.element, how);
    return made;
}

const ChoiceCall* ValueReader::order_choice(const Term& number) const {
    for (const ChoiceCall& c : rule_.choices)
        if (c.variable == number.op() && c.list && c.list->name == "orders" && c.arguments.size() == 7) return &c;
    return nullptr;
}

// (order B ?q ?n), where ?q is the order of B's dimensions with which a move is left out (the list `orders`): ?n writes or reads what the move would move.
ValueReader::Read ValueReader::ordered(const Term& order, const Term& schedule, const Term& restore, const Input* input) {
    const ChoiceCall* choice = order_choice(order[1]);
    const std::string buffer = to_string(order[0]);
    if (!choice || input || restore) throw NoValueForm("an order that is no choice from the list 'orders' is not judged");
    if (choice->arguments[0].text != to_string(order[2]) || choice->arguments[1].text != buffer)
        throw NoValueForm("the order is one of another statement or buffer");
    std::string how;
    for (std::size_t i = 2; i < 7; ++i) how += (how.empty() ? "" : " ") + choice->arguments[i].text;
    if (buffer == "O") {
        Read made = base(order[2], schedule, restore, nullptr);
        made.shape.key = "move " + how;
        made.form.element = moved_element(made.form.element, how);
        return made;
    }
    if (is_variable(order[0].op()) && !std::any_of(schedules_.begin(), schedules_.end(), [&](const auto& s) { return s.second == how; }))
        throw NoValueForm("the buffer '" + buffer + "' may be the output");
    Input moved_input{buffer, {}, false};
    moved_input.value.form.element = fresh(moved_input.value.form.operands, "moved by " + how, "");
    moved_input.value.form.element = moved_element(moved_input.value.form.element, how);
    return base(order[2], schedule, restore, &moved_input);
}

void ValueReader::epilogue(const Term& e, Read& of) {
    Term& x = of.form.element;
    const std::string& word = e.op().text();
    const std::string channels = channel(of.shape);
    auto& operands = of.form.operands;
    if (e.is("times", 1)) {
        x = Term("*", {x, e[0]});
    } else if (word == "bias") {
        const Term b = fresh(operands, channels, "bias");
        x = Term("+", {x, b});
    } else if (word == "scale_shift") {
        const Term a = fresh(operands, channels, "scale"), b = fresh(operands, channels, "shift");
        x = Term("+", {Term("*", {x, a}), b});
    } else if (word == "add") {
        const Term b = fresh(operands, "element", "add");
        x = Term("+", {x, b});
    } else if (is_plain_variable(e)) {
        if (!has_guard("(epilogue-function " + word + ")"))
            throw NoValueForm("no guard says that " + word + " may be an epilogue: (epilogue-function " + word + ")");
        x = Term(e.op(), {x});
    } else if (e.size() == 0 && is_plain_function(word)) {
        x = Term(e.op(), {x});
    } else {
        throw NoValueForm("'" + to_string(e) + "' is no epilogue");
    }
}

// The place of the first constant of an epilogue. Nests that may have epilogues of their own come before it.
std::size_t ValueReader::first_epilogue_operand(const Read& of, const char* suffix) const {
    for (std::size_t i = 0; i < of.form.operands.size(); ++i) {
        const ValueOperand& o = of.form.operands[i];
        if (!o.suffix.empty()) {
            if (o.suffix != suffix) break;
            return i;
        }
        if (o.kind.starts_with("operands of ") && !plain_.contains(o.name))
            throw NoValueForm("whether '" + o.kind.substr(12) + "' has constants of its own is not known: (weighted-sum " + o.kind.substr(12) + ")");
    }
    throw NoValueForm(fmt::format("there is no {} to prepare", suffix));
}

void ValueReader::fold_bias(Read& of) {
    auto& operands = of.form.operands;
    const std::size_t at = first_epilogue_operand(of, "scale");
    if (at + 1 >= operands.size()) throw NoValueForm("there is no shift to prepare");
    const ValueOperand scale = operands[at], shift = operands[at + 1];
    const ValueOperand bias{scale.kind, "#" + std::to_string(operands_++), "bias"};
    operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(at), bias);
    const Term b = leaf(shift.name, shift.kind);
    of.form.element = with_replaced(of.form.element, b, Term("+", {b, Term("*", {leaf(bias.name, bias.kind), leaf(scale.name, scale.kind)})}));
}

// Weights times the scale of their output channel make sums times that scale.
void ValueReader::fold_scale(Read& of) {
    auto& operands = of.form.operands;
    const std::size_t at = first_epilogue_operand(of, "bias");
    const ValueOperand shift = operands[at];
    const auto sums = plain_.find(operands.front().name);
    if (sums == plain_.end()) throw NoValueForm("there are no weights whose sums are scaled with them");
    const ValueOperand scale{shift.kind, "#" + std::to_string(operands_++), "scale"};
    operands[at].suffix = "shift";
    operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(at), scale);
    of.form.element = with_replaced(of.form.element, sums->second, Term("*", {sums->second, leaf(scale.name, scale.kind)}));
}

ValueReader::Read ValueReader::prepared(const Term& how, const Term& inner) {
    Read made = value(inner);
    if (how.size() == 0 && how.op().text() == "fold-bias") {
        fold_bias(made);
    } else if (how.size() == 0 && how.op().text() == "fold-scale") {
        fold_scale(made);
    } else {
        // Some preparation of a value: it finds what it prepares among the operands of that value, wherever the value continues.
        Term first = inner;
        while (first.is("then", 2)) first = first[0];
        const std::string known = to_string(how) + " " + to_string(first);
        if (!is_plain_variable(first) || !preparations_.contains(known)) throw NoValueForm("what '" + to_string(how) + "' prepares is not known");
        ValueOperand& group = made.form.operands.front();
        if (group.kind != "operands of " + to_string(first)) throw NoValueForm("what '" + to_string(how) + "' prepares is not known");
        const Term before = leaf(group.name, group.kind);
        group.kind += " before " + to_string(how);
        made.form.element = with_replaced(made.form.element, before, Term("leaf", {Term("prepared by " + to_string(how)), leaf(group.name, group.kind)}));
    }
    return made;
}

}  // namespace loopegg
