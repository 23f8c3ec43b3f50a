#include "rules/judge/schedule_side.hpp"

#include "egraph/rewrite.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

class Reader {
public:
    explicit Reader(AxisSpace& axes) : axes_(axes) {}

    void read(const Term& sched, SidePath path) {
        if (sched.size() == 0) return end(sched, std::move(path));
        if (sched.is("cat", 2)) return cut(sched, path);
        if (sched.is("stage", 2)) return read(sched[1], std::move(path));  // a copy of what the rest touches changes no value
        if (!is_loop_operator(sched.op().text())) throw NoForm("'" + to_string(sched) + "' is no schedule that the judge knows");
        path.loops.push_back(loop(sched, path));
        read(loop_rest(sched), std::move(path));
    }
    ScheduleSide take() { return std::move(side_); }

private:
    void end(const Term& sched, SidePath path) {
        if (is_variable(sched.op())) {
            if (sched.op().text()[1] == '(') throw NoForm("the schedule " + sched.op().text().substr(1) + " is computed");
            path.tail = sched.op().text();
        } else if (!sched.is("done", 0)) {
            throw NoForm("'" + to_string(sched) + "' is no schedule that the judge knows");
        }
        constexpr std::size_t most_paths = 8, most_loops = 24;
        if (side_.paths.size() == most_paths || path.loops.size() > most_loops) throw NoForm("its schedules are too large to judge");
        side_.paths.push_back(std::move(path));
    }

    void cut(const Term& sched, const SidePath& path) {
        for (std::size_t part : {0u, 1u}) {
            SidePath here = path;
            here.loops.push_back({.kind = SideLoop::Kind::serial, .word = "cat", .texts = {}, .constant = static_cast<std::int64_t>(part)});
            read(sched[part], std::move(here));
        }
    }

    SideLoop loop(const Term& sched, SidePath& path) {
        const std::string& op = sched.op().text();
        SideLoop made{.kind = SideLoop::Kind::serial, .word = op, .texts = {}};
        if (op == "par" || op == "vec") made.kind = SideLoop::Kind::apart;
        if (op == "bind") made.kind = is_tensor_place(sched[0]) ? SideLoop::Kind::tensor : SideLoop::Kind::apart, made.word = to_string(sched[0]);
        if (op == "partial") made.kind = SideLoop::Kind::partial, made.word = "partial " + to_string(sched[0]);
        const Term& axis = loop_axis(sched);
        const AxisValue value = axes_.value(axis, path.conditions, side_.needs);
        for (const AxisPiece& piece : value.pieces) made.texts.push_back(piece.text);
        for (const std::string& digit : value.walked)
            if (!path.walked.insert(digit).second) throw NoForm("walks a part of " + to_string(axis) + " twice");
        note_atoms(axis, made.atoms);
        path.atoms.insert(made.atoms.begin(), made.atoms.end());
        return made;
    }

    static void note_atoms(const Term& axis, std::set<std::string>& into) {
        const bool number = axis.size() == 0 && axis.integer();
        if (axis.size() == 0 && !number) into.insert(axis.op().text());
        const bool factor_last = axis.is("quo", 2) || axis.is("rem", 2) || axis.is("span", 3);
        for (std::size_t i = axis.is("diag", 3) ? 1 : 0; i < (factor_last ? 1 : axis.size()); ++i) note_atoms(axis[i], into);
    }

    AxisSpace& axes_;
    ScheduleSide side_;
};

}  // namespace

ScheduleSide schedule_side(const Term& schedule, AxisSpace& axes) {
    Reader reader(axes);
    reader.read(schedule, {});
    return reader.take();
}

std::multiset<std::string> special_loops(const Term& t) {
    std::multiset<std::string> all;
    if (t.is("bind", 3) && (is_tensor_place(t[0]) || is_variable(t[0].op()))) all.insert(to_string(t[0]));
    if (t.is("partial", 3)) all.insert("partial");
    for (const Term& child : t.children()) all.merge(special_loops(child));
    return all;
}

}  // namespace loopegg
