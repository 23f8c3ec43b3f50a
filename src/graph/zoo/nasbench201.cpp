// NAS-Bench-201 (Dong and Yang 2020): one cell of six edges, repeated in three stages with residual blocks between.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "graph/builder.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {
namespace {

struct Edge {
    int from;
    std::string op;
};
using Cell = std::array<std::vector<Edge>, 3>;  // the edges into nodes 1, 2 and 3

// "|op~0|+|op~0|op~1|+|op~0|op~1|op~2|"
class CellReader {
public:
    explicit CellReader(const std::string& arch) : source_(make_source("<arch string>", arch)) {}

    Cell read() {
        Cell cell;
        for (int node = 1; node <= 3; ++node) {
            if (node > 1) expect('+');
            expect('|');
            for (int from = 0; from < node; ++from) {
                cell[static_cast<std::size_t>(node - 1)].push_back({from, operation()});
                expect('~');
                if (at_ >= text().size() || text()[at_] != '0' + from) fail(fmt::format("expected {}, the node that this edge comes from", from));
                ++at_;
                expect('|');
            }
        }
        if (at_ != text().size()) fail("something follows the end of the cell");
        return cell;
    }

private:
    const std::string& text() const { return source_->text; }
    [[noreturn]] void fail(std::string message, std::string hint = {}) const {
        throw UserError(Diagnostic{std::move(message), {source_, at_}, std::move(hint)});
    }
    void expect(char c) {
        if (at_ >= text().size() || text()[at_] != c) fail(fmt::format("expected '{}'", c));
        ++at_;
    }
    std::string operation() {
        static const std::vector<std::string> known{"none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"};
        std::string op = text().substr(at_, text().find('~', at_) - at_);
        if (std::find(known.begin(), known.end(), op) == known.end()) fail(fmt::format("unknown operation '{}' in a cell", op), did_you_mean(op, known));
        at_ += op.size();
        return op;
    }

    SourcePtr source_;
    std::size_t at_ = 0;
};

std::string relu_conv_norm(GraphBuilder& b, const std::string& at, const std::string& x, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    std::string y = b.conv(at + ".op.1", b.relu(at + ".op.0", x), {.out = out, .kernel = kernel, .stride = stride, .padding = kernel / 2});
    return b.norm(at + ".op.2", y);
}

// The values of a cell's nodes; a node that nothing feeds has none.
std::string build_cell(GraphBuilder& b, const std::string& at, const std::string& x, const Cell& cell, std::int64_t channels) {
    std::array<std::string, 4> value{x};
    for (int node = 1; node <= 3; ++node) {
        std::string& sum = value[static_cast<std::size_t>(node)];
        for (const Edge& e : cell[static_cast<std::size_t>(node - 1)]) {
            const std::string& from = value[static_cast<std::size_t>(e.from)];
            if (e.op == "none" || from.empty()) continue;
            std::string name = fmt::format("{}.edges.{}<-{}", at, node, e.from), y = from;
            if (e.op == "nor_conv_1x1") y = relu_conv_norm(b, name, from, channels, 1);
            if (e.op == "nor_conv_3x3") y = relu_conv_norm(b, name, from, channels, 3);
            if (e.op == "avg_pool_3x3")
                y = b.node("avg_pool", name + ".op", {from},
                           {{"kernel", std::int64_t{3}}, {"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}, {"count_padding", false}});
            sum = sum.empty() ? y : b.add(fmt::format("{}.add{}.{}", at, node, e.from), sum, y);
        }
    }
    // Nothing reaches the output: the cell's value is zero.
    return value[3].empty() ? b.node("scale", at + ".zero", {x}, {{"value", 0.0}}) : value[3];
}

std::string reduction(GraphBuilder& b, const std::string& at, const std::string& x, std::int64_t out) {
    std::string y = relu_conv_norm(b, at + ".conv_a", x, out, 3, 2);
    y = relu_conv_norm(b, at + ".conv_b", y, out, 3);
    std::string shortcut = b.conv(at + ".downsample.1", b.pool("avg_pool", at + ".downsample.0", x, 2, 2), {.out = out, .kernel = 1});
    return b.add(at + ".add", shortcut, y);
}

}  // namespace

Graph build_nasbench201(const std::string& arch) {
    Cell cell = CellReader(arch).read();
    GraphBuilder b(arch);
    std::string x = b.norm("stem.1", b.conv("stem.0", b.input("input", {1, 3, 32, 32}), {.out = 16, .kernel = 3, .padding = 1}));
    int next = 0;
    for (int stage = 0; stage < 3; ++stage) {
        std::int64_t channels = 16 << stage;
        if (stage > 0) x = reduction(b, fmt::format("cells.{}", next++), x, channels);
        for (int i = 0; i < 5; ++i) x = build_cell(b, fmt::format("cells.{}", next++), x, cell, channels);
    }
    x = b.relu("lastact.1", b.norm("lastact.0", x));
    x = b.node("flatten", "flatten", {b.node("global_avg_pool", "global_pooling", {x})});
    return without_unread_nodes(b.finish({b.linear("classifier", x, 10)}));
}

}  // namespace loopegg
