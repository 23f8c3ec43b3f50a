#include "rules/value_judge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/value.hpp"

namespace loopegg {
namespace {

// The first sites of a row. Some restrict their output and bring it back. Some have an epilogue already.
constexpr const char* first_nests[] = {
    "(nest (conv2d 1 1 4 3 4 4 2 2 1 1 1 1 1 1) (at co (at oh (at ow (at ci (at kh (at kw done)))))))",
    "(nest (epilogue bias (conv2d 2 1 3 2 3 3 1 1 1 1 0 0 1 1)) (at n (at co (at oh (at ow (at ci done))))))",
    "(nest (epilogue relu (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1)) (at co (at oh (at ow (at ci done)))))",
    "(nest (epilogue scale_shift (conv2d 1 2 2 2 3 3 1 1 1 1 0 0 1 1)) (at g (at co (at ci (at oh (at ow done))))))",
    "(nest (epilogue scale_shift (epilogue bias (conv2d 1 1 4 2 3 2 2 1 1 1 0 0 1 1))) (par co (at oh (at ow (at ci (at kh done))))))",
    "(nest (epilogue scale_shift (epilogue relu (conv2d 1 1 2 2 3 3 1 1 1 1 0 0 1 1))) (at co (at ci (at oh (at ow done)))))",
    "(nest (epilogue scale_shift (epilogue relu (epilogue bias (conv2d 1 1 2 2 3 3 1 1 1 1 0 0 1 1)))) (at co (at ci (at oh (at ow done)))))",
    "(restore repeat (nest (conv2d 1 1 4 3 3 3 1 1 1 1 0 0 1 1) (at (span co 0 2) (at oh (at ow (at ci done))))))",
    "(restore zero (nest (epilogue bias (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1)) (at (span co 0 2) (at oh (at ow (at ci done))))))",
    "(restore repeat (nest (epilogue scale_shift (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1)) (at (span co 0 2) (at oh (at ow (at ci done))))))",
    "(nest (epilogue relu (epilogue bias (conv2d 1 1 4 4 5 4 3 3 1 1 1 1 1 1))) (at co (at oh (at ow (at ci (at kh (at kw done)))))))",
    "(nest (conv2d 1 2 4 4 4 6 3 3 1 1 0 1 1 1) (at g (at co (at oh (at ow (at ci (at kh (at kw done))))))))",
    "(nest (conv2d 1 1 4 4 4 4 3 3 1 1 1 1 1 1) (at (diag 2 co ci) (at (rem co 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))",
    "(restore repeat (nest (conv2d 1 1 4 4 4 4 3 3 1 1 1 1 1 1) (at (span co 0 2) (at oh (at ow (at ci (at kh (at kw done))))))))",
    "(nest (linear 2 6 4) (at n (at (quo co 4) (at ci (at (rem co 4) done)))))",
    "(nest (epilogue bias (linear 3 4 2)) (at n (at co (at ci done))))",
    "(nest (matmul 2 3 4 5) (at b (at i (at j (at k done)))))",
    "(nest (epilogue add (matmul 1 4 6 2)) (at i (at j (at k done))))",
    "(nest (max_pool 1 2 4 4 2 2 2 2 0 0) (at c (at oh (at ow (at kh (at kw done))))))",
    "(nest (row_mean 3 4 1) (at r (at k done)))",
    "(nest (zip + 12) (at x done))",
    "(nest (map relu 12) (at x done))",
};

Term naive(const std::string& stmt) { return nest_of(statement_of(parse_term(stmt))); }

// A move that reads dimensions of these extents in an order, whatever the extents are.
Term move(Shape shape, const std::array<std::size_t, 4>& order) {
    shape.resize(4, 1);
    std::array<std::int64_t, 4> written{};
    std::string p;
    for (std::size_t i = 0; i < 4; ++i) written[order[i]] = shape[i], p += std::to_string(order[i] + 1);
    return naive("(order I " + p + " (move " + std::to_string(written[0]) + " " + std::to_string(written[1]) + " " + std::to_string(written[2]) + " " +
                 std::to_string(written[3]) + "))");
}
constexpr std::array<std::array<std::size_t, 4>, 4> tried_orders{{{1, 0, 2, 3}, {2, 0, 1, 3}, {0, 2, 1, 3}, {3, 1, 0, 2}}};

// Extents that make up this shape: the shape itself, its first two dimensions as one, its first dimension cut in two.
std::vector<Shape> views(const Shape& shape) {
    std::vector<Shape> all;
    if (shape.size() <= 4) all.push_back(shape);
    if (shape.size() > 1) {
        Shape joined(shape.begin() + 1, shape.end());
        joined[0] *= shape[0];
        if (joined.size() <= 4) all.push_back(joined);
    }
    if (shape.size() < 4 && shape[0] % 2 == 0) {
        Shape cut = shape;
        cut[0] /= 2;
        cut.insert(cut.begin(), 2);
        all.push_back(cut);
    }
    return all;
}

// Every nest that can read an output of this shape and nothing else.
std::vector<Term> followers(const Shape& shape) {
    const std::string size = std::to_string(element_count(shape));
    std::vector<Term> all;
    for (const char* f : {"relu", "relu6", "silu", "tanh", "copy"}) all.push_back(naive("(map " + std::string(f) + " " + size + ")"));
    for (const char* f : {"+", "-", "*"}) all.push_back(naive("(zip " + std::string(f) + " " + size + ")"));
    for (const char* v : {"2", "-3"}) all.push_back(naive("(scale " + std::string(v) + " " + size + ")"));
    for (const Shape& view : views(shape))
        for (const auto& order : tried_orders) all.push_back(move(view, order));
    const std::int64_t n = shape[0], c = shape.size() > 1 ? shape[1] : 1;
    all.push_back(naive("(channel_scale " + std::to_string(n) + " " + std::to_string(c) + " " + std::to_string(element_count(shape) / (n * c)) + ")"));
    return all;
}

// Values of which a nest reads one operand in another order.
std::vector<Term> fed_values(const Term& nest) {
    std::vector<Term> all;
    for (const Buffer& b : statement_of(nest_parts(nest).statement).buffers)
        if (b.name == "I" || b.name == "J")
            for (const Shape& view : views(b.shape))
                for (const auto& order : tried_orders) {
                    Shape source = view;
                    source.resize(4, 1);
                    Shape read(4);
                    for (std::size_t i = 0; i < 4; ++i) read[i] = source[order[i]];  // the move writes the view
                    all.push_back(Term("feed", {Term(b.name), Term("site", {move(read, order)}), nest}));
                }
    return all;
}

// A softmax between two products, as it is given and as rules over rows rewrite it.
void add_row_values(std::vector<Term>& all) {
    const Term product("site", {naive("(matmul 2 3 4 2)")}), next = naive("(matmul 2 3 5 4)");
    const auto then = [](const char* op, const Term& value, const std::string& stmt) { return Term(op, {value, naive(stmt)}); };
    const Term softmax = then("then", then("with", then("with", product, "(row_max 6 4 1)"), "(row_exp_sum 6 4 1)"), "(row_softmax 6 4 1)");
    const Term wide = then("then", product, "(wide_exp 6 4)"), divided = then("then", then("with", wide, "(row_sum 6 4 1)"), "(row_divide 6 4)");
    for (const Term& rows : {softmax, divided}) all.push_back(rows), all.push_back(Term("feed", {Term("I"), rows, next}));
    for (const Term& rows : {product, wide}) {
        all.push_back(Term("both", {rows, next, naive("(row_sum 6 4 1)")})),
            all.push_back(Term("both", {rows, naive("(row_max 6 4 1)"), naive("(row_sum 6 4 1)")}));
        all.push_back(Term("blocks", {Term(std::int64_t{2}), rows}));
    }
    for (const char* next : {"(scale 2 24)", "(zip + 24)", "(stretch + 6 4 1 1 15 14)"})
        all.push_back(Term("blocks", {Term(std::int64_t{2}), then("then", product, next)}));
}

std::vector<Term> small_values() {
    std::vector<Term> all;
    for (const char* text : first_nests) {
        const Term nest = complete(parse_term(text));
        const Term site("site", {nest});
        std::vector<Term> starts{site};
        for (const char* how : {"fold-bias", "fold-scale"}) {
            Term value("prepare", {Term(how), site});
            try {
                operands_of(value);
                starts.push_back(value);
            } catch (const UserError&) {  // there are no such constants to prepare
            }
        }
        for (Term& fed : fed_values(nest)) all.push_back(std::move(fed));
        for (const Term& start : starts) {
            all.push_back(start);
            for (const Term& follower : followers(statement_of(nest_parts(nest).statement).buffers[0].shape)) all.push_back(Term("then", {start, follower}));
        }
    }
    add_row_values(all);
    return all;
}

Operands whole_numbers(const std::vector<Buffer>& buffers) {
    std::mt19937_64 random(7);
    Operands all;
    for (const Buffer& b : buffers) {
        all.emplace_back(static_cast<std::size_t>(element_count(b.shape)));
        // In each direction, transformed weights are fractions with a denominator of at most 24. Multiples of that make them whole, and no sum of them here
        // exceeds 2^24.
        if (b.name == "W")
            for (float& v : all.back()) v = 576 * static_cast<float>(static_cast<int>(random() % 3) - 1);
        else
            for (float& v : all.back()) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
    }
    return all;
}

// Whether whole numbers become fractions.
bool makes_fractions(const Term& t) {
    static constexpr std::string_view such[] = {"bilinear", "row_exp_sum", "row_softmax", "row_exp", "row_divide", "wide_exp"};
    return std::find(std::begin(such), std::end(such), t.op().text()) != std::end(such) ||
           std::any_of(t.children().begin(), t.children().end(), [](const Term& c) { return makes_fractions(c); });
}

// Whole numbers stay exact. Fractions are rounded.
bool differ(const std::vector<float>& a, const std::vector<float>& b, bool rounded) {
    if (!rounded || a.size() != b.size()) return a != b;
    float largest = 0;
    for (const float v : a) largest = std::max(largest, std::abs(v));
    const float allowed = 1e-3f * largest;
    return !std::equal(a.begin(), a.end(), b.begin(), [&](float x, float y) { return std::abs(x - y) <= allowed; });
}

std::optional<std::string> value_difference(const Term& before, const Term& after) {
    const std::vector<Buffer> operands = operands_of(before);
    try {
        const std::vector<Buffer> others = operands_of(after);
        const bool same = std::equal(operands.begin(), operands.end(), others.begin(), others.end(),
                                     [](const Buffer& a, const Buffer& b) { return element_count(a.shape) == element_count(b.shape); });
        if (!same) return "takes other operands on the right than on the left";
        const Operands values = whole_numbers(operands);
        if (differ(interpret_value(before, values), interpret_value(after, values), makes_fractions(after))) return "computes something else";
    } catch (const UserError& e) {
        return "gives what is no value: " + e.diagnostics()[0].message;
    }
    return {};
}

}  // namespace

bool is_value_rule(const Rule& rule) {
    const Term& root = rule.left[0].term;
    return is_value(root);
}

std::optional<Refutation> judge_value_rule(const Rule& rule) {
    if (rule.arrow == Arrow::neural) return Refutation{"a neural rule restricts one nest, not a row of sites", rule.text};
    static const std::vector<Term> values = small_values();
    for (const Term& value : values) {
        auto facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = false, .proven = false});
        EGraph graph;
        graph.attach(facts);
        const ClassId root = graph.add(value);
        try {
            Runner runner(graph, bind_rule(rule, {facts, {}}));
            RunOptions once;
            once.limits.iterations = 1;
            runner.run(once);
        } catch (const InvariantBroken& broken) {
            return Refutation{"makes " + to_string(broken.a) + " equal to " + to_string(broken.b) + ", but " + broken.why, to_string(value)};
        }
        for (const Term& after : ClassTerms(graph).all(root, 8)) {
            if (after == value) continue;
            if (auto why = value_difference(value, after)) return Refutation{*why, to_string(value) + " becomes " + to_string(after)};
        }
    }
    return {};
}

}  // namespace loopegg
