// Proves for all sizes that two schedules visit the same instances, that no order that must be kept is reversed, and that no iterations run at once that
// must not. An instance is any values of the axes and of the rest of the list, so the proof holds in every nest and among all other loops.
#pragma once
#include <optional>

#include "rules/judge/schedule_side.hpp"

namespace loopegg {

struct Finding {
    bool certain = true;  // false: it could not be decided
    std::string why;      // what is wrong: "visits other instances on the right than on the left"
    SizePoint example{};  // of a certain one: sizes, and values of axes at instances x and y
};
using MaybeFinding = std::optional<Finding>;  // none: proved

class ScheduleProof {
public:
    ScheduleProof(Sizes& sizes, AxisSpace& axes, const ScheduleSide& left, const ScheduleSide& right);

    bool applies();              // whether there are sizes that the conditions admit
    MaybeFinding well_formed();  // the right side is a schedule wherever the left side is
    MaybeFinding same_instances();
    MaybeFinding fewer_instances();                                                                  // of a neural rule: fewer, and none besides
    MaybeFinding same_values(const std::vector<std::string>& a, const std::vector<std::string>& b);  // of two axes where both sides visit
    MaybeFinding tells_apart();                                                                      // no two instances run at one time
    // Of instances that must run in order; the axes in `agree` have equal values at both.
    MaybeFinding keeps_order(const std::set<std::string>& agree, const std::string& why);
    MaybeFinding runs_apart(const std::set<std::string>& agree, SideLoop::Kind kind, const std::string& why);

    std::string described(const SizePoint& point) const;
    std::vector<std::int64_t> extents(const SizePoint& point);  // of the axes

private:
    struct Order {
        SizeConditions when;               // x comes before y
        std::optional<SideLoop::Kind> at;  // the loop that distinguishes them; none: the rest of the list
    };
    SizeConditions instance(char which, bool on_one_path = true);
    bool meet(const SidePath& left, const SidePath& right);  // whether an instance can be on both
    SizeConditions visited(const SidePath& path, char which);
    SizeConditions pair();
    std::vector<Order> before(const SidePath& p, char x, const SidePath& q, char y);
    SizeConditions together(const SidePath& p, const SidePath& q);
    SizeConditions agreement(const std::set<std::string>& agree);
    std::string tail(const std::string& name) const;
    std::string defined(const std::string& name) const;
    SizeSpace space(SizeConditions& conditions, bool two);
    MaybeFinding impossible(SizeConditions conditions, const std::string& why, bool two);
    MaybeFinding covered(const SidePath& path, const std::vector<SidePath>& by, const std::string& why);
    MaybeFinding disjoint_right();
    // Calls with every two instances that both sides visit, the first before the second on the left.
    template <class Visit>
    MaybeFinding each_pair(const Visit& visit);

    Sizes& sizes_;
    AxisSpace& axes_;
    const ScheduleSide &left_, &right_;
    std::vector<std::string> names_;  // atoms, then tails
    std::map<std::pair<const SidePath*, const SidePath*>, bool> meeting_;
    std::size_t atoms_ = 0;
};

}  // namespace loopegg
