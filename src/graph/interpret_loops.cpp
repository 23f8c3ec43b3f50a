#include "graph/interpret_loops.hpp"

#include "graph/functions.hpp"
#include "graph/loop_operators.hpp"

namespace loopegg {
namespace {

// What an instance reads, or `outside`.
double read(const LoopRead& from, const Tensor& tensor, const std::vector<std::int64_t>& instance, double outside) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < from.shape.size(); ++d) {
        std::int64_t index = from.index[d].offset;
        for (std::size_t a = 0; a < instance.size(); ++a) index += from.index[d].coefficients[a] * instance[a];
        if (index < 0 || index >= from.shape[d]) return outside;
        place = place * from.shape[d] + index;
    }
    return tensor.values[static_cast<std::size_t>(place)];
}

// The next values of these axes, the last of them fastest. False: that was the last.
bool next(std::vector<std::int64_t>& instance, const std::vector<std::size_t>& walked, const std::vector<Axis>& axes) {
    for (std::size_t i = walked.size(); i-- > 0;) {
        if (++instance[walked[i]] < axes[walked[i]].extent) return true;
        instance[walked[i]] = 0;
    }
    return false;
}

}  // namespace

Tensor interpret_loops(const Node& node, const std::vector<const Tensor*>& inputs) {
    const LoopOperator& op = *find_loop_operator(node.op);
    const LoopNest nest = loop_nest(op, sizes_of(op, node));
    const std::string_view read_names[] = {"I", "J"}, sum_name[] = {"acc"};
    const ReadyFunction value(nest.value, read_names), finish(nest.finish, sum_name);
    std::vector<std::size_t> reductions;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
        if (nest.axes[a].reduction) reductions.push_back(a);
    Tensor y{nest.output_shape(), {}};
    y.values.reserve(static_cast<std::size_t>(element_count(y.shape)));
    std::vector<std::int64_t> instance(nest.axes.size(), 0);
    std::vector<double> operands(2, 0.0);
    do {
        double acc = nest.identity();
        do {
            for (std::size_t i = 0; i < nest.reads.size(); ++i) operands[i] = read(nest.reads[i], *inputs[i], instance, nest.identity());
            const double both[] = {acc, value(operands.data())};
            acc = nest.combine == LoopCombine::max ? apply_function("max", both) : both[1] + (nest.combine == LoopCombine::sum ? acc : 0.0);
        } while (next(instance, reductions, nest.axes));
        y.values.push_back(static_cast<float>(finish(&acc)));
    } while (next(instance, nest.output, nest.axes));
    return y;
}

}  // namespace loopegg
