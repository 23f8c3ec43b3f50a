#include "backends/network/network_plan.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "backends/lower/default_schedule.hpp"
#include "backends/network/int8_calibration.hpp"
#include "backends/network/value_orders.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "graph/operators.hpp"
#include "nest/term/blockwise.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement_kinds.hpp"
#include "nest/term/value.hpp"

namespace loopegg {
namespace {

bool is_view(const std::string& op) { return op == "flatten" || op == "reshape" || op == "identity"; }

// The values of a tensor. Without weights, every tensor has no values.
const std::vector<float>& tensor(const Weights* w, const std::string& name) {
    static const std::vector<float> none;
    if (!w) return none;
    auto found = w->find(name);
    if (found == w->end()) throw UserError("the weights have no tensor '" + name + "'");
    return found->second.values;
}

// Batch norm at inference: x * scale + shift, per channel.
struct ScaleShift {
    std::vector<float> scale, shift;
};
ScaleShift scale_shift(const Node& bn, const Weights* w) {
    const auto &gamma = tensor(w, bn.name + ".weight"), &beta = tensor(w, bn.name + ".bias"), &mean = tensor(w, bn.name + ".running_mean"),
               &var = tensor(w, bn.name + ".running_var");
    ScaleShift s;
    for (std::size_t c = 0; c < gamma.size(); ++c) {
        const double k = gamma[c] / std::sqrt(static_cast<double>(var[c]) + bn.real("eps"));
        s.scale.push_back(static_cast<float>(k));
        s.shift.push_back(static_cast<float>(beta[c] - mean[c] * k));
    }
    return s;
}

class Planner {
public:
    Planner(const Graph& graph, const Weights* weights, const Schedules& schedules, const Target& target)
        : graph_(graph), weights_(weights), schedules_(schedules), target_(target), rules_(fusion_rules(target)) {
        for (std::size_t i = 0; i < graph.inputs.size(); ++i) position_[graph.inputs[i].name] = -1;
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            position_[graph.nodes[i].name] = static_cast<int>(i);
            for (const std::string& in : graph.nodes[i].inputs) users_[in].push_back(&graph.nodes[i]);
        }
        for (const std::string& out : graph.outputs) users_[out].push_back(nullptr);
    }

    std::vector<BlockChain> chains() {
        std::vector<BlockChain> found;
        chains_ = &found;
        run();
        return found;
    }

    NetworkPlan run() {
        for (const GraphInput& in : graph_.inputs) plan_.sizes[in.name] = element_count(in.shape);
        for (const Node& node : graph_.nodes)
            if (!done_.contains(node.name)) visit(node);
        require_one_order(plan_, graph_);
        return std::move(plan_);
    }

private:
    const Node* only_user(const std::string& value) const {
        auto found = users_.find(value);
        return found != users_.end() && found->second.size() == 1 ? found->second[0] : nullptr;
    }
    // The value of fused nodes has the name of the last of these nodes.
    std::string actual(const std::string& value) const {
        auto found = renamed_.find(value);
        return found == renamed_.end() ? value : found->second;
    }

    void visit(const Node& node) {
        plan_.sizes[node.name] = element_count(node.shape);
        if (node.op == "parameter") {
            plan_.constants[node.name] = tensor(weights_, node.name);
            return;
        }
        if (is_view(node.op)) {
            plan_.inside[node.name] = {actual(node.inputs[0]), 0};
            return;
        }
        if (node.op == "concat") return concat(node);
        if (node.op == "transpose") return transpose(node);
        if (node.op == "slice") return slice(node);
        if (node.op == "pad") return pad(node);
        if (node.op == "expand") return expand(node);
        if (node.op == "onnx") return opaque(node);
        if (const auto waiting = waiting_.find(node.name); waiting != waiting_.end()) {
            for (Operand& o : waiting->second.operands) o.value = actual(o.value);  // what is masked by may be made after the scores
            waiting->second.operands.push_back({actual(node.inputs[1]), {}});
            plan_.steps.push_back({std::move(waiting->second), {}, {}});
            return;
        }
        const std::vector<Statement> statements = statements_of(node);
        if (statements.empty()) throw UserError("no way to compile the operator '" + node.op + "' of node '" + node.name + "'");
        if (statements.size() > 1) return several(node, statements);
        single(node, statements[0]);
    }

    // Softmax and layer norm: every nest but the last writes a scratch, which later ones read as J, K.
    void several(const Node& node, const std::vector<Statement>& statements) {
        std::vector<std::string> scratch;
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const Statement& s = statements[i];
            NetworkStep step{node.name, default_nest(s, target_), {}};
            const bool last = i + 1 == statements.size();
            const std::string to = last ? node.name : node.name + "#" + std::to_string(i);
            plan_.sizes[to] = element_count(s.buffers[0].shape);
            for (const Buffer& b : s.buffers) {
                if (b.kind == BufferKind::output)
                    step.operands.push_back({to, {}});
                else if (b.name == "I")
                    step.operands.push_back({actual(node.inputs[0]), {}});
                else if (b.name == "J" || b.name == "K")
                    step.operands.push_back({scratch.at(b.name == "J" ? 0 : 1), {}});
                else
                    step.operands.push_back({"", tensor(weights_, node.name + (b.name == "A" ? ".weight" : ".bias"))});
            }
            scratch.push_back(to);
            plan_.steps.push_back({std::move(step), {}, {}});
        }
    }

    static bool is_one_site(const Term& value) { return value.is("prepare", 2) ? is_one_site(value[1]) : value.is("site", 1); }

    // Plans one nest, with the nodes after it that the rules that span sites take into it: each follower that is the only reader of what was made so far.
    void single(const Node& node, const Statement& statement) {
        const auto fed = fed_.find(node.name);
        Term value("site", {fed == fed_.end() ? nest_of(node) : fed->second.nest});
        std::vector<Operand> operands;
        for (const Buffer& b : statement.buffers)
            if (b.kind != BufferKind::output) operands.push_back(own_operand(node, b));
        std::vector<FusedRule> fused = fed == fed_.end() ? std::vector<FusedRule>{} : fed->second.rules;
        std::string last = node.name;
        for (const Node* next = only_user(last); next; next = only_user(last)) {
            const std::vector<const Node*> viewed = views_before_transpose(*next);
            if (!viewed.empty()) next = only_user(viewed.back()->name);
            auto more = next->op == "transpose" ? mover(*next, node) : follower(*next, last, node);
            if (!more) break;
            const std::vector<FusionStep> steps = rules_->fuse(Term("then", {value, more->nest}));
            if (steps.empty() || !is_one_site(steps.back().value)) break;
            value = steps.back().value;
            operands.insert(operands.end(), more->operands.begin(), more->operands.end());
            for (; value.is("prepare", 2); value = value[1]) prepare(value, operands);
            for (const FusionStep& step : steps)
                if (step.effect != FusionStep::Effect::arranges) fused.push_back({step.rule, step.effect == FusionStep::Effect::takes_in ? next->name : ""});
            for (const Node* view : viewed) take(*view, last);
            take(*next, last);
        }
        plan_.sizes[last] = element_count(node.shape);
        const bool in_blocks = computed_in_blocks(node);
        if (const auto chain = in_blocks || chains_ ? chain_after(value, last) : std::nullopt; chain && chains_)
            chains_->push_back({node.name, rules_->block_forms(chain->value)});
        else if (in_blocks)
            return by_blocks(node, chain, std::move(operands), std::move(fused));
        const Term stmt = nest_parts(value[0]).statement;
        if (in_a_row(node)) {
            row(node, schedules_.at(node.name), stmt, std::move(operands), last, std::move(fused));
            return;
        }
        NetworkStep step{node.name, chosen(node, stmt), {{last, {}}}, std::move(fused)};
        step.operands.insert(step.operands.end(), operands.begin(), operands.end());
        plan_.steps.push_back({std::move(step), {}, {}});
    }

    bool computed_in_blocks(const Node& site) const {
        const auto given = schedules_.find(site.name);
        return given != schedules_.end() && given->second.is("nest", 2) && is_blockwise(given->second[0]);
    }

    // Functions of each element of `last`, a softmax along rows that alone reads these, and a product that alone reads the softmax, as its left operand.
    struct Chain {
        Term value;
        std::vector<const Node*> between;  // before the product
        std::vector<Operand> operands;     // that the functions read
        const Node* product;
    };
    std::optional<Chain> chain_after(const Term& value, std::string last) const {
        if (!value[0].is("nest", 2)) return {};
        Chain chain{value, {}, {}, nullptr};
        const Node* softmax = only_user(last);
        for (; softmax && softmax->op != "softmax"; softmax = only_user(last)) {
            if (!is_view(softmax->op) && !add_function(chain, *softmax, last)) return {};
            chain.between.push_back(softmax);
            last = softmax->name;
        }
        const Node* product = softmax ? only_user(softmax->name) : nullptr;
        if (!product || product->op != "matmul" || product->inputs[0] != softmax->name || in_a_row(*product)) return {};
        chain.between.push_back(softmax);
        Term rows = chain.value;
        const std::vector<Statement> nests = statements_of(*softmax);
        for (std::size_t i = 0; i + 1 < nests.size(); ++i) rows = Term("with", {rows, nest_of(nests[i])});
        rows = Term("then", {rows, nest_of(nests.back())});
        const auto fed = fed_.find(product->name);
        chain.value = Term("feed", {Term("I"), rows, fed == fed_.end() ? nest_of(*product) : fed->second.nest}), chain.product = product;
        return chain;
    }

    // A function of each element of `last`, which may read another operand.
    bool add_function(Chain& chain, const Node& node, const std::string& last) const {
        const std::vector<Statement> statements = statements_of(node);
        if (statements.size() != 1 || fed_.contains(node.name) || done_.contains(node.name)) return false;
        Term stmt = statements[0].term;
        const bool second = node.inputs.size() == 2 && node.inputs[1] == last;
        if (node.inputs.size() > 2 || (second && (node.inputs[0] == last || (node.op != "add" && node.op != "mul")))) return false;
        if (second && stmt.is("stretch", 7)) stmt = Term("stretch", {stmt[0], stmt[1], stmt[2], stmt[3], stmt[4], stmt[6], stmt[5]});
        if (!works_by_element(stmt) && !works_by_pair(stmt)) return false;
        if (node.inputs.size() == 2) chain.operands.push_back({node.inputs[second ? 0 : 1], {}});
        chain.value = Term("then", {chain.value, nest_of(statement_of(stmt))});
        return true;
    }

    // Plans a chain as one step, which runs where the last of its nodes would.
    void by_blocks(const Node& node, const std::optional<Chain>& chain, std::vector<Operand> operands, std::vector<FusedRule> fused) {
        const Term& given = schedules_.at(node.name);
        const Blockwise blocks = blockwise_of(given[0]);
        const auto wanted = [&](const BlockForm& form) {
            const auto made = blockwise_form(form.value, blocks.row_block);
            return made && plain_blocks(*made) == plain_blocks(given[0]);
        };
        const std::vector<BlockForm> forms = chain ? rules_->block_forms(chain->value) : std::vector<BlockForm>{};
        const auto form = std::find_if(forms.begin(), forms.end(), wanted);
        if (form == forms.end()) throw UserError("no rules compute what follows site '" + node.name + "' by these blocks: " + to_string(given));
        for (const std::string& rule : form->rules) fused.push_back({rule, ""});
        operands.insert(operands.begin(), Operand{chain->product->name, {}});  // the product's own operand may not exist yet
        operands.insert(operands.end(), chain->operands.begin(), chain->operands.end());
        for (const Node* node : chain->between) done_.insert(node->name);
        waiting_[chain->product->name] = {node.name, given, std::move(operands), std::move(fused)};
    }
    // Without the schedules of its parts.
    static Term plain_blocks(const Term& stmt) {
        std::vector<Term> naive;
        for (const BlockPart& part : blockwise_of(stmt).parts) naive.push_back(nest_of(part.statement));
        return with_part_nests(stmt, naive);
    }

    bool in_a_row(const Node& site) const {
        const auto given = schedules_.find(site.name);
        return given != schedules_.end() && given->second.is("prepare", 2);
    }

    // The views that are read one after another, each by nothing else, until a transpose reads the last one. Empty where there is no such transpose.
    std::vector<const Node*> views_before_transpose(const Node& first) const {
        std::vector<const Node*> views;
        const Node* node = &first;
        for (; node && is_view(node->op); node = only_user(node->name)) views.push_back(node);
        return node && node->op == "transpose" ? views : std::vector<const Node*>{};
    }

    // A transpose as a nest. None for more than four dimensions, where neighbours that stay neighbours are one.
    static std::optional<Term> move_of(const Node& transpose) {
        const Shape& in = transpose.input_shapes[0];
        std::vector<int> place;  // of each dimension among those that are larger than 1
        for (int next = 0; std::int64_t size : in) place.push_back(size > 1 ? next++ : -1);
        struct Piece {
            int last;  // the place of its last dimension
            std::int64_t size;
        };
        std::vector<Piece> written;
        for (std::int64_t dimension : transpose.integers("order")) {
            const auto d = static_cast<std::size_t>(dimension);
            if (in[d] == 1) continue;
            if (!written.empty() && written.back().last + 1 == place[d])
                written.back() = {place[d], written.back().size * in[d]};
            else
                written.push_back({place[d], in[d]});
        }
        if (written.size() > 4) return {};
        written.insert(written.begin(), 4 - written.size(), {-1, 1});
        std::vector<std::size_t> read{0, 1, 2, 3};
        std::stable_sort(read.begin(), read.end(), [&](std::size_t a, std::size_t b) { return written[a].last < written[b].last; });
        std::int64_t digits = 0;
        std::vector<Term> sizes;
        for (std::size_t i : read) digits = digits * 10 + static_cast<std::int64_t>(i) + 1;
        for (const Piece& piece : written) sizes.emplace_back(piece.size);
        return nest_of(statement_of(Term("order", {Term("I"), Term(digits), Term("move", std::move(sizes))})));
    }

    // Notes that the only reader of a transpose reads the input of the transpose instead, where a rule says how.
    bool read_before(const Node& transpose) {
        const Node* reader = only_user(transpose.name);
        const auto moved = move_of(transpose);
        if (!reader || !moved || !reader->domain.whole() || in_a_row(*reader) || waiting_.contains(reader->name) || done_.contains(reader->name)) return false;
        const std::vector<Statement> statements = statements_of(*reader);
        if (statements.size() != 1) return false;
        const std::string buffer = reader->inputs[0] == transpose.name ? "I" : "J";
        if (statements[0].buffer(buffer) < 0) return false;
        const auto known = fed_.find(reader->name);
        const Term nest = known == fed_.end() ? nest_of(*reader) : known->second.nest;
        const std::vector<FusionStep> steps = rules_->fuse(Term("feed", {Term(buffer), Term("site", {*moved}), nest}));
        if (steps.empty() || !steps.back().value.is("site", 1)) return false;
        Fed& fed = fed_[reader->name];
        fed.nest = steps.back().value[0];
        for (const FusionStep& step : steps) fed.rules.push_back({step.rule, transpose.name});
        renamed_[transpose.name] = actual(transpose.inputs[0]);
        return true;
    }

    // Plans a site as nests in a row. Each nest but the last writes a scratch that the next one reads. The last nest has what was fused into the site.
    void row(const Node& node, const Term& value, const Term& stmt, std::vector<Operand> operands, const std::string& last, std::vector<FusedRule> fused) {
        std::vector<Term> nests = nests_of(value[1]);
        nests.back() = with_statement(nests.back(), with_epilogues_of(stmt, nest_parts(nests.back()).statement));
        Term whole("site", {nests[0]});
        for (std::size_t i = 1; i < nests.size(); ++i) whole = Term("then", {whole, nests[i]});
        reorder(Term("prepare", {value[0], whole}), operands);
        std::size_t next = 0;
        std::string before;
        for (std::size_t i = 0; i < nests.size(); ++i) {
            const bool ends = i + 1 == nests.size();
            const std::string to = ends ? last : node.name + "#" + std::to_string(i);
            NetworkStep step{node.name, complete(nests[i]), {}, ends ? std::move(fused) : std::vector<FusedRule>{}};
            const Statement s = statement_of(nest_parts(nests[i]).statement);
            for (const Buffer& b : s.buffers) {
                if (b.kind == BufferKind::output)
                    step.operands.push_back({to, {}});
                else if (b.name == "I" && i > 0)
                    step.operands.push_back({before, {}});
                else
                    step.operands.push_back(std::move(operands.at(next++)));
            }
            if (!ends) plan_.sizes[to] = element_count(s.buffers[0].stored_shape());
            before = to;
            plan_.steps.push_back({std::move(step), {}, {}});
        }
    }

    // The operands of a value that prepares its weights, as the nests inside it take them.
    static void reorder(const Term& value, std::vector<Operand>& operands) {
        const std::vector<Buffer> before = operands_of(value), after = operands_of(value[1]);
        require(before.size() == after.size() && before.size() == operands.size(), "weights are transformed, none are left out");
        Operands constants;
        for (Operand& o : operands) constants.push_back(std::move(o.constants));
        constants = prepared(value[0], after, std::move(constants));
        std::vector<Operand> moved(operands.size());
        for (std::size_t i = 0; i < after.size(); ++i) {
            const auto from =
                static_cast<std::size_t>(std::find_if(before.begin(), before.end(), [&](const Buffer& b) { return b.name == after[i].name; }) - before.begin());
            moved[i] = {operands.at(from).value, std::move(constants[i])};
        }
        operands = std::move(moved);
    }

    static Term with_statement(const Term& nest, const Term& stmt) {
        NestParts parts = nest_parts(nest);
        parts.statement = stmt;
        return nest_from(parts);
    }
    static bool holds_epilogue(const Term& stmt) { return stmt.is("epilogue", 2) || (stmt.is("layout", 4) && holds_epilogue(stmt[3])); }
    // `inner` with the epilogues of `stmt` in place of its own.
    static Term with_epilogues_of(const Term& stmt, Term inner) {
        if (inner.is("layout", 4) && holds_epilogue(inner))  // a layout around everything stays there
            return Term("layout", {inner[0], inner[1], inner[2], with_epilogues_of(stmt, inner[3])});
        while (inner.is("epilogue", 2)) inner = inner[1];
        return stmt.is("epilogue", 2) ? with_epilogue(with_epilogues_of(stmt[1], inner), stmt[0]) : inner;
    }

    Operand own_operand(const Node& node, const Buffer& b) const {
        if (b.name == "I") return {actual(node.inputs[0]), {}};
        if (b.name == "J") return {actual(node.inputs[1]), {}};
        if (b.name == "W") return {"", tensor(weights_, node.name + ".weight"), scales_of(node)};
        if (b.name == "E0bias") return {"", tensor(weights_, node.name + ".bias")};
        return {"", channel_constants(node, b)};
    }

    std::vector<float> scales_of(const Node& node) const {
        const auto found = weights_ ? weights_->find(int8_scales_name(node.name)) : Weights::const_iterator{};
        return weights_ && found != weights_->end() ? found->second.values : std::vector<float>{};
    }

    // The nest of a node that reads `last`, and its other operands; none if these do not exist yet when `site` runs.
    struct Follower {
        Term nest;
        std::vector<Operand> operands;
    };
    std::optional<Follower> follower(const Node& next, const std::string& last, const Node& site) const {
        if (is_view(next.op) || !next.domain.whole() || fed_.contains(next.name) || done_.contains(next.name)) return {};
        const std::vector<Statement> statements = statements_of(next);
        if (statements.size() != 1) return {};
        Follower f{nest_of(statements[0]), {}};
        for (const Buffer& b : statements[0].buffers) {
            if (b.kind == BufferKind::output || b.name == "I") continue;
            if (b.name == "J") {  // the other operand of the sum, left or right
                const std::string& other = next.inputs[next.inputs[0] == last ? 1 : 0];
                if (other == last || !ready(other, site)) return {};
                f.operands.push_back({actual(other), {}});
            } else if (next.op == "batch_norm") {
                f.operands.push_back({"", channel_constants(next, b)});
            } else {
                return {};
            }
        }
        return f;
    }

    std::optional<Follower> mover(const Node& transpose, const Node& site) const {
        const auto moved = in_a_row(site) ? std::nullopt : move_of(transpose);
        return moved ? std::optional(Follower{*moved, {}}) : std::nullopt;
    }

    static void prepare(const Term& value, std::vector<Operand>& operands) {
        Operands constants;
        for (Operand& o : operands) constants.push_back(std::move(o.constants));
        const std::size_t before = constants.size();
        const std::vector<Buffer> after = operands_of(value[1]);
        constants = prepared(value[0], after, std::move(constants));
        require(before == constants.size() + 1, "a preparation makes one constant of two");
        // The operand that is gone is the one that the first epilogue no longer has.
        std::size_t gone = 0;
        while (after[gone].name[0] != 'E') ++gone;
        operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(gone));
        for (std::size_t i = 0; i < operands.size(); ++i) operands[i].constants = std::move(constants[i]);
    }

    void take(const Node& next, std::string& last) {
        done_.insert(next.name);
        renamed_[last] = next.name;
        for (auto& [from, to] : renamed_)
            if (to == last) to = next.name;
        last = next.name;
    }
    // Whether a value exists before `node` runs: its node is earlier, or was fused into an earlier step.
    bool ready(const std::string& value, const Node& node) const {
        auto at = position_.find(value);
        if (at == position_.end()) return false;
        if (at->second < position_.at(node.name)) return true;
        return done_.contains(value);  // fused into an earlier step
    }
    std::vector<float> channel_constants(const Node& node, const Buffer& b) const {
        if (node.op == "batch_norm") {
            const ScaleShift s = scale_shift(node, weights_);
            return b.name == "A" ? s.scale : s.shift;
        }
        if (node.op == "avg_pool") {  // how many elements of each window are inside the image; the rest is padding, wherever it ends
            const auto &k = node.integers("kernel"), &s = node.integers("stride"), &p = node.integers("padding");
            auto inside = [&](std::size_t d, std::int64_t o) {
                const std::int64_t low = std::max<std::int64_t>(0, o * s[d] - p[d]), high = std::min(node.input_shapes[0][2 + d], o * s[d] - p[d] + k[d]);
                return high - low;
            };
            std::vector<float> counts;
            for (std::int64_t y = 0; y < node.shape[2]; ++y)
                for (std::int64_t x = 0; x < node.shape[3]; ++x) counts.push_back(static_cast<float>(inside(0, y) * inside(1, x)));
            return counts;
        }
        throw InternalFault("a statement has an operand that its node does not explain");
    }

    // The caller's schedule around the fused statement, or the default schedule.
    Term chosen(const Node& node, const Term& stmt) const {
        auto given = schedules_.find(node.name);
        if (given == schedules_.end()) {
            const Term plain = node.domain.whole() ? nest_of(statement_of(stmt)) : nest_of(node);
            return arrange(with_statement(plain, stmt), target_);
        }
        const Term nest = complete(given->second);
        return with_statement(nest, with_layouts_of(nest_parts(nest).statement, stmt));
    }

    // Steps write parts that are contiguous in the result directly into it. Other parts are copied.
    void concat(const Node& node) {
        std::int64_t axis = node.integer("axis");
        if (axis < 0) axis += static_cast<std::int64_t>(node.shape.size());
        std::int64_t outer = 1, inner = 1;
        for (std::size_t d = 0; d < node.shape.size(); ++d)
            (static_cast<std::int64_t>(d) < axis ? outer : inner) *= static_cast<std::int64_t>(d) == axis ? 1 : node.shape[d];
        const std::int64_t row = inner * node.shape[static_cast<std::size_t>(axis)];
        std::int64_t offset = 0;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const std::int64_t width = inner * node.input_shapes[i][static_cast<std::size_t>(axis)];
            plan_.steps.push_back({{}, CopyStep{node.name, node.name, actual(node.inputs[i]), {outer, width}, {row, 1}, {width, 1}, offset, 0, true}, {}});
            offset += width;
        }
    }

    static std::vector<std::int64_t> strides_of(const Shape& shape) {
        std::vector<std::int64_t> strides(shape.size(), 1);
        for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
        return strides;
    }
    // Dimensions of 1 are left out, and neighbouring dimensions that can be walked as one are merged.
    void copy(CopyStep step) {
        const auto &shape = step.shape, &to = step.to_strides, &from = step.from_strides;
        Shape s;
        std::vector<std::int64_t> t, f;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            if (!s.empty() && t.back() == to[d] * shape[d] && f.back() == from[d] * shape[d])
                s.back() *= shape[d], t.back() = to[d], f.back() = from[d];
            else
                s.push_back(shape[d]), t.push_back(to[d]), f.push_back(from[d]);
        }
        if (s.empty()) s = {1}, t = {1}, f = {1};
        step.shape = std::move(s), step.to_strides = std::move(t), step.from_strides = std::move(f);
        plan_.steps.push_back({{}, std::move(step), {}});
    }

    void transpose(const Node& node) {
        if (read_before(node)) return;
        const std::vector<std::int64_t> strides = strides_of(node.input_shapes[0]);
        std::vector<std::int64_t> from;
        for (std::int64_t d : node.integers("order")) from.push_back(strides[static_cast<std::size_t>(d)]);
        copy({node.name, node.name, actual(node.inputs[0]), node.shape, strides_of(node.shape), from});
    }

    // A slice that is contiguous and begins at an aligned place is a view.
    void slice(const Node& node) {
        const Shape& in = node.input_shapes[0];
        std::vector<std::int64_t> from = strides_of(in);
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < in.size(); ++d) offset += node.integers("starts")[d] * from[d];
        const std::vector<std::int64_t> to = strides_of(node.shape);
        bool piece = true;
        for (std::size_t d = 0; d < in.size(); ++d) from[d] *= node.integers("steps")[d], piece = piece && (node.shape[d] == 1 || from[d] == to[d]);
        if (piece && offset % 16 == 0)
            plan_.inside[node.name] = {actual(node.inputs[0]), offset};
        else
            copy({node.name, node.name, actual(node.inputs[0]), node.shape, to, from, 0, offset});
    }

    void pad(const Node& node) {
        const std::string fill = node.name + "#fill";
        plan_.constants[fill] = {static_cast<float>(node.real("value"))};
        plan_.sizes[fill] = 1;
        copy({node.name, node.name, fill, {element_count(node.shape)}, {1}, {0}});
        const std::vector<std::int64_t> to = strides_of(node.shape);
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < to.size(); ++d) offset += node.integers("before")[d] * to[d];
        copy({node.name, node.name, actual(node.inputs[0]), node.input_shapes[0], to, strides_of(node.input_shapes[0]), offset});
    }

    void expand(const Node& node) {
        const Shape& in = node.input_shapes[0];
        const std::vector<std::int64_t> own = strides_of(in);
        std::vector<std::int64_t> from(node.shape.size(), 0);
        for (std::size_t d = 0; d < in.size(); ++d)
            if (in[d] != 1) from[d + from.size() - in.size()] = own[d];
        copy({node.name, node.name, actual(node.inputs[0]), node.shape, strides_of(node.shape), from});
    }

    void opaque(const Node& node) {
        OpaqueStep step{node.name, node.name, node.text("node"), node.integer("output"), {}, node.input_shapes, element_count(node.shape)};
        for (const std::string& in : node.inputs) step.from.push_back(actual(in));
        plan_.steps.push_back({{}, {}, std::move(step)});
    }

    const Graph& graph_;
    const Weights* weights_;  // null: the plan has no constants
    const Schedules& schedules_;
    const Target& target_;
    std::shared_ptr<const FusionRules> rules_;
    std::map<std::string, int> position_;
    std::map<std::string, std::vector<const Node*>> users_;
    std::set<std::string> done_;
    std::map<std::string, std::string> renamed_;
    struct Fed {
        Term nest;
        std::vector<FusedRule> rules;
    };
    std::map<std::string, Fed> fed_;              // by node: the nest that reads what was to be transposed for it
    std::map<std::string, NetworkStep> waiting_;  // by node: the step that computes it together with nodes before it
    std::vector<BlockChain>* chains_ = nullptr;   // gets what may be computed block by block
    NetworkPlan plan_;
};

}  // namespace

std::vector<std::string> NetworkPlan::Step::values() const {
    std::vector<std::string> all;
    if (nest)
        for (const Operand& o : nest->operands)
            if (!o.value.empty()) all.push_back(o.value);
    if (copy) all.insert(all.end(), {copy->to, copy->from});
    if (opaque) all.push_back(opaque->to), all.insert(all.end(), opaque->from.begin(), opaque->from.end());
    return all;
}

NetworkPlan plan_network(const Graph& graph, const Weights& weights, const Schedules& schedules, const Target& target) {
    return Planner(graph, &weights, schedules, target).run();
}

std::vector<BlockChain> block_chains(const Graph& graph, const Target& target) {
    if (target.gpu()) return {};
    const Schedules none;
    return Planner(graph, nullptr, none, target).chains();
}

NetworkPlan plan_without_constants(const Graph& graph, const Schedules& schedules, const Target& target) {
    return Planner(graph, nullptr, schedules, target).run();
}

}  // namespace loopegg
