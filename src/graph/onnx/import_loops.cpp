// Operators with loops, by the rows of their table.
#include <algorithm>

#include "base/text.hpp"
#include "graph/loop_operators.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/onnx/onnx_attrs.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

// The numbers of an attribute that is one whole number or a list; none where the file does not say it, or says something else.
std::optional<Ints> numbers(const OnnxNode& node, std::string_view name) {
    const auto found = node.attrs.find(std::string(name));
    if (found == node.attrs.end()) return std::nullopt;
    if (const auto* one = std::get_if<std::int64_t>(&found->second)) return Ints{*one};
    if (const auto* all = std::get_if<Ints>(&found->second)) return *all;
    return std::nullopt;
}

bool has_fixed_values(const LoopOperator& row, const OnnxNode& node) {
    return std::all_of(row.fixed.begin(), row.fixed.end(), [&](const FixedOnnxAttribute& f) {
        const Ints said = numbers(node, f.name).value_or(Ints{f.absent});
        return std::all_of(said.begin(), said.end(), [&](std::int64_t v) { return v == f.value; });
    });
}

// Every attribute of the file is one that the row knows.
bool knows_all(const LoopOperator& row, const OnnxNode& node) {
    return std::all_of(node.attrs.begin(), node.attrs.end(), [&](const auto& attr) {
        const std::string& name = attr.first;
        if (name == "auto_pad") return attr_text(node, name, "NOTSET") == "NOTSET";
        return std::any_of(row.fixed.begin(), row.fixed.end(), [&](const FixedOnnxAttribute& f) { return f.name == name; }) ||
               std::any_of(row.attributes.begin(), row.attributes.end(), [&](const LoopAttribute& a) { return a.onnx == name; });
    });
}

// The attributes of a node of the row; none where the file says what the row cannot.
std::optional<std::map<std::string, Attr>> attributes_of(const LoopOperator& row, const OnnxNode& node) {
    std::map<std::string, Attr> made;
    for (const LoopAttribute& a : row.attributes) {
        const std::size_t count = split(a.sizes, ' ').size();
        std::optional<Ints> said = numbers(node, a.onnx);
        if (!said && (node.attrs.contains(std::string(a.onnx)) || !a.in_onnx)) return std::nullopt;
        Ints values = said ? *said : Ints(count, *a.in_onnx);
        if (said && a.onnx == "pads") {
            if (values.size() != 2 * count ||
                !std::equal(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), values.begin() + static_cast<std::ptrdiff_t>(count)))
                return std::nullopt;
            values.resize(count);
        }
        if (values.size() != count || std::any_of(values.begin(), values.end(), [&](std::int64_t v) { return v < a.spec.low; })) return std::nullopt;
        made[std::string(a.spec.name)] = a.spec.kind == AttrKind::integer ? Attr(values[0]) : Attr(values);
    }
    return made;
}

}  // namespace

bool OnnxImporter::loops(const OnnxNode& node) {
    for (const LoopOperator& row : loop_operators()) {
        if (row.onnx != node.op || node.inputs.size() != row.inputs.size() || used(node, 1)) continue;
        if (!computes_floats(node) || !has_fixed_values(row, node) || !knows_all(row, node)) continue;
        const auto attrs = attributes_of(row, node);
        if (!attrs) continue;
        Node made{"", std::string(row.name), {}, *attrs};
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            made.inputs.push_back(value(input(node, i))), made.input_shapes.push_back(shape(made.inputs.back()));
        try {
            loop_nest(row, sizes_of(row, made));
        } catch (const NodeProblem&) {
            continue;  // another row may say it, or the operator runs as it is
        }
        put(node, made.op, made.inputs, made.attrs);
        return true;
    }
    return false;
}

}  // namespace loopegg
