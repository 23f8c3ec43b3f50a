#include "nest/term/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace loopegg {
namespace {

bool is_tensor_loop(const Term& t) { return t.is("bind", 3) && is_tensor_place(t[0]); }

// Returns whether a loop was found.
bool bind_first_serial(Term& t) {
    if (t.is("at", 2)) {
        t = Term("bind", {Term(std::string(tensor_place) + "tf32"), t[0], t[1]});
        return true;
    }
    if (t.size() == 0) return false;
    std::vector<Term> children(t.children().begin(), t.children().end());
    bool found = false;
    // Goes into both parts of a cut domain, and otherwise into the rest of the list.
    for (std::size_t i = t.is("cat", 2) ? 0 : children.size() - 1; i < children.size(); ++i) found = bind_first_serial(children[i]) || found;
    if (found) t = Term(t.op(), std::move(children));
    return found;
}

}  // namespace

bool is_tensor_place(const Term& place) { return place.op().text().starts_with(tensor_place); }

const std::vector<std::string>& rounding_names() {
    static const std::vector<std::string> names{"tf32"};
    return names;
}

float rounded_to_tf32(float value) {
    if (!std::isfinite(value)) return value;
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1fffu);
}

bool rounds_operands(const Term& schedule) {
    return is_tensor_loop(schedule) || std::any_of(schedule.children().begin(), schedule.children().end(), rounds_operands);
}

Term with_rounded_operands(const Term& nest) {
    Term made = nest;
    bind_first_serial(made);
    return made;
}

}  // namespace loopegg
