// From a schedule to its loop tree, in two walks: the first numbers the loops and solves for the iterators at every `done`, the second
// builds the nodes with the tiles that those solutions give.
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/run/solve.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

// One path from the root to a `done`, solved.
struct Leaf {
    std::vector<SolvedLoop> loops;
    Solution solution;
};

LoopKind kind_of(const std::string& word) {
    if (word == "par") return LoopKind::parallel;
    if (word == "vec") return LoopKind::vector;
    if (word == "unroll") return LoopKind::unroll;
    if (word == "at" || word == "serial") return LoopKind::serial;
    throw UserError("unknown kind of loop '" + word + "': expected serial, par, vec or unroll");
}

class Resolver {
public:
    Resolver(const Statement& statement, bool restored) : s_(statement), restored_(restored) {}

    LoopTree run(const Term& sched) {
        std::vector<SolvedLoop> path;
        number(sched, path);
        next_var_ = loops_;
        loops_ = 0;
        leaf_ = 0;
        try {
            return {build_root(sched, restored_), next_var_, stages_};
        } catch (const OutputsMeet&) {
            loops_ = stages_ = 0;
            leaf_ = 0;
            return {build_root(sched, true), next_var_, stages_};
        }
    }

private:
    // The storages around a node, outermost first.
    struct Storage {
        int buffer, stage, first_inner;
        int lane = -1;  // the variable of a partial loop
    };
    using Around = std::vector<Storage>;

    // Is thrown where the parts of a cat share some output elements but not all, or where no loop of theirs distinguishes elements. Then the whole output is
    // begun and finished at the root.
    struct OutputsMeet {};

    Tree build_root(const Term& sched, bool complete_at_root) {
        bool reduces = s_.combine != Combine::assign;
        if (!reduces || !complete_at_root) return build(sched, {}, reduces);
        TreeNode node{.kind = TreeNode::Kind::complete};
        node.tiles = {whole_output()};
        node.children = {build(sched, {}, false)};
        return std::make_shared<TreeNode>(std::move(node));
    }

    void number(const Term& sched, std::vector<SolvedLoop>& path) {
        const std::string& op = sched.op().text();
        if (op == "done") {
            leaves_.push_back({path, solve(s_, path)});
        } else if (sched.is("cat", 2)) {
            auto first = path;
            number(sched[0], first);
            number(sched[1], path);
        } else if (sched.is("stage", 2)) {
            number(sched[1], path);
        } else if (is_loop_operator(op) && sched.size() == (op == "bind" || op == "partial" ? 3u : 2u)) {
            path.push_back({loop_axis(sched), loops_++});
            number(loop_rest(sched), path);
        } else {
            throw UserError("'" + to_string(sched) + "' is no schedule");
        }
    }

    static std::size_t leaf_count(const Term& sched) {
        if (sched.size() == 0) return 1;
        if (sched.is("cat", 2)) return leaf_count(sched[0]) + leaf_count(sched[1]);
        return leaf_count(sched[sched.size() - 1]);
    }

    std::span<const Leaf> leaves_below(const Term& sched) const { return std::span(leaves_).subspan(leaf_, leaf_count(sched)); }

    // `open`: the output elements below have not begun, so a Complete is still to be placed at this node or further in.
    Tree build(const Term& sched, const Around& around, bool open) {
        if (open && !is_output_stage(sched) && must_complete(sched)) {
            TreeNode node{.kind = TreeNode::Kind::complete};
            node.tiles = output_tiles(sched);
            node.children = {build(sched, around, false)};
            return std::make_shared<TreeNode>(std::move(node));
        }
        if (sched.is("done", 0)) return body(around);
        if (sched.is("cat", 2)) {
            TreeNode node{.kind = TreeNode::Kind::cat};
            Tree first = build(sched[0], around, open);
            node.children = {first, build(sched[1], around, open)};
            return std::make_shared<TreeNode>(std::move(node));
        }
        if (sched.is("stage", 2)) return stage(sched, around, open);
        return loop(sched, around, open);
    }

    // The tiles that the leaves below write, each once.
    std::vector<Tile> output_tiles(const Term& sched) {
        std::vector<TilePlan> plans;
        std::vector<const Leaf*> owners;
        for (const Leaf& leaf : leaves_below(sched)) {
            if (!output_tile_exists(s_, leaf.solution, loops_)) throw OutputsMeet{};
            TilePlan plan = plan_output_tile(s_, leaf.solution, loops_);
            bool known = false;
            for (std::size_t i = 0; i < plans.size() && !known; ++i) {
                known = plans[i].same_elements(plan);
                if (!known && !outputs_apart(s_, owners[i]->solution, leaf.solution, loops_)) throw OutputsMeet{};
            }
            if (!known) plans.push_back(std::move(plan)), owners.push_back(&leaf);
        }
        std::vector<Tile> tiles;
        for (TilePlan& plan : plans) tiles.push_back(to_tile(plan));
        return tiles;
    }

    bool is_output_stage(const Term& sched) const { return sched.is("stage", 2) && stage_buffer(sched).first == 0; }

    std::pair<int, std::string> stage_buffer(const Term& sched) const {
        const Term& b = sched[0];
        const bool scoped = b.is("shared", 1) || b.is("local", 1) || b.is("ahead", 1);
        std::string name = scoped ? b[0].op().text() : b.op().text();
        if (name.size() != 1 || std::string_view("OIJKWAB").find(name) == std::string_view::npos)
            throw UserError("'" + name + "' is no buffer to stage: expected O, I, J, K, W, A or B");
        int buffer = s_.buffer(name);
        auto readers = std::count_if(s_.reads.begin(), s_.reads.end(), [&](const Access& a) { return a.buffer == buffer; });
        bool idle = buffer < 0 || (buffer == 0 ? readers > 0 : readers == 0);
        return {idle ? -1 : buffer, scoped ? b.op().text() : "local"};
    }

    // Whether output elements must be begun here: some element needs several children or iterations of this node.
    bool must_complete(const Term& sched) {
        if (sched.is("done", 0)) return true;
        if (sched.is("stage", 2)) return false;
        auto below = leaves_below(sched);
        if (sched.is("cat", 2)) {
            auto first = below.subspan(0, leaf_count(sched[0])), second = below.subspan(leaf_count(sched[0]));
            for (const Leaf& a : first)
                for (const Leaf& b : second)
                    if (!outputs_apart(s_, a.solution, b.solution, loops_)) return true;
            return false;
        }
        if (sched.op().text() == "partial") return true;
        for (const Leaf& leaf : below)
            if (!output_determines(s_, leaf.solution, loops_) || !output_tile_exists(s_, leaf.solution, loops_ + 1)) return true;
        return false;
    }

    Tree loop(const Term& sched, Around around, bool open) {
        const std::string& op = sched.op().text();
        TreeNode node{.kind = TreeNode::Kind::loop};
        node.axis = loop_axis(sched);
        node.extent = axis_extent(node.axis);
        node.var = loops_++;
        if (op == "bind") {
            const std::string& place = sched[0].op().text();
            const bool tensor = place.starts_with(tensor_place);
            node.loop = tensor ? LoopKind::tensor : LoopKind::bind, node.place = tensor ? place.substr(tensor_place.size()) : place;
        } else if (op == "partial" && sched[0].op().text().starts_with("threadIdx"))
            node.loop = LoopKind::bind, node.place = sched[0].op().text(), node.partial = true;
        else if (op == "partial")
            node.loop = kind_of(sched[0].op().text()), node.partial = true;
        else
            node.loop = kind_of(op);
        if (node.partial) {
            if (s_.combine == Combine::assign) throw UserError("partial results need a reduction: " + to_string(s_.term));
            node.buffer = 0;
            node.scope = "local";
            give_storage(node, common_plan(0, loop_rest(sched)), around);
            around.back().lane = node.var;
        }
        node.children = {build(loop_rest(sched), around, open)};
        return std::make_shared<TreeNode>(std::move(node));
    }

    TilePlan plan_of(int buffer, const Leaf& leaf, int first_inner) const {
        return buffer == 0 ? plan_output_tile(s_, leaf.solution, first_inner) : plan_input_tile(access_of(buffer), leaf.solution, first_inner);
    }

    // The one tile that all leaves below touch.
    TilePlan common_plan(int buffer, const Term& below) const {
        std::optional<TilePlan> plan;
        for (const Leaf& leaf : leaves_below(below)) {
            TilePlan here = plan_of(buffer, leaf, loops_);
            if (plan && !plan->same_elements(here))
                throw UserError("the parts below a stage of " + s_.buffers[static_cast<std::size_t>(buffer)].name + " touch different tiles");
            if (!plan) plan = std::move(here);
        }
        return *plan;
    }

    void give_storage(TreeNode& node, TilePlan plan, Around& around) {
        node.stage = stages_++;
        node.tile = to_tile(plan);
        node.source = source_of(node.buffer, plan, node.tile, around);
        around.push_back({node.buffer, node.stage, loops_});
    }

    Tree stage(const Term& sched, Around around, bool open) {
        TreeNode node{.kind = TreeNode::Kind::stage};
        std::tie(node.buffer, node.scope) = stage_buffer(sched);
        if (node.buffer < 0) return build(sched[1], around, open);
        if (node.buffer == 0) {
            node.owns = open || s_.combine == Combine::assign;
            open = false;
        }
        give_storage(node, common_plan(node.buffer, sched[1]), around);
        node.children = {build(sched[1], around, open)};
        return std::make_shared<TreeNode>(std::move(node));
    }

    const Access& access_of(int buffer) const {
        for (const Access& a : s_.reads)
            if (a.buffer == buffer) return a;
        return s_.write;
    }

    // Where the tile's elements are in the nearest storage of the buffer around the tile, or in the buffer itself.
    OperandPlace source_of(int buffer, const TilePlan& plan, const Tile& tile, const Around& around) const {
        for (auto it = around.rbegin(); it != around.rend(); ++it) {
            if (it->buffer != buffer) continue;
            if (auto index = plan_of(buffer, leaves_[leaf_], it->first_inner).local_of_tile(plan, tile)) {
                if (it->lane >= 0) index->insert(index->begin(), Index::variable(it->lane));
                return {it->stage, std::move(*index)};
            }
            if (buffer == 0) throw UserError("a stage of O inside another cannot be distinguished from its neighbours'");
            break;
        }
        return {-1, tile.index};
    }

    Tile to_tile(TilePlan& plan) {
        for (TilePlan::Step& step : plan.steps) step.var = next_var_++;
        return plan.tile();
    }

    Tile whole_output() {
        Tile tile;
        for (std::int64_t extent : s_.buffers[0].shape) {
            tile.steps.push_back({next_var_, extent});
            tile.index.push_back(Index::variable(next_var_++));
        }
        return tile;
    }

    Tree body(const Around& around) {
        const Leaf& leaf = leaves_[leaf_++];
        TreeNode node{.kind = TreeNode::Kind::body};
        for (const Linear& it : leaf.solution.iterators) node.iterators.push_back(it.index());
        for (const Condition& p : leaf.solution.conditions) node.predicates.push_back({p.expression.index(), p.bound});
        auto place = [&](const Access& a) {
            for (auto it = around.rbegin(); it != around.rend(); ++it) {
                if (it->buffer != a.buffer) continue;
                OperandPlace p{it->stage, plan_of(a.buffer, leaf, it->first_inner).local_of_body(a, leaf.solution)};
                if (it->lane >= 0) p.index.insert(p.index.begin(), Index::variable(it->lane));
                return p;
            }
            OperandPlace p;
            for (const Affine& d : a.index) p.index.push_back(d.over(node.iterators));
            return p;
        };
        node.write = place(s_.write);
        for (const Access& a : s_.reads) node.reads.push_back(place(a));
        return std::make_shared<TreeNode>(std::move(node));
    }

    const Statement& s_;
    bool restored_;
    int loops_ = 0, next_var_ = 0, stages_ = 0;
    std::size_t leaf_ = 0;
    std::vector<Leaf> leaves_;
};

}  // namespace

LoopTree resolve(const Statement& statement, const Term& sched) { return Resolver(statement, false).run(complete(statement, sched)); }

LoopTree resolve(const Term& nest) {
    NestParts parts = nest_parts(nest);
    Statement statement = statement_of(parts.statement);
    return Resolver(statement, !parts.restore.empty()).run(complete(statement, parts.schedule));
}

}  // namespace loopegg
