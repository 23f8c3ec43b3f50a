// Encoders of BERT-tiny (Turc et al. 2019) and ViT-tiny (Touvron et al. 2021), with one linear node for each projection.
#include <cmath>

#include <fmt/format.h>

#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {
namespace {

struct AttentionNames {
    std::string query, key, value, out;
};

// softmax(q k^T / sqrt(d)) v over `heads` heads, then the output projection.
std::string attention(GraphBuilder& b, const std::string& at, const std::string& x, std::int64_t width, std::int64_t heads, const AttentionNames& names) {
    using Ints = std::vector<std::int64_t>;
    auto head = [&](const std::string& projection, Ints order) {
        std::string y = b.linear(projection, x, width);
        y = b.node("reshape", projection + ".heads", {y}, {{"shape", Ints{0, 0, heads, width / heads}}});
        return b.node("transpose", projection + ".order", {y}, {{"order", std::move(order)}});
    };
    std::string q = head(names.query, {0, 2, 1, 3}), k = head(names.key, {0, 2, 3, 1}), v = head(names.value, {0, 2, 1, 3});
    std::string s = b.node("matmul", at + ".scores", {q, k});
    s = b.node("scale", at + ".scale", {s}, {{"value", 1.0 / std::sqrt(static_cast<double>(width / heads))}});
    s = b.node("softmax", at + ".softmax", {s});
    std::string y = b.node("matmul", at + ".context", {s, v});
    y = b.node("transpose", at + ".merge", {y}, {{"order", Ints{0, 2, 1, 3}}});
    y = b.node("reshape", at + ".concat", {y}, {{"shape", Ints{0, 0, width}}});
    return b.linear(names.out, y, width);
}

std::string layer_norm(GraphBuilder& b, const std::string& name, const std::string& x, double eps) { return b.node("layer_norm", name, {x}, {{"eps", eps}}); }

}  // namespace

Graph build_bert_tiny() {
    constexpr std::int64_t width = 128, heads = 2, tokens = 128;
    constexpr double eps = 1e-12;
    GraphBuilder b("bert-tiny");
    std::string x = b.input("embeddings", {1, tokens, width});
    for (int i = 0; i < 2; ++i) {
        std::string at = fmt::format("encoder.layer.{}", i), a = at + ".attention";
        std::string y = attention(b, a + ".self", x, width, heads, {a + ".self.query", a + ".self.key", a + ".self.value", a + ".output.dense"});
        x = layer_norm(b, a + ".output.LayerNorm", b.add(a + ".output.add", y, x), eps);
        y = b.node("gelu", at + ".intermediate.gelu", {b.linear(at + ".intermediate.dense", x, 4 * width)});
        y = b.linear(at + ".output.dense", y, width);
        x = layer_norm(b, at + ".output.LayerNorm", b.add(at + ".output.add", y, x), eps);
    }
    return b.finish({x});
}

Graph build_vit_tiny() {
    constexpr std::int64_t width = 192, heads = 3, patch = 16, patches = 196;
    constexpr double eps = 1e-6;
    using Ints = std::vector<std::int64_t>;
    GraphBuilder b("vit-tiny");
    std::string x = b.conv("conv_proj", b.input("input", {1, 3, 224, 224}), {.out = width, .kernel = patch, .stride = patch, .bias = true});
    x = b.node("reshape", "patches", {x}, {{"shape", Ints{0, 0, -1}}});
    x = b.node("transpose", "tokens", {x}, {{"order", Ints{0, 2, 1}}});
    x = b.add("encoder.add", x, b.node("parameter", "encoder.pos_embedding", {}, {{"shape", Ints{1, patches, width}}}));
    for (int i = 0; i < 12; ++i) {
        std::string at = fmt::format("encoder.layers.encoder_layer_{}", i), a = at + ".self_attention";
        std::string y = attention(b, a, layer_norm(b, at + ".ln_1", x, eps), width, heads, {a + ".q_proj", a + ".k_proj", a + ".v_proj", a + ".out_proj"});
        x = b.add(at + ".add", y, x);
        y = b.linear(at + ".mlp.0", layer_norm(b, at + ".ln_2", x, eps), 4 * width);
        y = b.linear(at + ".mlp.3", b.node("gelu", at + ".mlp.1", {y}), width);
        x = b.add(at + ".add_1", x, y);
    }
    return b.finish({layer_norm(b, "encoder.ln", x, eps)});
}

}  // namespace loopegg
