#include "backends/kernel/reference.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "backends/lower/lower_nest.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "graph/domain_sets.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/blockwise.hpp"

namespace loopegg {
namespace {

bool only_exact(const Term& t) {
    if (!t) return true;
    if (t.size() == 0) return true;
    static constexpr std::string_view exact[]{"+", "-", "*", "max", "relu", "relu6", "copy"};
    return std::find(std::begin(exact), std::end(exact), t.op().text()) != std::end(exact) && std::all_of(t.children().begin(), t.children().end(), only_exact);
}

double evaluate(const Term& t, const std::function<double(const std::string&)>& leaf) {
    if (t.size() == 0) {
        const std::string& text = t.op().text();
        const auto number = number_in<double>(text);
        return number ? *number : leaf(text);
    }
    std::vector<double> operands;
    for (const Term& c : t.children()) operands.push_back(evaluate(c, leaf));
    return apply_scalar(t.op().text(), operands);
}

// A copy of a buffer with a margin, so that every read of a body lands inside it.
struct Window {
    std::vector<double> values;
    std::vector<std::int64_t> low, stride;
};

// Does everything that one body does, with loops over its variables in any order.
class BodyLoops {
public:
    BodyLoops(const Statement& s, const TreeNode& body, const std::vector<std::int64_t>& extents, const std::vector<std::vector<float>>& operands,
              std::vector<double>& out)
        : s_(s), iterators_(body.iterators), out_(out), values_(extents.size(), 0) {
        std::vector<int> used;
        for (const Index& i : body.iterators) i.collect(used);
        for (const Predicate& p : body.predicates) p.expression.collect(used);
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        for (int v : used)
            if (extents[static_cast<std::size_t>(v)] > 1) vars_.push_back({v, extents[static_cast<std::size_t>(v)]});
        std::sort(vars_.begin(), vars_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });  // the longest loop runs innermost

        std::int64_t stride = 1;
        Index flat;
        const auto& shape = s.buffers[0].shape;
        for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) flat = flat + s.write.index[d].over(body.iterators) * stride;
        lines_.push_back(line(flat));
        for (const Access& a : s.reads) {
            std::vector<Index> index;
            for (const Affine& f : a.index) index.push_back(f.over(body.iterators));
            windows_.push_back(window(a.buffer, index, extents, operands[static_cast<std::size_t>(a.buffer)]));
            Index at;
            for (std::size_t d = 0; d < index.size(); ++d) at = at + (index[d] - Index(windows_.back().low[d])) * windows_.back().stride[d];
            lines_.push_back(line(at));
        }
        for (const Predicate& p : body.predicates) lines_.push_back(line(p.expression)), bounds_.push_back(p.bound);
        product_ = s.combine == Combine::sum && s.reads.size() == 2 && s.value.is("*", 2) && s.value[0].size() == 0 && s.value[1].size() == 0;
    }

    void run() {
        std::vector<std::int64_t> at;
        for (const Line& l : lines_) at.push_back(l.start);
        if (vars_.empty()) return one(at);
        walk(0, at);
    }

private:
    // start + a contribution of each variable by itself; or, where several variables are in one quotient, the whole expression.
    struct Line {
        std::int64_t start = 0;
        std::vector<std::vector<std::int64_t>> by_value;  // [variable][value]
        Index whole;
        bool separable = true;
    };

    Line line(const Index& index) {
        Line l;
        l.whole = index;
        l.by_value.resize(vars_.size());
        for (std::size_t v = 0; v < vars_.size(); ++v) l.by_value[v].assign(static_cast<std::size_t>(vars_[v].second), 0);
        const LinearForm form = linear(index);
        l.start = form.offset;
        for (const auto& [atom, k] : form.terms) {
            std::vector<int> in;
            atom.collect(in);
            std::erase_if(in, [&](int v) { return std::none_of(vars_.begin(), vars_.end(), [&](const auto& x) { return x.first == v; }); });
            std::sort(in.begin(), in.end());
            in.erase(std::unique(in.begin(), in.end()), in.end());
            if (in.empty()) {
                l.start += k * atom.at(values_);
                continue;
            }
            if (in.size() > 1) l.separable = all_separable_ = false;
            const auto v = static_cast<std::size_t>(std::find_if(vars_.begin(), vars_.end(), [&](const auto& x) { return x.first == in[0]; }) - vars_.begin());
            for (std::int64_t value = 0; in.size() == 1 && value < vars_[v].second; ++value) {
                values_[static_cast<std::size_t>(in[0])] = value;
                l.by_value[v][static_cast<std::size_t>(value)] += k * atom.at(values_);
            }
            values_[static_cast<std::size_t>(in[0])] = 0;
        }
        return l;
    }

    Window window(int b, const std::vector<Index>& index, const std::vector<std::int64_t>& extents, const std::vector<float>& from) const {
        const Shape& shape = s_.buffers[static_cast<std::size_t>(b)].shape;
        Window w;
        Shape wide;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const Bounds reach = interval(index[d], extents);
            w.low.push_back(std::min<std::int64_t>(0, reach.low));
            wide.push_back(std::max(shape[d], reach.high + 1) - w.low.back());
        }
        w.stride.assign(shape.size(), 1);
        for (std::size_t d = shape.size(); d-- > 1;) w.stride[d - 1] = w.stride[d] * wide[d];
        w.values.assign(static_cast<std::size_t>(element_count(wide)), s_.outside);
        std::vector<std::int64_t> at(shape.size(), 0);
        for (std::size_t i = 0; i < from.size(); ++i) {
            std::int64_t rest = static_cast<std::int64_t>(i), to = 0;
            for (std::size_t d = shape.size(); d-- > 0;) to += (rest % shape[d] - w.low[d]) * w.stride[d], rest /= shape[d];
            w.values[static_cast<std::size_t>(to)] = from[i];
        }
        return w;
    }

    void walk(std::size_t depth, std::vector<std::int64_t> at) {
        const auto [var, extent] = vars_[depth];
        if (depth + 1 == vars_.size()) return innermost(at);
        std::vector<std::int64_t> here(at.size());
        for (std::int64_t value = 0; value < extent; ++value) {
            values_[static_cast<std::size_t>(var)] = value;
            for (std::size_t l = 0; l < at.size(); ++l) here[l] = at[l] + lines_[l].by_value[depth][static_cast<std::size_t>(value)];
            walk(depth + 1, here);
        }
        values_[static_cast<std::size_t>(var)] = 0;
    }
    void innermost(const std::vector<std::int64_t>& at) {
        const std::size_t last = vars_.size() - 1;
        const std::int64_t extent = vars_[last].second;
        if (product_ && all_separable_ && bounds_.empty()) {
            const auto &o = lines_[0].by_value[last], &a = lines_[1].by_value[last], &b = lines_[2].by_value[last];
            const double *x = windows_[0].values.data() + at[1], *y = windows_[1].values.data() + at[2];
            double* z = out_.data() + at[0];
            for (std::size_t v = 0; v < static_cast<std::size_t>(extent); ++v) z[o[v]] += x[a[v]] * y[b[v]];
            return;
        }
        std::vector<std::int64_t> here(at.size());
        for (std::int64_t value = 0; value < extent; ++value) {
            values_[static_cast<std::size_t>(vars_[last].first)] = value;
            for (std::size_t l = 0; l < at.size(); ++l)
                here[l] = lines_[l].separable ? at[l] + lines_[l].by_value[last][static_cast<std::size_t>(value)] : lines_[l].whole.at(values_);
            one(here);
        }
        values_[static_cast<std::size_t>(vars_[last].first)] = 0;
    }
    void one(const std::vector<std::int64_t>& at) {
        const std::size_t first_bound = 1 + s_.reads.size();
        for (std::size_t p = 0; p < bounds_.size(); ++p)
            if (at[first_bound + p] >= bounds_[p]) return;
        const double value = evaluate(s_.value, [&](const std::string& name) -> double {
            for (std::size_t r = 0; r < s_.reads.size(); ++r)
                if (s_.buffers[static_cast<std::size_t>(s_.reads[r].buffer)].name == name) return windows_[r].values[static_cast<std::size_t>(at[1 + r])];
            for (const Coefficient& c : s_.coefficients)
                if (c.name == name)
                    return c.at(iterators_[static_cast<std::size_t>(c.row)].at(values_), iterators_[static_cast<std::size_t>(c.column)].at(values_));
            throw InternalFault("a statement's value names an unknown buffer");
        });
        double& o = out_[static_cast<std::size_t>(at[0])];
        o = s_.combine == Combine::assign ? value : s_.combine == Combine::max ? (value < o || o != o ? o : value) : o + value;
    }

    const Statement& s_;
    const std::vector<Index>& iterators_;
    std::vector<double>& out_;
    std::vector<std::int64_t> values_;
    std::vector<std::pair<int, std::int64_t>> vars_;
    std::vector<Line> lines_;  // output, reads, predicates
    std::vector<std::int64_t> bounds_;
    std::vector<Window> windows_;
    bool product_ = false, all_separable_ = true;
};

}  // namespace

bool exact_on_whole_numbers(const Statement& s) { return only_exact(s.value) && only_exact(s.finish); }

std::vector<std::vector<float>> sample_operands(const Statement& s, std::uint64_t seed) {
    const bool whole = exact_on_whole_numbers(s);
    std::vector<std::vector<float>> all;
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 0x1234567;
    for (const Buffer& b : s.buffers) {
        auto& values = all.emplace_back();
        if (b.kind == BufferKind::output) continue;
        values.resize(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : values) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            const auto bits = static_cast<std::int64_t>(state >> 40);
            v = whole ? static_cast<float>(bits % 7 - 3) : static_cast<float>(bits % 7 + 1) * 0.25f;
        }
    }
    return all;
}

std::vector<float> reference_output(const Term& nest, const std::vector<std::vector<float>>& operands) {
    const Term term = complete(nest);
    if (is_blockwise(nest_parts(term).statement)) return blockwise_reference(blockwise_of(nest_parts(term).statement), operands);
    const Statement s = statement_of(nest_parts(term).statement);
    const LoopTree tree = resolve(term);
    const auto extents = extents_of(tree);
    std::vector<double> out(static_cast<std::size_t>(element_count(s.buffers[0].shape)), s.combine == Combine::max ? -3.4028234663852886e38 : 0.0);
    std::function<void(const Tree&)> walk = [&](const Tree& n) {
        if (n->kind == TreeNode::Kind::body) BodyLoops(s, *n, extents, operands, out).run();
        for (const Tree& c : n->children) walk(c);
    };
    walk(tree.root);
    if (const Domain domain = domain_of(term); domain.restore != Restore::none) {
        const auto sources = output_sources(domain, graph_axes(s));
        const auto before = out;
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = sources[i] < 0 ? 0.0 : before[static_cast<std::size_t>(sources[i])];
    }
    std::vector<float> result(out.begin(), out.end());
    if (!s.finish || (s.finish.size() == 0 && s.finish.op().text() == "acc")) return result;
    const Shape& shape = s.buffers[0].shape;
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::vector<std::int64_t> element(shape.size());
        for (std::size_t d = shape.size(), rest = i; d-- > 0;)
            element[d] = static_cast<std::int64_t>(rest) % shape[d], rest /= static_cast<std::size_t>(shape[d]);
        result[i] = static_cast<float>(evaluate(s.finish, [&](const std::string& name) -> double {
            if (name == "acc") return out[i];
            for (const FinishRead& f : s.finish_reads) {
                const Buffer& b = s.buffers[static_cast<std::size_t>(f.buffer)];
                if (b.name != name) continue;
                std::int64_t at = 0;
                for (std::size_t d = 0; d < b.shape.size(); ++d) at = at * b.shape[d] + element[static_cast<std::size_t>(f.dimensions[d])];
                return operands[static_cast<std::size_t>(f.buffer)][static_cast<std::size_t>(at)];
            }
            throw InternalFault("the last step of a statement names an unknown buffer");
        }));
    }
    return result;
}

double rounding_allowed(const Statement& s) { return exact_on_whole_numbers(s) ? 0 : 1e-4; }

std::string difference(const Statement& s, std::span<const float> got, std::span<const float> wanted) {
    require(got.size() == wanted.size(), "outputs of one statement have one size");
    const double share = rounding_allowed(s);
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double allowed = share * std::max(1.0f, std::fabs(wanted[i]));
        if (got[i] == wanted[i] || std::fabs(static_cast<double>(got[i]) - wanted[i]) <= allowed) continue;  // infinities have no difference
        return fmt::format("wrong output: element {} is {} and should be {}", i, got[i], wanted[i]);
    }
    return "";
}

}  // namespace loopegg
