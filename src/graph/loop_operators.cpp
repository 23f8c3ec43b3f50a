#include "graph/loop_operators.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

std::vector<Term> terms_of(std::string_view text, std::string_view row) {
    const Term all = parse_term(fmt::format("(all {})", text), std::string(row));
    return {all.children().begin(), all.children().end()};
}

// A row that says nonsense is our own fault.
void expect(bool holds, const LoopOperator& op, const std::string& what) {
    if (!holds) throw InternalFault(fmt::format("row '{}' of the operators with loops: {}", op.name, what));
}

[[noreturn]] void too_large() { throw NodeProblem{"the sizes are too large", "attrs"}; }

std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) too_large();
    return result;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) too_large();
    return result;
}

// How many places a window has along one dimension, with as much padding before as after.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
    const std::int64_t padded = sum(size, product(2, padding));
    if (kernel > padded) throw NodeProblem{fmt::format("a window of {} does not fit into {} with padding {}", kernel, size, padding), "attrs.kernel"};
    if (product(2, padding) > kernel) throw NodeProblem{"padding of more than half the kernel: some windows would see nothing", "attrs.padding"};
    return (padded - kernel) / stride + 1;
}

// The formulas of a row over its numbers and axes.
class Formulas {
public:
    Formulas(const LoopOperator& op, std::span<const std::int64_t> sizes) : op_(op) {
        const std::vector<std::string> names = size_names(op);
        expect(names.size() == sizes.size(), op, "a number for each of its names is expected");
        for (std::size_t i = 0; i < names.size(); ++i) sizes_[without_mark(names[i])] = sizes[i];
    }

    static std::string without_mark(const std::string& name) { return name.ends_with('?') ? name.substr(0, name.size() - 1) : name; }

    void add_axis(const std::string& name) { axes_.push_back(name); }

    std::int64_t number(const Term& t) const {
        const LoopIndex made = index(t);
        expect(std::all_of(made.coefficients.begin(), made.coefficients.end(), [](std::int64_t c) { return c == 0; }), op_,
               "a number is expected, not " + to_string(t));
        return made.offset;
    }

    LoopIndex index(const Term& t) const {
        LoopIndex made{std::vector<std::int64_t>(axes_.size(), 0), 0};
        const std::string& word = t.op().text();
        if (t.size() == 0) {
            if (const auto axis = std::find(axes_.begin(), axes_.end(), word); axis != axes_.end())
                made.coefficients[static_cast<std::size_t>(axis - axes_.begin())] = 1;
            else
                made.offset = leaf(t);
            return made;
        }
        if (word == "windows" && t.size() == 4) {
            made.offset = windows(number(t[0]), number(t[1]), number(t[2]), number(t[3]));
            return made;
        }
        expect(t.size() == 2 && (word == "+" || word == "-" || word == "*"), op_, "an index is expected, not " + to_string(t));
        const LoopIndex a = index(t[0]);
        if (word == "*") return scaled(a, number(t[1]));
        const LoopIndex b = scaled(index(t[1]), word == "-" ? -1 : 1);
        for (std::size_t i = 0; i < axes_.size(); ++i) made.coefficients[i] = sum(a.coefficients[i], b.coefficients[i]);
        made.offset = sum(a.offset, b.offset);
        return made;
    }

    // The formula with numbers in place of their names.
    Term with_numbers(const Term& t) const {
        if (t.size() == 0) {
            const auto size = sizes_.find(t.op().text());
            return size == sizes_.end() ? t : Term(size->second);
        }
        std::vector<Term> children;
        for (const Term& child : t.children()) children.push_back(with_numbers(child));
        if (t.is("*", 2) && children[0].integer() && children[1].integer()) return Term(product(*children[0].integer(), *children[1].integer()));
        return Term(t.op(), std::move(children));
    }

private:
    std::int64_t leaf(const Term& t) const {
        if (const auto value = t.integer()) return *value;
        const auto size = sizes_.find(t.op().text());
        expect(size != sizes_.end(), op_, "there is no number or axis '" + to_string(t) + "'");
        return size->second;
    }

    static LoopIndex scaled(LoopIndex index, std::int64_t factor) {
        for (std::int64_t& c : index.coefficients) c = product(c, factor);
        index.offset = product(index.offset, factor);
        return index;
    }

    const LoopOperator& op_;
    std::map<std::string, std::int64_t> sizes_;
    std::vector<std::string> axes_;
};

}  // namespace

std::pair<std::int64_t, std::int64_t> reach(const LoopIndex& index, const std::vector<Axis>& axes) {
    std::int64_t low = index.offset, high = index.offset;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t most = product(index.coefficients[i], axes[i].extent - 1);
        (most < 0 ? low : high) = sum(most < 0 ? low : high, most);
    }
    return {low, high};
}

const std::vector<LoopOperator>& loop_operators() {
    static const std::vector<LoopOperator> all{
        // clang-format off
        {.name = "max_pool1d",
         .inputs = {"N C L"},
         .attributes = {{{"kernel", AttrKind::integers, {}, 1, 1}, "K", "kernel_shape"},
                        {{"stride", AttrKind::integers, {}, 1, 1, "kernel"}, "S", "strides", 1},
                        {{"padding", AttrKind::integers, std::vector<std::int64_t>{0}, 1, 0}, "P", "pads", 0}},
         .loops = "(n N) (c C) (x (windows L K S P)) (k K)",
         .output = "n c x",
         .reads = {"n c (- (+ (* x S) k) P)"},
         .combine = LoopCombine::max,
         .onnx = "MaxPool", .fixed = {{"ceil_mode", 0, 0}, {"dilations", 1, 1}, {"storage_order", 0, 0}},
         .python = "F.max_pool1d({x}, {kernel}, {stride}, {padding})"},
        {.name = "max_pool3d",
         .inputs = {"N C ID IH IW"},
         .attributes = {{{"kernel", AttrKind::integers, {}, 3, 1}, "KD KH KW", "kernel_shape"},
                        {{"stride", AttrKind::integers, {}, 3, 1, "kernel"}, "SD SH SW", "strides", 1},
                        {{"padding", AttrKind::integers, std::vector<std::int64_t>{0, 0, 0}, 3, 0}, "PD PH PW", "pads", 0}},
         .loops = "(n N) (c C) (od (windows ID KD SD PD)) (oh (windows IH KH SH PH)) (ow (windows IW KW SW PW)) (kd KD) (kh KH) (kw KW)",
         .output = "n c od oh ow",
         .reads = {"n c (- (+ (* od SD) kd) PD) (- (+ (* oh SH) kh) PH) (- (+ (* ow SW) kw) PW)"},
         .combine = LoopCombine::max,
         .onnx = "MaxPool", .fixed = {{"ceil_mode", 0, 0}, {"dilations", 1, 1}, {"storage_order", 0, 0}},
         .python = "F.max_pool3d({x}, {kernel}, {stride}, {padding})"},
        // clang-format on
    };
    return all;
}

const LoopOperator* find_loop_operator(std::string_view name) {
    for (const LoopOperator& op : loop_operators())
        if (op.name == name) return &op;
    return nullptr;
}

std::vector<std::string> size_names(const LoopOperator& op) {
    std::vector<std::string> names;
    for (std::string_view input : op.inputs)
        for (const std::string& name : split(input, ' '))
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    for (const LoopAttribute& a : op.attributes)
        for (const std::string& name : split(a.sizes, ' ')) names.push_back(a.spec.low == 0 ? name + "?" : name);
    return names;
}

std::vector<std::int64_t> sizes_of(const LoopOperator& op, const Node& node) {
    std::vector<std::string> names;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const std::vector<std::string> dimensions = split(op.inputs[i], ' ');
        const Shape& shape = node.input_shapes.at(i);
        if (shape.size() != dimensions.size())
            throw NodeProblem{
                fmt::format("{} needs an input of {} dimensions ({}), '{}' is {}", op.name, dimensions.size(), op.inputs[i], node.inputs[i], to_string(shape)),
                fmt::format("inputs.{}", i)};
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const auto known = std::find(names.begin(), names.end(), dimensions[d]);
            if (known == names.end())
                names.push_back(dimensions[d]), sizes.push_back(shape[d]);
            else if (const std::int64_t other = sizes[static_cast<std::size_t>(known - names.begin())]; other != shape[d])
                throw NodeProblem{fmt::format("{} needs one {} in its inputs, found {} and {}", op.name, dimensions[d], other, shape[d]), "inputs"};
        }
    }
    for (const LoopAttribute& a : op.attributes) {
        if (a.spec.kind == AttrKind::integer)
            sizes.push_back(node.integer(a.spec.name));
        else
            sizes.insert(sizes.end(), node.integers(a.spec.name).begin(), node.integers(a.spec.name).end());
    }
    return sizes;
}

Shape LoopNest::output_shape() const {
    Shape shape;
    for (std::size_t axis : output) shape.push_back(axes[axis].extent);
    return shape;
}

double LoopNest::identity() const { return combine == LoopCombine::max ? -std::numeric_limits<double>::infinity() : 0.0; }

LoopNest loop_nest(const LoopOperator& op, std::span<const std::int64_t> sizes) {
    LoopNest nest;
    Formulas formulas(op, sizes);
    for (const Term& loop : terms_of(op.loops, op.name)) {
        expect(loop.size() == 1, op, "a loop is an axis and its extent, not " + to_string(loop));
        nest.axes.push_back({loop.op().text(), formulas.number(loop[0]), true});
    }
    for (const Axis& axis : nest.axes) formulas.add_axis(axis.name);
    for (const std::string& name : split(op.output, ' ')) {
        const auto axis = std::find_if(nest.axes.begin(), nest.axes.end(), [&](const Axis& a) { return a.name == name; });
        expect(axis != nest.axes.end(), op, "there is no axis '" + name + "'");
        axis->reduction = false;
        nest.output.push_back(static_cast<std::size_t>(axis - nest.axes.begin()));
    }
    const std::vector<std::string> names = size_names(op);
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
        LoopRead read;
        for (const std::string& name : split(op.inputs[i], ' '))
            read.shape.push_back(sizes[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())]);
        for (const Term& t : terms_of(op.reads[i], op.name)) read.index.push_back(formulas.index(t));
        expect(read.index.size() == read.shape.size(), op, "each dimension of an input has an index");
        for (std::size_t d = 0; d < read.shape.size(); ++d) {
            const auto [low, high] = reach(read.index[d], nest.axes);
            read.padded = read.padded || low < 0 || high >= read.shape[d];
        }
        nest.reads.push_back(std::move(read));
    }
    nest.combine = op.combine;
    nest.value = formulas.with_numbers(parse_term(op.value, std::string(op.name)));
    nest.finish = formulas.with_numbers(parse_term(op.finish, std::string(op.name)));
    return nest;
}

}  // namespace loopegg
