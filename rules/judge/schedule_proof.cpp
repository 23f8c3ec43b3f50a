#include "rules/judge/schedule_proof.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace loopegg {
namespace {

void append(SizeConditions& into, const SizeConditions& more) { into.insert(into.end(), more.begin(), more.end()); }

std::string negated(const SizeConditions& all) {
    std::string text;
    for (const std::string& c : all) text += (text.empty() ? "" : " and ") + c;
    return text.empty() ? "1 = 0" : "not (" + text + ")";
}

}  // namespace

ScheduleProof::ScheduleProof(Sizes& sizes, AxisSpace& axes, const ScheduleSide& left, const ScheduleSide& right)
    : sizes_(sizes), axes_(axes), left_(left), right_(right) {
    names_.assign(axes.atoms().begin(), axes.atoms().end());
    atoms_ = names_.size();
    for (const ScheduleSide* side : {&left, &right})
        for (const SidePath& p : side->paths)
            if (!p.tail.empty() && std::find(names_.begin(), names_.end(), p.tail) == names_.end()) names_.push_back(p.tail);
    for (const SizeFact& need : left.needs) sizes.assume(need);
}

std::string ScheduleProof::tail(const std::string& name) const { return "@t" + std::to_string(std::find(names_.begin(), names_.end(), name) - names_.begin()); }
std::string ScheduleProof::defined(const std::string& name) const {
    return "@d" + std::to_string(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

// Any values of the axes; an axis or the rest of a list may leave the instance out.
SizeConditions ScheduleProof::instance(char which, bool on_one_path) {
    SizeConditions all;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        if (i < atoms_) append(all, axes_.conditions(names_[i]));
        all.push_back("0 <= " + defined(names_[i]) + " <= 1");
    }
    // No instance is on two paths of the left side.
    for (std::size_t i = 0; on_one_path && i < left_.paths.size(); ++i)
        for (std::size_t j = i + 1; j < left_.paths.size(); ++j) {
            SizeConditions both = visited(left_.paths[i], '@');
            append(both, visited(left_.paths[j], '@'));
            all.push_back(negated(both));
        }
    for (std::string& c : all) c = AxisSpace::at(c, which);
    return all;
}

SizeConditions ScheduleProof::visited(const SidePath& path, char which) {
    SizeConditions all = path.conditions;
    for (const std::string& atom : path.atoms) all.push_back(defined(atom) + " = 1");
    if (!path.tail.empty()) all.push_back(defined(path.tail) + " = 1");
    for (std::string& c : all) c = AxisSpace::at(c, which);
    return all;
}

// Names every parameter and variable; the bounds of the sizes join the conditions.
SizeSpace ScheduleProof::space(SizeConditions& conditions, bool two) {
    append(conditions, sizes_.conditions());
    SizeSpace space{sizes_.parameters(), {}};
    for (const char which : two ? std::vector{'x', 'y'} : std::vector{'x'})
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (i < atoms_)
                for (const std::string& v : axes_.variables(names_[i])) space.variables.push_back(AxisSpace::at(v, which));
            else
                space.variables.push_back(AxisSpace::at(tail(names_[i]), which));
            space.variables.push_back(AxisSpace::at(defined(names_[i]), which));
        }
    return space;
}

MaybeFinding ScheduleProof::impossible(SizeConditions conditions, const std::string& why, bool two) {
    const SizeSpace of = space(conditions, two);
    const SizeAnswer answer = never(of, conditions);
    if (answer.yes()) return {};
    return Finding{answer.kind == SizeAnswer::Kind::no, why, answer.example};
}

bool ScheduleProof::applies() {
    SizeConditions conditions;
    const SizeSpace of = space(conditions, false);
    return never({of.parameters, {}}, conditions).kind == SizeAnswer::Kind::no;
}

MaybeFinding ScheduleProof::well_formed() {
    for (const SizeFact& need : right_.needs)
        if (auto found = impossible({"not (" + sizes_.text(need) + ")"}, "gives what is no schedule: an axis has no such part", false)) return found;
    return {};
}

MaybeFinding ScheduleProof::covered(const SidePath& path, const std::vector<SidePath>& by, const std::string& why) {
    SizeConditions conditions = instance('x');
    append(conditions, visited(path, 'x'));
    std::vector<SizeConditions> alternatives;
    for (const SidePath& p : by) alternatives.push_back(visited(p, 'x'));
    const SizeSpace of = space(conditions, false);
    const SizeAnswer answer = always_one_of(of, conditions, alternatives);
    if (answer.yes()) return {};
    return Finding{answer.kind == SizeAnswer::Kind::no, why, answer.example};
}

MaybeFinding ScheduleProof::disjoint_right() {
    for (std::size_t i = 0; i < right_.paths.size(); ++i)
        for (std::size_t j = i + 1; j < right_.paths.size(); ++j) {
            SizeConditions both = instance('x');
            append(both, visited(right_.paths[i], 'x'));
            append(both, visited(right_.paths[j], 'x'));
            if (auto found = impossible(std::move(both), "visits an instance twice", false)) return found;
        }
    return {};
}

MaybeFinding ScheduleProof::same_instances() {
    for (const SidePath& p : left_.paths)
        if (auto found = covered(p, right_.paths, "leaves an instance out on the right")) return found;
    for (const SidePath& p : right_.paths)
        if (auto found = covered(p, left_.paths, "visits an instance on the right that the left side does not visit")) return found;
    return disjoint_right();
}

MaybeFinding ScheduleProof::same_values(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        SizeConditions conditions = instance('x');
        append(conditions, visited(left_.paths[0], 'x')), append(conditions, visited(right_.paths[0], 'x'));
        conditions.push_back(AxisSpace::at("not ((" + a[i] + ") = (" + b[i] + "))", 'x'));
        if (auto found = impossible(std::move(conditions), "makes axes equal that have other values", false)) return found;
    }
    return {};
}

MaybeFinding ScheduleProof::fewer_instances() {
    for (const SidePath& p : right_.paths)
        if (auto found = covered(p, left_.paths, "visits an instance on the right that the left side does not visit")) return found;
    std::vector<SizeConditions> left_out;
    for (const SidePath& p : left_.paths) {
        SizeConditions here = instance('x');
        append(here, visited(p, 'x'));
        for (const SidePath& q : right_.paths) here.push_back(negated(visited(q, 'x')));
        left_out.push_back(std::move(here));
    }
    SizeConditions bounds;
    for (std::size_t i = 0; i < atoms_; ++i) bounds.push_back(sizes_.text(sizes_.extent(names_[i])) + " >= 2");  // one value cannot be restricted
    const SizeSpace of = space(bounds, false);
    const SizeAnswer answer = always_some(of, bounds, left_out);
    if (!answer.yes()) return Finding{answer.kind == SizeAnswer::Kind::no, "leaves nothing out: a neural rule must restrict", answer.example};
    return disjoint_right();
}

// The cases in which x, on the path p, comes before y, on the path q.
std::vector<ScheduleProof::Order> ScheduleProof::before(const SidePath& p, char x, const SidePath& q, char y) {
    std::vector<Order> all;
    SizeConditions equal;
    for (std::size_t d = 0; d < p.loops.size() && d < q.loops.size(); ++d) {
        const SideLoop &a = p.loops[d], &b = q.loops[d];
        if (a.constant && b.constant) {
            if (*a.constant < *b.constant) all.push_back({equal, SideLoop::Kind::serial});
            if (*a.constant != *b.constant) return all;
            continue;
        }
        if (a.texts != b.texts) throw NoForm("two parts of a cat have other loops before them");
        for (const std::string& text : a.texts) {
            const std::string first = AxisSpace::at(text, x), second = AxisSpace::at(text, y);
            all.push_back({equal, a.kind});
            all.back().when.push_back(first + " < " + second);
            equal.push_back(first + " = " + second);
        }
    }
    if (p.tail.empty()) return all;
    all.push_back({equal, {}});
    all.back().when.push_back(AxisSpace::at(tail(p.tail), x) + " < " + AxisSpace::at(tail(p.tail), y));
    return all;
}

// x and y on these paths run at one time. Paths that a cat divides never do.
SizeConditions ScheduleProof::together(const SidePath& p, const SidePath& q) {
    SizeConditions equal;
    if (&p != &q) return {"1 = 0"};
    for (const SideLoop& loop : p.loops)
        for (const std::string& text : loop.texts) equal.push_back(AxisSpace::at(text, 'x') + " = " + AxisSpace::at(text, 'y'));
    if (!p.tail.empty()) equal.push_back(AxisSpace::at(tail(p.tail), 'x') + " = " + AxisSpace::at(tail(p.tail), 'y'));
    return equal;
}

SizeConditions ScheduleProof::agreement(const std::set<std::string>& agree) {
    SizeConditions all;
    for (const std::string& atom : agree)
        for (const std::string& v : axes_.variables(atom)) all.push_back(AxisSpace::at(v, 'x') + " = " + AxisSpace::at(v, 'y'));
    return all;
}

bool ScheduleProof::meet(const SidePath& left, const SidePath& right) {
    auto [at, fresh] = meeting_.try_emplace({&left, &right}, true);
    if (fresh) {
        SizeConditions both = instance('x');
        append(both, visited(left, 'x')), append(both, visited(right, 'x'));
        at->second = impossible(std::move(both), "", false).has_value();
    }
    return at->second;
}

template <class Visit>
MaybeFinding ScheduleProof::each_pair(const Visit& visit) {
    SizeConditions instances = instance('x', false);
    append(instances, instance('y', false));
    for (const SidePath& p : left_.paths)
        for (const SidePath& q : left_.paths)
            for (const Order& order : before(p, 'x', q, 'y'))
                for (const SidePath& r : right_.paths)
                    for (const SidePath& s : right_.paths) {
                        if (!meet(p, r) || !meet(q, s)) continue;
                        SizeConditions here = instances;
                        append(here, visited(p, 'x')), append(here, visited(q, 'y'));
                        append(here, visited(r, 'x')), append(here, visited(s, 'y'));
                        append(here, order.when);
                        if (auto found = visit(order, here, r, s)) return found;
                    }
    return {};
}

MaybeFinding ScheduleProof::tells_apart() {
    return each_pair([&](const Order&, const SizeConditions& here, const SidePath& r, const SidePath& s) {
        SizeConditions same = here;
        append(same, together(r, s));
        return impossible(std::move(same), "runs two instances at one time: some digit is in no loop", true);
    });
}

MaybeFinding ScheduleProof::keeps_order(const std::set<std::string>& agree, const std::string& why) {
    const SizeConditions equal = agreement(agree);
    return each_pair([&](const Order& left, const SizeConditions& here, const SidePath& r, const SidePath& s) -> MaybeFinding {
        if (left.at == SideLoop::Kind::apart) return {};  // what runs at once on the left is not ordered
        for (const Order& right : before(s, 'y', r, 'x')) {
            SizeConditions reversed = here;
            append(reversed, equal), append(reversed, right.when);
            if (auto found = impossible(std::move(reversed), why, true)) return found;
        }
        return {};
    });
}

MaybeFinding ScheduleProof::runs_apart(const std::set<std::string>& agree, SideLoop::Kind kind, const std::string& why) {
    const SizeConditions equal = agreement(agree);
    return each_pair([&](const Order& left, const SizeConditions& here, const SidePath& r, const SidePath& s) -> MaybeFinding {
        if (left.at == SideLoop::Kind::apart) return {};
        for (const bool forward : {true, false})
            for (const Order& right : forward ? before(r, 'x', s, 'y') : before(s, 'y', r, 'x')) {
                if (right.at != kind) continue;
                SizeConditions race = here;
                append(race, equal), append(race, right.when);
                if (auto found = impossible(std::move(race), why, true)) return found;
            }
        return {};
    });
}

std::vector<std::int64_t> ScheduleProof::extents(const SizePoint& point) {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < atoms_; ++i)
        if (const auto extent = sizes_.value_at(sizes_.extent(names_[i]), point)) all.push_back(*extent);
    return all;
}

std::string ScheduleProof::described(const SizePoint& point) const {
    std::string text = sizes_.described(point);
    for (const char which : {'x', 'y'}) {
        std::string values;
        for (std::size_t i = 0; i < atoms_; ++i)
            for (const std::string& v : axes_.variables(names_[i]))
                if (const auto at = point.find(AxisSpace::at(v, which)); at != point.end())
                    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", names_[i], at->second);
        if (!values.empty()) text += fmt::format("{}instance {}: {}", text.empty() ? "" : "; ", which, values);
    }
    return text;
}

}  // namespace loopegg
