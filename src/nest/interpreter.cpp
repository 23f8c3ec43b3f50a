#include "nest/interpreter.hpp"

#include <cmath>
#include <cstdlib>
#include <random>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "nest/domain.hpp"

namespace loopegg {
namespace {

std::size_t flat(const Shape& shape, std::span<const std::int64_t> index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    return static_cast<std::size_t>(at);
}

bool inside(const Shape& shape, std::span<const std::int64_t> index) {
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (index[d] < 0 || index[d] >= shape[d]) return false;
    return true;
}

// A scalar term with its leaves looked up once: buffers become slots of an operand array.
class Scalar {
public:
    Scalar(const Term& term, const std::vector<std::string>& slots) {
        if (term.size() == 0) {
            for (std::size_t i = 0; i < slots.size(); ++i)
                if (slots[i] == term.op().text()) slot_ = static_cast<int>(i);
            if (slot_ < 0) constant_ = std::strtod(term.op().text().c_str(), nullptr);
        }
        function_ = term.op().text();
        for (const Term& child : term.children()) children_.emplace_back(child, slots);
    }
    float at(std::span<const float> operands) const {
        if (children_.empty()) return slot_ >= 0 ? operands[static_cast<std::size_t>(slot_)] : static_cast<float>(constant_);
        double x[2] = {0, 0};
        for (std::size_t i = 0; i < children_.size(); ++i) x[i] = children_[i].at(operands);
        return static_cast<float>(apply_scalar(function_, std::span(x, children_.size())));
    }

private:
    std::string function_;
    std::vector<Scalar> children_;
    int slot_ = -1;
    double constant_ = 0;
};

// What an instance and an output element's last step compute, over buffers.
class Kernel {
public:
    Kernel(const Statement& s, const Buffers& given) : s_(s), value_(s.value, read_names(s)), finish_(s.finish, finish_names(s)) {
        for (const Buffer& b : s.buffers) {
            auto it = given.find(b.name);
            auto size = static_cast<std::size_t>(element_count(b.shape));
            if (it != given.end() && it->second.size() != size) throw UserError("buffer " + b.name + " has the wrong number of elements");
            if (it == given.end() && b.kind != BufferKind::output) throw UserError("buffer " + b.name + " is not given");
            data.push_back(it != given.end() ? it->second : std::vector<float>(size, 0.0f));
        }
    }

    float read(const Access& a, std::span<const std::int64_t> index) const {
        const Shape& shape = s_.buffers[static_cast<std::size_t>(a.buffer)].shape;
        if (!inside(shape, index)) return static_cast<float>(s_.outside);
        return data[static_cast<std::size_t>(a.buffer)][flat(shape, index)];
    }
    float value(std::span<const float> operands) const { return value_.at(operands); }
    float combine(float acc, float v) const { return s_.combine == Combine::sum ? acc + v : s_.combine == Combine::max ? (v > acc ? v : acc) : v; }
    float finish(float acc, std::span<const std::int64_t> output) const {
        std::vector<float> operands{acc};
        for (const FinishRead& r : s_.finish_reads) {
            std::vector<std::int64_t> index;
            for (int d : r.dimensions) index.push_back(output[static_cast<std::size_t>(d)]);
            operands.push_back(data[static_cast<std::size_t>(r.buffer)][flat(s_.buffers[static_cast<std::size_t>(r.buffer)].shape, index)]);
        }
        return finish_.at(operands);
    }

    std::vector<std::vector<float>> data;   // beside Statement::buffers

private:
    static std::vector<std::string> read_names(const Statement& s) {
        std::vector<std::string> names;
        for (const Access& a : s.reads) names.push_back(s.buffers[static_cast<std::size_t>(a.buffer)].name);
        return names;
    }
    static std::vector<std::string> finish_names(const Statement& s) {
        std::vector<std::string> names{"acc"};
        for (const FinishRead& r : s.finish_reads) names.push_back(s.buffers[static_cast<std::size_t>(r.buffer)].name);
        return names;
    }
    const Statement& s_;
    Scalar value_, finish_;
};

class Interpreter {
public:
    Interpreter(const Statement& s, const LoopTree& tree, const Buffers& given, std::vector<std::int64_t> sources)
        : s_(s), kernel_(s, given), values_(static_cast<std::size_t>(tree.variables), 0), stages_(static_cast<std::size_t>(tree.stages)), sources_(std::move(sources)) {
        run(*tree.root);
    }
    std::vector<float> output() { return std::move(kernel_.data[0]); }

private:
    struct Storage {
        Shape shape;
        std::vector<float> values;
    };

    std::vector<std::int64_t> at(const std::vector<Index>& index) const {
        std::vector<std::int64_t> out;
        for (const Index& i : index) out.push_back(i.at(values_));
        return out;
    }

    template <class Visit> void each_element(const Tile& tile, const Visit& visit, std::size_t step = 0) {
        if (step < tile.steps.size()) {
            for (std::int64_t v = 0; v < tile.steps[step].extent; ++v) {
                values_[static_cast<std::size_t>(tile.steps[step].var)] = v;
                each_element(tile, visit, step + 1);
            }
            return;
        }
        for (const Predicate& p : tile.predicates)
            if (p.expression.at(values_) >= p.bound) return;
        visit();
    }

    // The float that a place means, in a buffer that is written.
    float& cell(const OperandPlace& place) {
        std::vector<std::int64_t> index = at(place.index);
        if (place.stage < 0) {
            require(inside(s_.buffers[0].shape, index), "a tile leaves its buffer");
            return kernel_.data[0][flat(s_.buffers[0].shape, index)];
        }
        Storage& storage = stages_[static_cast<std::size_t>(place.stage)];
        require(inside(storage.shape, index), "an access leaves its stage");
        return storage.values[flat(storage.shape, index)];
    }

    std::vector<std::int64_t> step_values(const Tile& tile) const {
        std::vector<std::int64_t> out;
        for (const Tile::Step& s : tile.steps) out.push_back(values_[static_cast<std::size_t>(s.var)]);
        return out;
    }

    void run(const TreeNode& node) {
        switch (node.kind) {
            case TreeNode::Kind::loop: return run_loop(node);
            case TreeNode::Kind::cat: run(*node.children[0]); return run(*node.children[1]);
            case TreeNode::Kind::stage: return node.buffer == 0 ? run_output_stage(node) : run_input_stage(node);
            case TreeNode::Kind::complete: return run_complete(node);
            case TreeNode::Kind::body: return run_body(node);
        }
    }

    void run_loop(const TreeNode& node) {
        Storage lanes;
        if (node.partial) {
            lanes.shape = {node.extent};
            for (const Tile::Step& s : node.tile.steps) lanes.shape.push_back(s.extent);
            lanes.values.assign(static_cast<std::size_t>(element_count(lanes.shape)), static_cast<float>(s_.identity()));
            stages_[static_cast<std::size_t>(node.stage)] = lanes;
        }
        for (std::int64_t v = 0; v < node.extent; ++v) {
            values_[static_cast<std::size_t>(node.var)] = v;
            run(*node.children[0]);
        }
        if (!node.partial) return;
        const Storage& done = stages_[static_cast<std::size_t>(node.stage)];
        for (std::int64_t v = 0; v < node.extent; ++v) {
            values_[static_cast<std::size_t>(node.var)] = v;
            each_element(node.tile, [&] {
                std::vector<std::int64_t> index = step_values(node.tile);
                index.insert(index.begin(), v);
                float& target = cell(node.source);
                target = kernel_.combine(target, done.values[flat(done.shape, index)]);
            });
        }
    }

    Storage& fresh_storage(const TreeNode& node, float fill) {
        Storage& storage = stages_[static_cast<std::size_t>(node.stage)];
        storage.shape.clear();
        for (const Tile::Step& s : node.tile.steps) storage.shape.push_back(s.extent);
        storage.values.assign(static_cast<std::size_t>(element_count(storage.shape)), fill);
        return storage;
    }

    void run_input_stage(const TreeNode& node) {
        Storage& storage = fresh_storage(node, 0);
        Access whole{node.buffer, {}, true};
        each_element(node.tile, [&] {
            std::vector<std::int64_t> from = at(node.source.index);
            float value = 0;
            if (node.source.stage < 0) value = kernel_.read(whole, from);
            else {
                const Storage& outer = stages_[static_cast<std::size_t>(node.source.stage)];
                // Along a box that overhangs the one around it, nobody reads.
                if (inside(outer.shape, from)) value = outer.values[flat(outer.shape, from)];
            }
            storage.values[flat(storage.shape, step_values(node.tile))] = value;
        });
        run(*node.children[0]);
    }

    void run_output_stage(const TreeNode& node) {
        Storage& storage = fresh_storage(node, static_cast<float>(s_.identity()));
        if (!node.owns) each_element(node.tile, [&] { storage.values[flat(storage.shape, step_values(node.tile))] = cell(node.source); });
        run(*node.children[0]);
        each_element(node.tile, [&] {
            float value = storage.values[flat(storage.shape, step_values(node.tile))];
            if (node.owns && s_.combine != Combine::assign) value = kernel_.finish(value, at(node.tile.index));
            cell(node.source) = value;
        });
    }

    void run_complete(const TreeNode& node) {
        for (const Tile& tile : node.tiles) each_element(tile, [&] { cell({-1, tile.index}) = static_cast<float>(s_.identity()); });
        run(*node.children[0]);
        if (!sources_.empty()) {
            std::vector<float> computed = kernel_.data[0];
            for (std::size_t i = 0; i < sources_.size(); ++i) kernel_.data[0][i] = sources_[i] < 0 ? 0 : computed[static_cast<std::size_t>(sources_[i])];
        }
        for (const Tile& tile : node.tiles)
            each_element(tile, [&] {
                float& c = cell({-1, tile.index});
                c = kernel_.finish(c, at(tile.index));
            });
    }

    void run_body(const TreeNode& node) {
        for (const Predicate& p : node.predicates)
            if (p.expression.at(values_) >= p.bound) return;
        std::vector<float> operands;
        for (std::size_t i = 0; i < node.reads.size(); ++i) {
            const OperandPlace& place = node.reads[i];
            std::vector<std::int64_t> index = at(place.index);
            if (place.stage < 0) {
                operands.push_back(kernel_.read(s_.reads[i], index));
            } else {
                const Storage& storage = stages_[static_cast<std::size_t>(place.stage)];
                require(inside(storage.shape, index), "a read leaves its stage");
                operands.push_back(storage.values[flat(storage.shape, index)]);
            }
        }
        float& target = cell(node.write);
        float value = kernel_.value(operands);
        if (s_.combine != Combine::assign) {
            target = kernel_.combine(target, value);
            return;
        }
        std::vector<std::int64_t> iterators = at(node.iterators), element;
        for (const Affine& d : s_.write.index) element.push_back(d.at(iterators));
        target = kernel_.finish(value, element);
    }

    const Statement& s_;
    Kernel kernel_;
    std::vector<std::int64_t> values_;
    std::vector<Storage> stages_;
    std::vector<std::int64_t> sources_;
};

std::vector<std::int64_t> restored_sources(const Statement& s, const Domain& domain) {
    return domain.restore == Restore::none ? std::vector<std::int64_t>{} : output_sources(domain, graph_axes(s));
}

}  // namespace

std::vector<float> interpret(const Statement& statement, const LoopTree& tree, const Buffers& buffers) {
    return Interpreter(statement, tree, buffers, {}).output();
}

std::vector<float> interpret(const Term& nest, const Buffers& buffers) {
    Statement statement = statement_of(nest_parts(nest).statement);
    return Interpreter(statement, resolve(nest), buffers, restored_sources(statement, domain_of(nest))).output();
}

std::vector<float> reference(const Statement& s, const Domain& domain, const Buffers& buffers) {
    Kernel kernel(s, buffers);
    DomainTest test(domain, graph_axes(s));
    const Shape& shape = s.buffers[0].shape;
    bool assign = s.combine == Combine::assign;
    if (!assign) kernel.data[0].assign(kernel.data[0].size(), static_cast<float>(s.identity()));
    std::vector<char> touched(kernel.data[0].size(), 0);
    std::vector<std::int64_t> it(s.axes.size(), 0);
    for (bool more = true; more;) {
        if (domain.whole() || test.contains(it.data())) {
            std::vector<std::int64_t> element;
            for (const Affine& d : s.write.index) element.push_back(d.at(it));
            std::vector<float> operands;
            for (const Access& a : s.reads) {
                std::vector<std::int64_t> index;
                for (const Affine& d : a.index) index.push_back(d.at(it));
                operands.push_back(kernel.read(a, index));
            }
            float& target = kernel.data[0][flat(shape, element)];
            touched[flat(shape, element)] = 1;
            target = assign ? kernel.finish(kernel.value(operands), element) : kernel.combine(target, kernel.value(operands));
        }
        more = false;
        for (std::size_t a = s.axes.size(); a-- > 0 && !more;) more = ++it[a] < s.axes[a].extent ? true : (it[a] = 0, false);
    }
    if (assign) return kernel.data[0];
    if (auto sources = restored_sources(s, domain); !sources.empty()) {
        std::vector<float> computed = kernel.data[0];
        for (std::size_t i = 0; i < sources.size(); ++i) {
            kernel.data[0][i] = sources[i] < 0 ? 0 : computed[static_cast<std::size_t>(sources[i])];
            touched[i] = 1;
        }
    }
    std::vector<std::int64_t> element(shape.size(), 0);
    for (std::size_t i = 0; i < touched.size(); ++i) {
        std::size_t rest = i;
        for (std::size_t d = shape.size(); d-- > 0;) element[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[d])), rest /= static_cast<std::size_t>(shape[d]);
        kernel.data[0][i] = touched[i] ? kernel.finish(kernel.data[0][i], element) : 0;
    }
    return kernel.data[0];
}

Buffers whole_number_buffers(const Statement& statement, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Buffers out;
    for (const Buffer& b : statement.buffers) {
        if (b.kind == BufferKind::output) continue;
        std::vector<float> values(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
        if (b.name == "K" || b.name == "C") for (float& v : values) v = static_cast<float>(1 << random() % 3);
        out[b.name] = std::move(values);
    }
    return out;
}

Buffers random_buffers(const Statement& statement, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    Buffers out;
    for (const Buffer& b : statement.buffers) {
        if (b.kind == BufferKind::output) continue;
        std::vector<float> values(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : values) v = b.name == "K" || b.name == "C" ? 1 + std::abs(normal(random)) : normal(random);
        out[b.name] = std::move(values);
    }
    return out;
}

}  // namespace loopegg
