#include "graph/onnx/fuse.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace loopegg {
namespace {

class Fusion {
public:
    Fusion(OnnxModel& model, const OnnxConstants& constants) : model_(model), constants_(constants) {
        for (std::size_t i = 0; i < model.nodes.size(); ++i) {
            for (const std::string& name : model.nodes[i].outputs) producer_[name] = i;
            for (const std::string& name : model.nodes[i].inputs) ++uses_[name];
        }
        for (const OnnxValue& v : model.outputs) ++uses_[v.name];
    }

    void run() {
        for (OnnxNode& node : model_.nodes) {
            inside_.clear();
            std::optional<OnnxNode> made = gelu(node);
            if (!made) inside_.clear(), made = silu(node);
            if (!made) inside_.clear(), made = layer_norm(node);
            if (!made) inside_.clear(), made = linear(node);
            if (!made) continue;
            made->name = node.name, made->outputs = node.outputs;
            node = std::move(*made);
            dead_.insert(inside_.begin(), inside_.end());
        }
        std::vector<OnnxNode> kept;
        for (std::size_t i = 0; i < model_.nodes.size(); ++i)
            if (!dead_.contains(i)) kept.push_back(std::move(model_.nodes[i]));
        model_.nodes = std::move(kept);
    }

private:
    // The node that makes a value, if it is of this operator. Remembered as inside the group; only its last node may be seen from outside.
    const OnnxNode* made_by(const std::string& value, const std::string& op, int uses = 1) {
        auto found = producer_.find(value);
        if (found == producer_.end() || model_.nodes[found->second].op != op || uses_[value] != uses) return nullptr;
        bool unary = op == "Erf" || op == "Sigmoid" || op == "Sqrt" || op == "ReduceMean";
        if (model_.nodes[found->second].inputs.size() < (unary ? 1u : 2u)) return nullptr;  // a broken file
        inside_.insert(found->second);
        return &model_.nodes[found->second];
    }
    std::optional<double> scalar(const std::string& value) const {
        auto found = constants_.find(value);
        return found == constants_.end() ? std::nullopt : scalar_of(found->second);
    }
    static bool near(std::optional<double> value, double wanted) { return value && std::abs(*value - wanted) < 1e-5 * std::abs(wanted); }
    // Of two inputs, one satisfies the test; the other is answered.
    template <class Test>
    static std::optional<std::string> other(const OnnxNode& node, Test test) {
        if (node.inputs.size() != 2) return std::nullopt;
        if (test(node.inputs[1])) return node.inputs[0];
        if (test(node.inputs[0])) return node.inputs[1];
        return std::nullopt;
    }

    // Collects the factors of a product of products, three levels deep: gelu has two.
    void factors(const OnnxNode& node, std::vector<std::string>& out, int depth = 0) {
        for (const std::string& input : node.inputs) {
            const OnnxNode* inner = depth < 3 ? made_by(input, "Mul") : nullptr;
            if (inner)
                factors(*inner, out, depth + 1);
            else
                out.push_back(input);
        }
    }

    // x * 0.5 * (1 + erf(x / sqrt 2)), in any order of the factors
    std::optional<OnnxNode> gelu(const OnnxNode& node) {
        if (node.op != "Mul") return std::nullopt;
        std::vector<std::string> parts;
        factors(node, parts);
        if (parts.size() != 3) return std::nullopt;
        for (std::size_t e = 0; e < 3; ++e) {
            std::string a = parts[(e + 1) % 3], b = parts[(e + 2) % 3];
            std::optional<std::string> x = near(scalar(a), 0.5) ? std::optional(b) : near(scalar(b), 0.5) ? std::optional(a) : std::nullopt;
            const OnnxNode* sum = x ? made_by(parts[e], "Add") : nullptr;
            if (!sum) continue;
            auto erf_value = other(*sum, [&](const std::string& v) { return near(scalar(v), 1.0); });
            const OnnxNode* erf = erf_value ? made_by(*erf_value, "Erf") : nullptr;
            if (!erf) return std::nullopt;
            const OnnxNode* scaled = made_by(erf->inputs[0], "Div");
            bool divides = scaled && near(scalar(scaled->inputs[1]), std::sqrt(2.0)) && scaled->inputs[0] == *x;
            if (!scaled && (scaled = made_by(erf->inputs[0], "Mul"))) {
                auto from = other(*scaled, [&](const std::string& v) { return near(scalar(v), std::sqrt(0.5)); });
                divides = from == x;
            }
            if (divides) return OnnxNode{"Gelu", "", {*x}, {}};
            return std::nullopt;
        }
        return std::nullopt;
    }

    std::optional<OnnxNode> silu(const OnnxNode& node) {
        if (node.op != "Mul" || node.inputs.size() != 2) return std::nullopt;
        for (int side = 0; side < 2; ++side) {
            const std::string &x = node.inputs[static_cast<std::size_t>(side)], &s = node.inputs[static_cast<std::size_t>(1 - side)];
            if (const OnnxNode* sigmoid = made_by(s, "Sigmoid"); sigmoid && sigmoid->inputs[0] == x) return OnnxNode{"Silu", "", {x}, {}};
            inside_.clear();
        }
        return std::nullopt;
    }

    // (x - mean) / sqrt(mean((x - mean)^2) + eps) * gamma + beta, as exporters wrote it before opset 17
    std::optional<OnnxNode> layer_norm(const OnnxNode& node) {
        if (node.op != "Add") return std::nullopt;
        auto is_constant = [&](const std::string& v) { return constants_.contains(v); };
        auto scaled_value = other(node, is_constant);
        if (!scaled_value) return std::nullopt;
        std::string beta = node.inputs[node.inputs[0] == *scaled_value];
        const OnnxNode* scaled = made_by(*scaled_value, "Mul");
        auto quotient_value = scaled ? other(*scaled, is_constant) : std::nullopt;
        if (!quotient_value) return std::nullopt;
        std::string gamma = scaled->inputs[scaled->inputs[0] == *quotient_value];
        const OnnxNode* quotient = made_by(*quotient_value, "Div");
        const OnnxNode* centred = quotient ? made_by(quotient->inputs[0], "Sub", 2) : nullptr;
        const OnnxNode* root = centred ? made_by(quotient->inputs[1], "Sqrt") : nullptr;
        const OnnxNode* shifted = root ? made_by(root->inputs[0], "Add") : nullptr;
        auto variance_value = shifted ? other(*shifted, is_constant) : std::nullopt;
        const OnnxNode* variance = variance_value ? made_by(*variance_value, "ReduceMean") : nullptr;
        const OnnxNode* square = variance ? made_by(variance->inputs[0], "Pow") : nullptr;
        const OnnxNode* mean = square ? made_by(centred->inputs[1], "ReduceMean") : nullptr;
        if (!mean || mean->inputs[0] != centred->inputs[0] || square->inputs[0] != quotient->inputs[0] || !near(scalar(square->inputs[1]), 2.0))
            return std::nullopt;
        auto eps = scalar(shifted->inputs[shifted->inputs[0] == *variance_value]);
        if (!eps || axes_of_mean(*mean) != std::vector<std::int64_t>{-1}) return std::nullopt;
        return OnnxNode{"LayerNormalization", "", {centred->inputs[0], gamma, beta}, {}, {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(*eps)}}};
    }

    std::vector<std::int64_t> axes_of_mean(const OnnxNode& mean) const {
        if (auto axes = attr_ints(mean, "axes")) return *axes;
        auto found = mean.inputs.size() > 1 ? constants_.find(mean.inputs[1]) : constants_.end();
        return found == constants_.end() ? std::vector<std::int64_t>{} : found->second.integers;
    }

    std::optional<OnnxNode> linear(const OnnxNode& node) {
        if (node.op != "Add") return std::nullopt;
        auto product_value = other(node, [&](const std::string& v) { return constants_.contains(v) && constants_.at(v).dims.size() == 1; });
        const OnnxNode* product = product_value ? made_by(*product_value, "MatMul") : nullptr;
        if (!product || product->inputs.size() != 2) return std::nullopt;
        auto weight = constants_.find(product->inputs[1]);
        std::string bias = node.inputs[node.inputs[0] == *product_value];
        if (weight == constants_.end() || weight->second.dims.size() != 2 || constants_.at(bias).dims[0] != weight->second.dims[1]) return std::nullopt;
        return OnnxNode{"Linear", "", {product->inputs[0], product->inputs[1], bias}, {}};
    }

    OnnxModel& model_;
    const OnnxConstants& constants_;
    std::map<std::string, std::size_t> producer_;
    std::map<std::string, int> uses_;
    std::set<std::size_t> inside_, dead_;
};

}  // namespace

void fuse_patterns(OnnxModel& model, const OnnxConstants& constants) { Fusion(model, constants).run(); }

}  // namespace loopegg
