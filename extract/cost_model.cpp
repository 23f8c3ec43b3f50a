#include "extract/cost_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <xgboost/c_api.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

void check(int status) {
    if (status != 0) throw InternalFault(std::string("XGBoost: ") + XGBGetLastError());
}

struct Matrix {
    DMatrixHandle handle = nullptr;
    explicit Matrix(std::span<const std::vector<float>> rows) {
        const std::size_t columns = rows.empty() ? 0 : rows[0].size();
        std::vector<float> flat;
        flat.reserve(rows.size() * columns);
        for (const auto& r : rows) flat.insert(flat.end(), r.begin(), r.end());
        check(XGDMatrixCreateFromMat(flat.data(), rows.size(), columns, -1e30f, &handle));
    }
    ~Matrix() { XGDMatrixFree(handle); }
    Matrix(const Matrix&) = delete;
};

}  // namespace

struct CostModel::Impl {
    std::vector<std::vector<float>> rows;
    std::vector<float> speeds;
    BoosterHandle booster = nullptr;
    ~Impl() {
        if (booster) XGBoosterFree(booster);
    }
};

CostModel::CostModel() : impl_(std::make_unique<Impl>()) {}
CostModel::~CostModel() = default;
std::size_t CostModel::rows() const { return impl_->rows.size(); }
bool CostModel::ready() const { return impl_->booster != nullptr; }

void CostModel::add(std::vector<float> features, double speed) {
    impl_->rows.push_back(std::move(features));
    impl_->speeds.push_back(static_cast<float>(speed));
}

void CostModel::fit() {
    if (impl_->rows.size() < 8) return;  // fewer rows determine nothing
    Matrix data(impl_->rows);
    check(XGDMatrixSetFloatInfo(data.handle, "label", impl_->speeds.data(), impl_->speeds.size()));
    if (impl_->booster) XGBoosterFree(impl_->booster);
    impl_->booster = nullptr;
    BoosterHandle booster = nullptr;
    check(XGBoosterCreate(&data.handle, 1, &booster));
    impl_->booster = booster;
    const std::pair<const char*, const char*> settings[] = {
        {"objective", "reg:squarederror"}, {"max_depth", "6"}, {"eta", "0.2"}, {"min_child_weight", "1"}, {"nthread", "1"}, {"seed", "1"}, {"verbosity", "0"}};
    for (auto [name, value] : settings) check(XGBoosterSetParam(booster, name, value));
    for (int round = 0; round < 60; ++round) check(XGBoosterUpdateOneIter(booster, round, data.handle));
}

std::vector<double> CostModel::predict(std::span<const std::vector<float>> rows) const {
    if (!ready() || rows.empty()) return std::vector<double>(rows.size(), 0.0);
    Matrix data(rows);
    bst_ulong length = 0;
    const float* out = nullptr;
    check(XGBoosterPredict(impl_->booster, data.handle, 0, 0, 0, &length, &out));
    return {out, out + length};
}

namespace {

constexpr std::array<std::string_view, 42> names{"instances",
                                                 "bodies",
                                                 "loops",
                                                 "predicates",
                                                 "parallel",
                                                 "parallel_depth",
                                                 "serial_outside_parallel",
                                                 "vector",
                                                 "unrolled",
                                                 "block",
                                                 "thread",
                                                 "vthread",
                                                 "partial",
                                                 "stage_out",
                                                 "stage_out_elements",
                                                 "stage_out_owns",
                                                 "reduction_inside_stage",
                                                 "reduction_outside_stage",
                                                 "loops_inside_stage",
                                                 "unrolled_inside_stage",
                                                 "stages_in",
                                                 "stage_in_elements",
                                                 "inner1",
                                                 "inner2",
                                                 "inner3",
                                                 "inner1_unrolled",
                                                 "inner2_unrolled",
                                                 "inner3_unrolled",
                                                 "vector_stride_out",
                                                 "vector_stride_read0",
                                                 "vector_stride_read1",
                                                 "inner_stride_out",
                                                 "inner_stride_read0",
                                                 "inner_stride_read1",
                                                 "footprint_out",
                                                 "footprint_read0",
                                                 "footprint_read1",
                                                 "reuse_out",
                                                 "reuse_read0",
                                                 "reuse_read1",
                                                 "outer_trips",
                                                 "instances_per_task"};

float size(double n) { return static_cast<float>(std::log2(1.0 + n)); }

// What is known on the way down to one body.
struct Path {
    std::vector<const TreeNode*> loops;  // outermost first
    std::vector<const TreeNode*> stages;
    std::size_t stage_out_at = 0;  // how many loops was outside the innermost stage of the output
    const TreeNode* stage_out = nullptr;
};

struct BodyView {
    Path path;
    const TreeNode* body = nullptr;
    double instances = 1;
};

void collect(const Tree& node, Path path, std::vector<BodyView>& out) {
    switch (node->kind) {
        case TreeNode::Kind::loop: path.loops.push_back(node.get()); break;
        case TreeNode::Kind::stage:
            path.stages.push_back(node.get());
            if (node->buffer == 0) path.stage_out = node.get(), path.stage_out_at = path.loops.size();
            break;
        case TreeNode::Kind::body: {
            BodyView view{path, node.get(), 1};
            for (const TreeNode* l : path.loops) view.instances *= static_cast<double>(l->extent);
            out.push_back(std::move(view));
            return;
        }
        default: break;
    }
    for (const Tree& child : node->children) collect(child, path, out);
}

// How far an access moves in its buffer when one variable grows by one and all others are zero.
double stride_of(const Buffer& buffer, const std::vector<Index>& index, int var, std::size_t variables) {
    std::vector<std::int64_t> zero(variables, 0), one = zero;
    one[static_cast<std::size_t>(var)] = 1;
    double step = 1, moved = 0;
    for (std::size_t d = index.size(); d-- > 0;) {
        moved += step * static_cast<double>(index[d].at(one) - index[d].at(zero));
        step *= d < buffer.shape.size() ? static_cast<double>(buffer.shape[d]) : 1;
    }
    return std::abs(moved);
}

bool drives(const std::vector<Index>& index, int var) {
    return std::any_of(index.begin(), index.end(), [&](const Index& i) { return i.uses(var); });
}

class Describer {
public:
    Describer(const Statement& statement, const LoopTree& tree, const BodyView& view, std::size_t bodies)
        : statement_(statement), view_(view), variables_(static_cast<std::size_t>(tree.variables)) {
        for (const Access& r : statement.reads) accesses_.push_back(logical(r));
        output_ = logical(statement.write);
        set("instances", size(view.instances)), set("bodies", static_cast<float>(bodies));
        set("loops", static_cast<float>(view.path.loops.size())), set("predicates", static_cast<float>(view.body->predicates.size()));
        loops();
        stages();
        inner();
        reuse();
    }
    std::vector<float> values = std::vector<float>(names.size(), 0.0f);

private:
    void set(std::string_view name, float value) {
        auto it = std::find(names.begin(), names.end(), name);
        require(it != names.end(), "unknown feature");
        values[static_cast<std::size_t>(it - names.begin())] = value;
    }

    std::vector<Index> logical(const Access& a) const {
        std::vector<Index> out;
        for (const Affine& d : a.index) out.push_back(d.over(view_.body->iterators));
        return out;
    }

    void loops() {
        double parallel = 1, vector = 1, unrolled = 1, block = 1, thread = 1, vthread = 1, partial = 1, before = 1, outer = 1;
        int depth = 0;
        bool seen = false;
        for (std::size_t i = 0; i < view_.path.loops.size(); ++i) {
            const TreeNode& l = *view_.path.loops[i];
            const double n = static_cast<double>(l.extent);
            if (l.partial) partial *= n;
            switch (l.loop) {
                case LoopKind::parallel: parallel *= n, depth = static_cast<int>(i), seen = true; break;
                case LoopKind::vector: vector *= n; break;
                case LoopKind::unroll:
                case LoopKind::tensor: unrolled *= n; break;
                case LoopKind::bind: (l.place.starts_with("block") ? block : l.place.starts_with("thread") ? thread : vthread) *= n; break;
                case LoopKind::serial:
                    if (!seen) before *= n;
                    break;
            }
            if (i < view_.path.stage_out_at) outer *= n;
        }
        set("parallel", size(parallel)), set("parallel_depth", static_cast<float>(depth)), set("serial_outside_parallel", seen ? size(before) : 0);
        set("vector", size(vector)), set("unrolled", size(unrolled)), set("block", size(block)), set("thread", size(thread));
        set("vthread", size(vthread)), set("partial", size(partial)), set("outer_trips", size(outer));
        set("instances_per_task", size(view_.instances / std::max(1.0, parallel * block)));
    }

    void stages() {
        int in = 0;
        double in_elements = 0;
        for (const TreeNode* s : view_.path.stages)
            if (s->buffer != 0) ++in, in_elements += static_cast<double>(s->tile.elements());
        set("stages_in", static_cast<float>(in)), set("stage_in_elements", size(in_elements));
        if (!view_.path.stage_out) return;
        double inside = 1, outside = 1, loops = 0, unrolled = 1;
        for (std::size_t i = 0; i < view_.path.loops.size(); ++i) {
            const TreeNode& l = *view_.path.loops[i];
            const double n = static_cast<double>(l.extent);
            if (!drives(output_, l.var)) (i < view_.path.stage_out_at ? outside : inside) *= n;
            if (i >= view_.path.stage_out_at) ++loops, unrolled *= l.loop == LoopKind::unroll || l.loop == LoopKind::vector ? n : 1;
        }
        set("stage_out", 1), set("stage_out_elements", size(static_cast<double>(view_.path.stage_out->tile.elements())));
        set("stage_out_owns", view_.path.stage_out->owns), set("reduction_inside_stage", size(inside)), set("reduction_outside_stage", size(outside));
        set("loops_inside_stage", static_cast<float>(loops)), set("unrolled_inside_stage", size(unrolled));
    }

    float stride_feature(const Buffer& buffer, const std::vector<Index>& index, int var) const { return size(stride_of(buffer, index, var, variables_)); }

    void inner() {
        constexpr std::array<std::string_view, 3> extent{"inner1", "inner2", "inner3"}, unrolled{"inner1_unrolled", "inner2_unrolled", "inner3_unrolled"};
        std::size_t k = 0;
        for (std::size_t i = view_.path.loops.size(); i-- > 0;) {
            const TreeNode& l = *view_.path.loops[i];
            const bool vector = l.loop == LoopKind::vector;
            if (vector || k == 0) {
                const std::string kind = vector ? "vector_stride_" : "inner_stride_";
                set(kind + "out", stride_feature(statement_.buffers[0], output_, l.var));
                for (std::size_t r = 0; r < std::min<std::size_t>(2, accesses_.size()); ++r)
                    set(kind + "read" + std::to_string(r),
                        stride_feature(statement_.buffers[static_cast<std::size_t>(statement_.reads[r].buffer)], accesses_[r], l.var));
            }
            if (vector || k >= 3) continue;
            set(extent[k], size(static_cast<double>(l.extent))), set(unrolled[k], l.loop == LoopKind::unroll);
            ++k;
        }
    }

    // How many elements of each buffer the loops inside the output's stage touch, and how often each is used.
    void reuse() {
        const std::size_t from = view_.path.stage_out ? view_.path.stage_out_at : view_.path.loops.size() / 2;
        auto one = [&](const std::string& name, const std::vector<Index>& index) {
            double touched = 1, trips = 1;
            for (std::size_t i = from; i < view_.path.loops.size(); ++i) {
                const double n = static_cast<double>(view_.path.loops[i]->extent);
                trips *= n;
                if (drives(index, view_.path.loops[i]->var)) touched *= n;
            }
            set("footprint_" + name, size(touched)), set("reuse_" + name, size(trips / touched));
        };
        one("out", output_);
        for (std::size_t r = 0; r < std::min<std::size_t>(2, accesses_.size()); ++r) one("read" + std::to_string(r), accesses_[r]);
    }

    const Statement& statement_;
    const BodyView& view_;
    std::size_t variables_;
    std::vector<Index> output_;
    std::vector<std::vector<Index>> accesses_;
};

}  // namespace

std::span<const std::string_view> feature_names() { return names; }

std::vector<float> features_of(const Statement& statement, const LoopTree& tree) {
    std::vector<BodyView> bodies;
    collect(tree.root, {}, bodies);
    require(!bodies.empty(), "a loop tree without a body");
    const BodyView& largest = *std::max_element(bodies.begin(), bodies.end(), [](const BodyView& a, const BodyView& b) { return a.instances < b.instances; });
    return Describer(statement, tree, largest, bodies.size()).values;
}

std::vector<float> features_of(const Term& nest) { return features_of(statement_of(nest_parts(nest).statement), resolve(nest)); }

}  // namespace loopegg
