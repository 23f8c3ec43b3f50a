// LSTM, GRU and RNN as ordinary operators: one product of the inputs of all steps with the weights, then the recurrence, step by step. All steps share one
// matrix of recurrent weights, and equal steps are equal nests, which are compiled and tuned once.
#include <algorithm>

#include <fmt/format.h>

#include "graph/functions.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/place.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t max_steps = 4096;       // as many values as a concat joins
constexpr std::int64_t max_all_steps = 65536;  // of all nodes: a short file would unfold to a large network otherwise

struct RecurrentOperator {
    std::string_view op;
    std::int64_t gates;                         // rows of the weights for each hidden value
    std::vector<std::string_view> activations;  // where the file names none
};

const RecurrentOperator& recurrent_operator(std::string_view op) {
    static const RecurrentOperator all[]{{"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}}, {"GRU", 3, {"Sigmoid", "Tanh"}}, {"RNN", 1, {"Tanh"}}};
    return *std::find_if(std::begin(all), std::end(all) - 1, [&](const RecurrentOperator& r) { return r.op == op; });
}

bool is_zero(const OnnxTensor& t) {
    const std::vector<float> values = floats_of(t);
    return std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

// Rows of one direction of a tensor [directions, rows, columns], as a matrix.
OnnxTensor rows_of(const OnnxTensor& t, std::int64_t direction, std::int64_t first, std::int64_t count) {
    const std::int64_t rows = t.dims[1], columns = t.dims.size() > 2 ? t.dims[2] : 1;
    const std::vector<float> all = floats_of(t);
    const auto begin = all.begin() + (direction * rows + first) * columns;
    return {OnnxTensor::Kind::float32, {count, columns}, {begin, begin + count * columns}};
}

// As the right operand of a product: [1, columns, rows].
OnnxTensor as_right_operand(const OnnxTensor& matrix) {
    const std::int64_t rows = matrix.dims[0], columns = matrix.dims[1];
    OnnxTensor made{OnnxTensor::Kind::float32, {1, columns, rows}, std::vector<float>(matrix.floats.size())};
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) made.floats[at(j * rows + i)] = matrix.floats[at(i * columns + j)];
    return made;
}

}  // namespace

// What both directions of a node have in common.
struct OnnxImporter::RecurrentLayer {
    const OnnxNode& node;
    const OnnxTensor &w, &r, *bias;
    std::string name, x;  // x: steps, batch, features
    std::int64_t all_steps, steps, hidden, gates, directions;
    std::vector<std::string> activations;  // element functions, of all directions
    bool reset_after;                      // GRU: the reset gate multiplies the product, not the state that goes into it
};

// One direction of a node. An empty state is zero: nothing is computed with it.
class OnnxImporter::Recurrence {
public:
    Recurrence(OnnxImporter& importer, const RecurrentLayer& layer, std::int64_t direction, std::string h, std::string c)
        : to_(importer), layer_(layer), direction_(direction), h_(std::move(h)), c_(std::move(c)) {
        name_ = direction == 0 && !backwards() ? layer.name : layer.name + ".reverse";
        const std::size_t each = layer.activations.size() / at(layer.directions);
        activations_.assign(layer.activations.begin() + static_cast<std::ptrdiff_t>(each) * direction,
                            layer.activations.begin() + static_cast<std::ptrdiff_t>(each) * (direction + 1));
        multiply_inputs();
        if (!h_.empty() || layer.steps > 1) add_recurrent_weights();
    }

    void run() {
        states_.resize(at(layer_.steps));
        for (std::int64_t i = 0; i < layer_.steps; ++i) {
            const std::int64_t t = backwards() ? layer_.steps - 1 - i : i;
            near_ = fmt::format("{}.{}", name_, t);
            const std::string given = piece("given", products_, 0, t, t + 1);
            if (layer_.node.op == "LSTM")
                lstm(given);
            else if (layer_.node.op == "GRU")
                gru(given);
            else
                h_ = activated("hidden", 0, with_state(given));
            states_[at(t)] = h_;
        }
    }

    // The hidden states of all steps: steps, batch, hidden.
    std::string sequence() {
        std::string all = to_.put(name_, "states", "concat", states_, {{"axis", std::int64_t{0}}});
        if (layer_.steps < layer_.all_steps)  // steps beyond the sequence give zeros
            all = to_.put(name_, "padded", "pad", {all}, {{"before", Ints{0, 0, 0}}, {"after", Ints{layer_.all_steps - layer_.steps, 0, 0}}});
        return all;
    }
    const std::string& hidden() const { return h_; }
    const std::string& cell() const { return c_; }

private:
    bool backwards() const { return direction_ == 1 || attr_text(layer_.node, "direction", "forward") == "reverse"; }

    void multiply_inputs() {
        const std::int64_t rows = layer_.gates * layer_.hidden;
        std::vector<float> bias;
        if (layer_.bias) {
            const OnnxTensor of_input = rows_of(*layer_.bias, direction_, 0, rows), of_state = rows_of(*layer_.bias, direction_, rows, rows);
            bias = of_input.floats;
            const std::int64_t shared = layer_.reset_after ? rows - layer_.hidden : rows;
            for (std::int64_t i = 0; i < shared; ++i) bias[at(i)] += of_state.floats[at(i)];
            if (shared < rows) {
                inner_bias_ = {OnnxTensor::Kind::float32, {1, 1, layer_.hidden}, {of_state.floats.begin() + shared, of_state.floats.end()}};
                if (is_zero(inner_bias_)) inner_bias_ = {};
            }
        }
        products_ = to_.unique(name_ + ".inputs");
        to_.set_weight(products_ + ".weight", rows_of(layer_.w, direction_, 0, rows));
        if (!bias.empty()) to_.set_weight(products_ + ".bias", {OnnxTensor::Kind::float32, {rows}, bias});
        to_.put(Node{products_, "linear", {layer_.x}, {{"out_features", rows}, {"bias", !bias.empty()}}});
    }

    void add_recurrent_weights() {
        const std::int64_t rows = layer_.gates * layer_.hidden;
        const bool apart = layer_.node.op == "GRU" && !layer_.reset_after;
        const std::int64_t together = apart ? rows - layer_.hidden : rows;
        recurrent_ = constant("recurrent", as_right_operand(rows_of(layer_.r, direction_, 0, together)));
        if (apart) candidate_ = constant("recurrent_candidate", as_right_operand(rows_of(layer_.r, direction_, together, layer_.hidden)));
    }

    void lstm(const std::string& given) {  // rows: input, output, forget, cell
        const std::string sums = with_state(given), gates = activated("gates", 0, of_gates("open", sums, 0, 3));
        std::string cell = put("new", "mul", {of_gates("input", gates, 0, 1), activated("candidate", 1, of_gates("update", sums, 3, 4))});
        if (!c_.empty()) cell = put("cell", "add", {put("kept", "mul", {of_gates("forget", gates, 2, 3), c_}), cell});
        c_ = cell;
        h_ = put("hidden", "mul", {of_gates("output", gates, 1, 2), activated("squashed", 2, c_)});
    }

    void gru(const std::string& given) {  // rows: update, reset, hidden
        const bool zero = h_.empty();
        const std::string product = zero ? "" : put("product", "matmul", {h_, recurrent_});
        std::string sums = of_gates("sums", given, 0, 2), candidate = of_gates("candidate", given, 2, 3);
        if (!zero) sums = put("summed", "add", {layer_.reset_after ? of_gates("of_state", product, 0, 2) : product, sums});
        const std::string gates = activated("gates", 0, sums), update = of_gates("update", gates, 0, 1), reset = of_gates("reset", gates, 1, 2);
        std::string inner;
        if (layer_.reset_after) {
            inner = zero ? bias_of_candidate() : of_gates("inner", product, 2, 3);
            if (!zero && !inner_bias_.floats.empty()) inner = put("biased", "add", {inner, bias_of_candidate()});
            if (!inner.empty()) inner = put("reset_inner", "mul", {reset, inner});
        } else if (!zero) {
            inner = put("inner", "matmul", {put("reset_state", "mul", {reset, h_}), candidate_});
        }
        if (!inner.empty()) candidate = put("candidates", "add", {inner, candidate});
        candidate = activated("new", 1, candidate);
        if (zero)
            h_ = put("hidden", "sub", {candidate, put("held", "mul", {update, candidate})});
        else
            h_ = put("hidden", "add", {put("held", "mul", {update, put("change", "sub", {h_, candidate})}), candidate});
    }

    std::string bias_of_candidate() {
        if (bias_of_candidate_.empty() && !inner_bias_.floats.empty()) bias_of_candidate_ = constant("candidate_bias", inner_bias_);
        return bias_of_candidate_;
    }

    // What the inputs give to the gates, and what the state adds.
    std::string with_state(const std::string& given) { return h_.empty() ? given : put("sums", "add", {put("product", "matmul", {h_, recurrent_}), given}); }

    std::string of_gates(const char* what, const std::string& x, std::int64_t first, std::int64_t end) {
        return piece(what, x, 2, first * layer_.hidden, end * layer_.hidden);
    }
    std::string piece(const char* what, const std::string& x, std::size_t axis, std::int64_t start, std::int64_t end) {
        const std::int64_t whole = to_.shape(x)[axis];
        if (start == 0 && end == whole) return x;
        return to_.put_slice(to_.unique(fmt::format("{}.{}", near_, what)), x, axis, start, end == whole ? to_the_end : end, 1);
    }
    std::string activated(const char* what, std::size_t which, const std::string& x) { return put(what, activations_.at(which), {x}); }
    std::string put(const char* what, const std::string& op, std::vector<std::string> in) { return to_.put(near_, what, op, std::move(in)); }
    std::string constant(const char* what, const OnnxTensor& tensor) {
        const std::string name = to_.unique(fmt::format("{}.{}", name_, what));
        to_.set_weight(name, tensor);
        return to_.put(Node{name, "parameter", {}, {{"shape", tensor.dims}}});
    }

    OnnxImporter& to_;
    const RecurrentLayer& layer_;
    const std::int64_t direction_;
    std::string name_, near_, products_, recurrent_, candidate_, bias_of_candidate_, h_, c_;
    std::vector<std::string> activations_, states_;
    OnnxTensor inner_bias_;  // GRU with reset_after: what the state's product of the hidden gate adds; empty where it is zero
};

void OnnxImporter::refuse_recurrent(const OnnxNode& node) const {
    for (std::size_t i : {0u, 1u, 2u, 3u, 5u, 6u})
        if (has(node, i) && type_of(node.inputs[i]) != onnx_type::float32) fail(node, fmt::format("its input {} is not float32", i));
    if (node.attrs.contains("clip")) fail(node, "a clip inside its cells is not supported");
    if (attr_int(node, "input_forget", 0) != 0) fail(node, "coupled input and forget gates (input_forget) are not supported");
    if (node.op == "LSTM" && has(node, 7) && !(constant(node, 7) && is_zero(*constant(node, 7)))) fail(node, "peephole weights (P) are not supported");
    const std::string direction = attr_text(node, "direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional") fail(node, fmt::format("the direction '{}' is not known", direction));
}

// How many of the steps the sequences of all rows have.
std::int64_t OnnxImporter::sequence_steps(const OnnxNode& node, std::int64_t all, std::int64_t batch) const {
    if (!has(node, 4)) return all;
    const OnnxTensor* t = constant(node, 4);
    if (!t) fail(node, "its sequence_lens are known only when it runs", "export the network for sequences of one length");
    const std::vector<std::int64_t> lengths = integers_of(*t).value_or(Ints{});
    if (static_cast<std::int64_t>(lengths.size()) != batch)
        fail(node, fmt::format("its sequence_lens are {} numbers for a batch of {}", lengths.size(), batch));
    if (std::count(lengths.begin(), lengths.end(), lengths[0]) != batch)
        fail(node, "its rows have different sequence_lens", "pad the sequences, or run sequences of one length together");
    if (lengths[0] < 1 || lengths[0] > all) fail(node, fmt::format("its sequence_lens are {}, and its input has {} steps", lengths[0], all));
    return lengths[0];
}

std::vector<std::string> OnnxImporter::recurrent_activations(const OnnxNode& node, std::int64_t directions) const {
    const std::vector<std::string_view>& usual = recurrent_operator(node.op).activations;
    std::vector<std::string> named = attr_texts(node, "activations").value_or(std::vector<std::string>{});
    if (named.empty())
        for (std::int64_t d = 0; d < directions; ++d) named.insert(named.end(), usual.begin(), usual.end());
    if (named.size() != usual.size() * at(directions))
        fail(node, fmt::format("it names {} activations, {} are expected", named.size(), usual.size() * at(directions)));
    for (std::string& name : named) {
        const ElementFunction* f = find_onnx_function(name);
        if (!f || f->operands != 1 || !f->parameters.empty())
            fail(node, fmt::format("the activation '{}' inside it is not supported", name), "Sigmoid, Tanh, Relu and Softsign are");
        name = f->name;
    }
    return named;
}

// The initial state of a direction, [1, batch, hidden]; empty where it is zero.
std::string OnnxImporter::initial_state(const RecurrentLayer& layer, std::size_t input_index, std::int64_t direction) {
    const OnnxNode& node = layer.node;
    if (!has(node, input_index) || (constant(node, input_index) && is_zero(*constant(node, input_index)))) return "";
    std::string all = value(node.inputs[input_index]);
    const bool batch_first = attr_int(node, "layout", 0) != 0;
    const Shape wanted = batch_first ? Shape{shape(layer.x)[1], layer.directions, layer.hidden} : Shape{layer.directions, shape(layer.x)[1], layer.hidden};
    if (shape(all) != wanted) fail(node, fmt::format("its initial state is {}, expected {}", to_string(shape(all)), to_string(wanted)));
    const char* what = input_index == 5 ? "initial_h" : "initial_c";
    if (batch_first) all = put_transpose(layer.name, what, all, {1, 0, 2});
    if (layer.directions == 1) return all;
    return put_slice(unique(fmt::format("{}.{}", layer.name, what)), all, 0, direction, direction == 1 ? to_the_end : 1, 1);
}

// Puts the parts of both directions side by side, and the batch where the node wants it.
void OnnxImporter::recurrent_result(const RecurrentLayer& layer, std::size_t output, std::vector<std::string> parts) {
    if (!used(layer.node, output)) return;
    const bool batch_first = attr_int(layer.node, "layout", 0) != 0, sequence = output == 0;
    const std::string name = output == 0 ? layer.name : unique(layer.name + (output == 1 ? ".h" : ".c"));
    const auto last = [&](bool is_last, const char* what) { return is_last ? name : unique(fmt::format("{}.{}", layer.name, what)); };
    std::string y = parts[0];
    if (sequence)
        for (std::string& part : parts)
            y = part = put(Node{last(parts.size() == 1 && !batch_first, "direction"), "reshape", {part}, {{"shape", Ints{0, 1, -1, layer.hidden}}}});
    if (parts.size() == 2) y = put(Node{last(!batch_first, "directions"), "concat", parts, {{"axis", std::int64_t{sequence ? 1 : 0}}}});
    if (batch_first) y = put(Node{name, "transpose", {y}, {{"order", sequence ? Ints{2, 0, 1, 3} : Ints{1, 0, 2}}}});
    values_[layer.node.outputs[output]] = y;
}

bool OnnxImporter::recurrent(const OnnxNode& node) {
    refuse_recurrent(node);
    const OnnxTensor &w = needed(node, 1, "weight W"), &r = needed(node, 2, "weight R"), *bias = has(node, 3) ? &needed(node, 3, "bias B") : nullptr;
    std::string x = value(input(node, 0));
    if (rank(x) != 3) fail(node, fmt::format("its input needs three dimensions (steps, batch, features), and is {}", to_string(shape(x))));
    const std::int64_t gates = recurrent_operator(node.op).gates, directions = attr_text(node, "direction", "forward") == "bidirectional" ? 2 : 1,
                       hidden = r.dims.size() == 3 ? r.dims[2] : 0, features = shape(x)[2];
    if (w.dims != Shape{directions, gates * hidden, features} || r.dims != Shape{directions, gates * hidden, hidden} || hidden < 1 ||
        (bias && bias->dims != Shape{directions, 2 * gates * hidden}) || attr_int(node, "hidden_size", hidden) != hidden)
        fail(node, fmt::format("its weights (W {}, R {}{}) do not fit to {} features, {} direction{} and {} gates", to_string(w.dims), to_string(r.dims),
                               bias ? ", B " + to_string(bias->dims) : "", features, directions, directions == 1 ? "" : "s", gates));
    const std::string name = name_for(node, tail(node));
    if (attr_int(node, "layout", 0) != 0) x = put_transpose(name, "steps_first", x, {1, 0, 2});
    const std::int64_t all_steps = shape(x)[0];
    if (all_steps > max_steps) fail(node, fmt::format("it has {} steps; each is written out, and {} are supported", all_steps, max_steps));
    if ((recurrent_steps_ += directions * all_steps) > max_all_steps)
        fail(node, fmt::format("it and the nodes before it have {} steps, more than {}", recurrent_steps_, max_all_steps));
    // The steps are written out, so their number is fixed while the batch is not.
    x = put(name, "steps", "reshape", {x}, {{"shape", Ints{all_steps, 0, features}}});
    const RecurrentLayer layer{node,
                               w,
                               r,
                               bias,
                               name,
                               x,
                               all_steps,
                               sequence_steps(node, all_steps, shape(x)[1]),
                               hidden,
                               gates,
                               directions,
                               recurrent_activations(node, directions),
                               node.op == "GRU" && attr_int(node, "linear_before_reset", 0) != 0};
    std::vector<std::string> sequences, states, cells;
    for (std::int64_t d = 0; d < directions; ++d) {
        Recurrence one(*this, layer, d, initial_state(layer, 5, d), node.op == "LSTM" ? initial_state(layer, 6, d) : "");
        one.run();
        if (used(node, 0)) sequences.push_back(one.sequence());
        states.push_back(one.hidden()), cells.push_back(one.cell());
    }
    if (!sequences.empty()) recurrent_result(layer, 0, sequences);
    recurrent_result(layer, 1, states);
    if (node.op == "LSTM") recurrent_result(layer, 2, cells);
    return true;
}

}  // namespace loopegg
