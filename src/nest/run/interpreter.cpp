#include "nest/run/interpreter.hpp"

#include "base/error.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/instance_kernel.hpp"

namespace loopegg {
namespace {

class Interpreter {
public:
    Interpreter(const Statement& s, const LoopTree& tree, const Buffers& given, std::vector<std::int64_t> sources)
        : s_(s),
          kernel_(s, given),
          values_(static_cast<std::size_t>(tree.variables), 0),
          stages_(static_cast<std::size_t>(tree.stages)),
          sources_(std::move(sources)) {
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

    template <class Visit>
    void each_element(const Tile& tile, const Visit& visit, std::size_t step = 0) {
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

    // The float at a place, in a buffer that is written.
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
            if (node.source.stage < 0)
                value = kernel_.read(whole, from);
            else {
                const Storage& outer = stages_[static_cast<std::size_t>(node.source.stage)];
                // Nobody reads the elements of a box that are beyond the storage around it.
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
        if (!s_.coefficients.empty()) kernel_.add_coefficients(operands, at(node.iterators));
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
    InstanceKernel kernel_;
    std::vector<std::int64_t> values_;
    std::vector<Storage> stages_;
    std::vector<std::int64_t> sources_;
};

}  // namespace

std::vector<float> interpret(const Statement& statement, const LoopTree& tree, const Buffers& buffers) {
    return Interpreter(statement, tree, buffers, {}).output();
}

std::vector<float> interpret(const Term& nest, const Buffers& buffers) {
    Statement statement = statement_of(nest_parts(nest).statement);
    return Interpreter(statement, resolve(nest), buffers, restored_sources(statement, domain_of(nest))).output();
}

}  // namespace loopegg
