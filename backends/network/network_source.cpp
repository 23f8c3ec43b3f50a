#include "backends/network/network_source.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/quote.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

// A C string in pieces, because compilers limit the length of one literal.
std::string c_string(const std::string& text) {
    std::string out = "\"";
    std::size_t piece = 0;
    for (char c : text) {
        if (++piece % 1000 == 0) out += "\"\n    \"";
        if (c == '"' || c == '\\')
            out += std::string("\\") + c;
        else if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126 || c == '?')
            out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out + "\"";
}

template <class Number>
std::string numbers(const char* type, const char* name, const std::vector<Number>& values) {
    std::vector<std::string> rows;
    for (Number v : values) rows.push_back(std::to_string(v));
    return c_table(type, name, rows, "0", ", ");
}

std::string operand_table(const char* name, const std::vector<loopegg_operand>& operands) {
    std::vector<std::string> rows;
    for (const loopegg_operand& o : operands) rows.push_back(fmt::format("{{{}, {}}}", o.space, o.offset));
    return c_table("loopegg_operand", name, rows, "{0, 0}");
}

std::string step_table(const NetworkTables& t, const std::vector<PlacedStep>& steps) {
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < t.steps.size(); ++i) {
        const loopegg_step& s = t.steps[i];
        rows.push_back(
            fmt::format("{{{}, {}, {}, {}, {}, {}}} /* {} */", s.kernel, s.first, s.count, s.first_dim, s.together, s.turns, comment_text(steps[i].site)));
    }
    return c_table("loopegg_step", "steps", rows, "{0}");
}

std::string operator_tables(const NetworkTables& t) {
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < t.operators.size(); ++i) {
        const loopegg_operator& o = t.operators[i];
        rows.push_back(fmt::format("{{{}, {}, {}, {}, {}}}", c_string(t.nodes[i]), o.output, o.inputs, o.first_dim, o.count));
    }
    return c_table("loopegg_operator", "operators", rows, "{0}") + numbers("long", "operator_dims", t.operator_dims);
}

// What a network offers, and the function of the runtime that does it.
constexpr const char* entries = R"(
int NAME_abi(void) { return loopeggrt_abi(); }
const char* NAME_lacks(void) { return loopeggrt_lacks(); }
loopegg_network* NAME_open(const char* weights_file) { return loopeggrt_open(weights_file); }
void NAME_close(loopegg_network* network) { loopeggrt_close(network); }
loopegg_context* NAME_create(loopegg_network* network, int threads) { return loopeggrt_create(network, threads); }
void NAME_destroy(loopegg_context* context) { loopeggrt_destroy(context); }
int NAME_threads(const loopegg_context* context) { return loopeggrt_threads(context); }
int NAME_run(loopegg_context* context, const float* const* inputs, float* const* outputs) { return loopeggrt_run(context, inputs, outputs); }
int NAME_run_steps(loopegg_context* context, const float* const* inputs, float* const* outputs, double* ms) {
    return loopeggrt_run_steps(context, inputs, outputs, ms);
}
int NAME_steps(void) { return loopeggrt_steps(); }
int NAME_inputs(void) { return loopeggrt_inputs(); }
int NAME_outputs(void) { return loopeggrt_outputs(); }
long NAME_input_size(int index) { return loopeggrt_input_size(index); }
long NAME_output_size(int index) { return loopeggrt_output_size(index); }
)";

}  // namespace

std::string c_table(const char* type, const char* name, std::vector<std::string> rows, const char* none, const char* between) {
    if (rows.empty()) rows.emplace_back(none);
    return fmt::format("static const {} {}[] = {{\n    {}}};\n", type, name, join(rows, between));
}

std::string with_prefix(std::string text, const std::string& prefix) {
    for (std::size_t at = 0; (at = text.find("NAME_", at)) != std::string::npos; at += prefix.size()) text.replace(at, 5, prefix);
    return text;
}

std::string kernel_file(std::size_t index, const Target& target) { return fmt::format("kernel{:03}.{}", index, target.gpu() ? "cu" : "o"); }

std::string network_prefix(const std::string& name) { return "loopegg_" + c_name(name) + "_"; }

// The same function as in runtime/loopegg_network.c. The number of weights is even, and the byte order is that of the target, which is little-endian as all
// of ours.
std::uint64_t weights_fingerprint(const std::vector<float>& values) {
    std::uint64_t h = 0x9e3779b97f4a7c15ull;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
        std::uint64_t two = 0;
        std::memcpy(&two, values.data() + i, sizeof two);
        h = (h ^ two) * 0xff51afd7ed558ccdull;
        h ^= h >> 32;
    }
    return h;
}

std::string network_source(const PlacedNetwork& n) {
    const NetworkTables t = network_tables(n);
    std::string s = fmt::format(
        "/* {}: compiled by loopegg. Build: cc -O2 -std=gnu11 -shared -fPIC -Wl,--version-script=network.map network.c loopegg_*.c *.o "
        "-o network.so -lm -lpthread */\n#include \"network.h\"\n\n#include \"loopegg_network.h\"\n\n",
        comment_text(n.name));
    std::vector<std::string> kernels, dimensions;
    for (const Kernel& k : n.kernels) {
        s += fmt::format("extern int {}(void*, const loopegg_argument*, int32_t, void*);\n", k.symbol);
        kernels.push_back(k.symbol);
    }
    for (const loopegg_dimension& d : t.dimensions) dimensions.push_back(fmt::format("{{{}, {}, {}}}", d.extent, d.to, d.from));
    s += c_table("loopegg_kernel", "kernels", kernels, "0") + operand_table("operands", t.operands) +
         c_table("loopegg_dimension", "dimensions", dimensions, "{0, 0, 0}") + step_table(t, n.steps) + operator_tables(t);
    s += numbers("int64_t", "input_sizes", t.input_sizes) + numbers("int64_t", "output_sizes", t.output_sizes) +
         numbers("int64_t", "input_offsets", t.input_offsets) + numbers("int64_t", "output_offsets", t.output_offsets) +
         operand_table("output_places", t.output_places);
    s += fmt::format(
        "const loopegg_tables loopeggrt_tables = {{\n    {}, {}, {}, {}, {}, {}, {}ull, kernels, steps, operands, dimensions, operators, operator_dims,\n"
        "    {}, input_sizes, output_sizes, input_offsets, output_offsets, output_places, {}u}};\n",
        t.counts.steps, t.counts.inputs, t.counts.outputs, t.counts.max_operands, t.counts.arena_floats, t.counts.weight_floats, t.counts.fingerprint,
        t.operators.empty() ? "0" : "loopegg_run_opaque", t.counts.units);
    return s + with_prefix(entries, network_prefix(n.name));
}

std::string exported_names(const PlacedNetwork& n) { return "{ global: " + network_prefix(n.name) + "*; local: *; };\n"; }

namespace {

loopegg_operand place(const PlacedNetwork& n, const PlacedOperand& o) {
    if (o.port < 0) return {o.constant ? 1 : 0, o.offset};
    const auto port = static_cast<std::size_t>(o.port);
    const std::int64_t begin = port < n.inputs.size() ? n.input_offsets[port] : n.output_places[port - n.inputs.size()].offset;
    return {2 + o.port, o.offset - begin};
}

void add_operator(NetworkTables& t, const PlacedStep& step) {
    const auto first_dim = static_cast<std::int32_t>(t.operator_dims.size());
    for (const Shape& shape : step.read_shapes) {
        t.operator_dims.push_back(static_cast<long>(shape.size()));
        t.operator_dims.insert(t.operator_dims.end(), shape.begin(), shape.end());
    }
    t.nodes.push_back(step.opaque);
    t.operators.push_back({nullptr, static_cast<std::int32_t>(step.output), static_cast<std::int32_t>(step.read_shapes.size()), first_dim, step.shape[0]});
}

}  // namespace

NetworkTables network_tables(const PlacedNetwork& n) {
    NetworkTables t;
    std::size_t most = 1;
    for (const PlacedStep& step : n.steps) {
        loopegg_step row{};
        row.kernel = step.kernel;
        row.first = static_cast<std::int32_t>(t.operands.size());
        row.count = static_cast<std::int32_t>(step.operands.size());
        row.together = step.together;
        for (const PlacedOperand& o : step.operands) t.operands.push_back(place(n, o));
        most = std::max(most, step.operands.size());
        if (step.kernel >= 0) row.turns = n.kernels[static_cast<std::size_t>(step.kernel)].turns;
        if (step.kernel == -2) {
            row.count = static_cast<std::int32_t>(t.operators.size());
            add_operator(t, step);
        } else if (step.kernel < 0) {
            row.first_dim = static_cast<std::int32_t>(t.dimensions.size());
            row.count = static_cast<std::int32_t>(step.shape.size());
            for (std::size_t d = 0; d < step.shape.size(); ++d) t.dimensions.push_back({step.shape[d], step.to_strides[d], step.from_strides[d]});
        }
        t.steps.push_back(row);
    }
    t.input_offsets = n.input_offsets;
    for (const GraphInput& i : n.inputs) t.input_sizes.push_back(element_count(i.shape));
    for (const GraphInput& o : n.outputs) t.output_sizes.push_back(element_count(o.shape));
    for (const PlacedOperand& o : n.output_places) {
        t.output_places.push_back(place(n, o));
        t.output_offsets.push_back(o.port < 0 ? 0 : o.offset);
    }
    t.counts.steps = static_cast<std::int32_t>(t.steps.size());
    t.counts.inputs = static_cast<std::int32_t>(n.inputs.size());
    t.counts.outputs = static_cast<std::int32_t>(n.outputs.size());
    t.counts.max_operands = static_cast<std::int32_t>(most);
    t.counts.arena_floats = n.arena;
    t.counts.weight_floats = static_cast<std::int64_t>(n.weights.size());
    t.counts.fingerprint = weights_fingerprint(n.weights);
    for (const Kernel& k : n.kernels) t.counts.units |= k.units;
    return t;
}

}  // namespace loopegg
