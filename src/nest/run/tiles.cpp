// Tiles: which elements of a buffer the instances below a loop touch.
#include <algorithm>

#include "base/error.hpp"
#include "nest/run/solve.hpp"

namespace loopegg {

bool OperandPlace::uses(int var) const {
    return std::any_of(index.begin(), index.end(), [&](const Index& i) { return i.uses(var); });
}

std::int64_t Tile::elements() const {
    std::int64_t n = 1;
    for (const Step& s : steps) n *= s.extent;
    return n;
}

namespace {

bool is_outer(const IndexAtom& atom, int first_inner) { return atom.last_var < first_inner; }
bool is_inner(const IndexAtom& atom, int first_inner) { return atom.first_var >= first_inner; }

Linear substituted(const Affine& affine, const Solution& solution) {
    Linear sum;
    sum.offset = affine.offset;
    for (std::size_t i = 0; i < affine.coefficients.size(); ++i) sum.add(solution.iterators[i], affine.coefficients[i]);
    return sum;
}

std::size_t step_of(TilePlan& plan, const IndexAtom& atom) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (plan.steps[i].atom && *plan.steps[i].atom == atom) return i;
    plan.steps.push_back({atom.extent, atom, -1, -1});
    return plan.steps.size() - 1;
}

std::optional<std::size_t> find_step(const TilePlan& plan, const IndexAtom& atom) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (plan.steps[i].atom && *plan.steps[i].atom == atom) return i;
    return {};
}

// Splits one dimension into what the outer loops fix and steps over inner atoms. False if some atom is neither.
bool add_stepped_dimension(TilePlan& plan, const Linear& value) {
    Linear fixed;
    fixed.offset = value.offset;
    std::vector<std::pair<std::int64_t, std::size_t>> moving;
    for (const Linear::Part& p : value.parts) {
        if (is_outer(p.atom, plan.first_inner))
            fixed.parts.push_back(p);
        else if (is_inner(p.atom, plan.first_inner))
            moving.emplace_back(p.coefficient, step_of(plan, p.atom));
        else
            return false;
    }
    plan.fixed.push_back(std::move(fixed));
    plan.moving.push_back(std::move(moving));
    return true;
}

void add_box_dimension(TilePlan& plan, const Linear& value) {
    Linear fixed;
    fixed.offset = value.offset;
    std::int64_t reach = 1;
    for (const Linear::Part& p : value.parts) {
        if (is_outer(p.atom, plan.first_inner))
            fixed.parts.push_back(p);
        else
            reach += p.coefficient * (p.atom.extent - 1);
    }
    plan.fixed.push_back(std::move(fixed));
    plan.moving.emplace_back();
    if (reach == 1) return;
    plan.moving.back().emplace_back(1, plan.steps.size());
    plan.steps.push_back({reach, std::nullopt, static_cast<int>(plan.fixed.size()) - 1, -1});
}

enum class Fit { good, mixed_atom, mixed_condition };

Fit try_output_tile(const Statement& statement, const Solution& solution, int first_inner, TilePlan& plan) {
    plan.first_inner = first_inner;
    std::vector<Linear> written;
    for (const Affine& d : statement.write.index) {
        written.push_back(substituted(d, solution));
        if (!add_stepped_dimension(plan, written.back())) return Fit::mixed_atom;
    }
    for (const Condition& c : solution.conditions) {
        bool about_output = false, separable = true;
        for (const Linear::Part& p : c.expression.parts) {
            about_output = about_output || std::any_of(written.begin(), written.end(), [&](const Linear& w) { return w.uses(p.atom); });
            separable = separable && (is_outer(p.atom, first_inner) || find_step(plan, p.atom));
        }
        if (!about_output) continue;
        if (!separable) return Fit::mixed_condition;
        plan.conditions.push_back(c);
    }
    return Fit::good;
}

bool same_linear(const Linear& a, const Linear& b) {
    if (a.offset != b.offset || a.parts.size() != b.parts.size()) return false;
    return std::all_of(a.parts.begin(), a.parts.end(), [&](const Linear::Part& p) {
        return std::any_of(b.parts.begin(), b.parts.end(), [&](const Linear::Part& q) { return q.coefficient == p.coefficient && q.atom == p.atom; });
    });
}

// Compares two conditions, with the atoms of steps replaced by the steps' numbers, so that tiles of different loops can be compared.
bool same_condition(const TilePlan& plan, const Condition& a, const TilePlan& other, const Condition& b) {
    if (a.bound != b.bound || a.expression.offset != b.expression.offset || a.expression.parts.size() != b.expression.parts.size()) return false;
    for (std::size_t i = 0; i < a.expression.parts.size(); ++i) {
        const Linear::Part &p = a.expression.parts[i], &q = b.expression.parts[i];
        auto left = find_step(plan, p.atom), right = find_step(other, q.atom);
        if (p.coefficient != q.coefficient || left != right || (!left && !(p.atom == q.atom))) return false;
    }
    return true;
}

}  // namespace

TilePlan plan_output_tile(const Statement& statement, const Solution& solution, int first_inner) {
    TilePlan plan;
    if (try_output_tile(statement, solution, first_inner, plan) != Fit::good)
        throw UserError("the output elements below this point are no product of loops: they cannot be distinguished from their neighbours'");
    return plan;
}

bool output_tile_exists(const Statement& statement, const Solution& solution, int first_inner) {
    TilePlan plan;
    return try_output_tile(statement, solution, first_inner, plan) == Fit::good;
}

TilePlan plan_input_tile(const Access& access, const Solution& solution, int first_inner) {
    TilePlan plan;
    plan.first_inner = first_inner;
    for (const Affine& d : access.index) {
        Linear value = substituted(d, solution);
        auto walked = std::count_if(d.coefficients.begin(), d.coefficients.end(), [](std::int64_t c) { return c != 0; });
        TilePlan before = plan;
        if (walked > 1 || !add_stepped_dimension(plan, value)) {
            plan = std::move(before);
            add_box_dimension(plan, value);
        }
    }
    return plan;
}

bool output_determines(const Statement& statement, const Solution& solution, int var) {
    std::vector<Linear> written;
    for (const Affine& d : statement.write.index) written.push_back(substituted(d, solution));
    for (const Linear& iterator : solution.iterators)
        for (const Linear::Part& p : iterator.parts)
            if (p.atom.value.uses(var) && std::none_of(written.begin(), written.end(), [&](const Linear& w) { return w.uses(p.atom); })) return false;
    return true;
}

bool outputs_apart(const Statement& statement, const Solution& a, const Solution& b, int first_inner) {
    for (const Affine& d : statement.write.index) {
        TilePlan left, right;
        left.first_inner = right.first_inner = first_inner;
        add_box_dimension(left, substituted(d, a));
        add_box_dimension(right, substituted(d, b));
        Linear low = left.fixed[0], high = right.fixed[0];
        std::int64_t low_reach = left.steps.empty() ? 1 : left.steps[0].extent, high_reach = right.steps.empty() ? 1 : right.steps[0].extent;
        std::int64_t low_at = low.offset, high_at = high.offset;
        low.offset = high.offset = 0;
        if (!same_linear(low, high)) continue;
        if (low_at + low_reach <= high_at || high_at + high_reach <= low_at) return true;
    }
    return false;
}

bool TilePlan::same_elements(const TilePlan& other) const {
    if (steps.size() != other.steps.size() || fixed.size() != other.fixed.size() || conditions.size() != other.conditions.size()) return false;
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].extent != other.steps[i].extent) return false;
    for (std::size_t d = 0; d < fixed.size(); ++d)
        if (!same_linear(fixed[d], other.fixed[d]) || moving[d] != other.moving[d]) return false;
    for (std::size_t i = 0; i < conditions.size(); ++i)
        if (!same_condition(*this, conditions[i], other, other.conditions[i])) return false;
    return true;
}

Tile TilePlan::tile() const {
    Tile tile;
    for (const Step& s : steps) tile.steps.push_back({s.var, s.extent});
    for (std::size_t d = 0; d < fixed.size(); ++d) {
        Index sum = fixed[d].index();
        for (auto [coefficient, step] : moving[d]) sum = sum + Index::variable(steps[step].var) * coefficient;
        tile.index.push_back(sum);
    }
    for (const Condition& c : conditions) {
        Index sum(c.expression.offset);
        for (const Linear::Part& p : c.expression.parts) {
            auto step = find_step(*this, p.atom);
            sum = sum + (step ? Index::variable(steps[*step].var) : p.atom.value) * p.coefficient;
        }
        tile.predicates.push_back({sum, c.bound});
    }
    return tile;
}

std::vector<Index> TilePlan::local_of_body(const Access& access, const Solution& solution) const {
    std::vector<Index> local;
    for (const Step& s : steps) {
        if (s.atom) {
            local.push_back(s.atom->value);
            continue;
        }
        Linear moved;
        for (const Linear::Part& p : substituted(access.index[static_cast<std::size_t>(s.dimension)], solution).parts)
            if (!is_outer(p.atom, first_inner)) moved.parts.push_back(p);
        local.push_back(moved.index());
    }
    return local;
}

std::optional<std::vector<Index>> TilePlan::local_of_tile(const TilePlan& inner, const Tile& tile) const {
    std::vector<Index> local;
    for (const Step& s : steps) {
        if (!s.atom) {
            local.push_back(tile.index[static_cast<std::size_t>(s.dimension)] - fixed[static_cast<std::size_t>(s.dimension)].index());
            continue;
        }
        if (auto step = find_step(inner, *s.atom))
            local.push_back(Index::variable(inner.steps[*step].var));
        else if (is_outer(*s.atom, inner.first_inner))
            local.push_back(s.atom->value);
        else
            return {};
    }
    return local;
}

}  // namespace loopegg
