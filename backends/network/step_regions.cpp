#include "backends/network/step_regions.hpp"

#include <algorithm>

#include "backends/network/network_memory.hpp"

namespace loopegg {
namespace {

constexpr int longest = 8;  // as many loops as the runtime takes into one region

// A part of a value that is not inside another value.
struct Part {
    std::string root;
    std::int64_t begin = 0, end = 0;

    bool overlaps(const Part& other) const { return root == other.root && begin < other.end && other.begin < end; }
};

struct Uses {
    Part written;
    std::vector<Part> read;

    bool independent_of(const Uses& other) const {
        const auto touches = [](const Part& part, const Uses& uses) {
            return part.overlaps(uses.written) || std::any_of(uses.read.begin(), uses.read.end(), [&](const Part& r) { return part.overlaps(r); });
        };
        return !touches(written, other) && !touches(other.written, *this);
    }
};

// An operand that a nest reads and writes is written; all other values of a step are read.
Uses uses_of(const NetworkPlan& plan, const NetworkPlan::Step& step) {
    Uses uses;
    for (const std::string& value : step.values()) {
        const auto [root, offset] = home(plan, value);
        const auto size = plan.sizes.find(value);
        const Part part{root, offset, offset + (size == plan.sizes.end() ? std::int64_t{1} << 60 : size->second)};
        if (uses.written.root.empty())
            uses.written = part;
        else
            uses.read.push_back(part);
    }
    return uses;
}

}  // namespace

std::vector<StepRegion> step_regions(const NetworkPlan& plan) {
    const int count = static_cast<int>(plan.steps.size());
    std::vector<StepRegion> regions;
    for (int first = 0; first < count;) {
        std::vector<Uses> inside;
        int end = first;
        for (; end < count && end - first < longest; ++end) {
            const NetworkPlan::Step& step = plan.steps[static_cast<std::size_t>(end)];
            if (step.opaque && end > first) break;
            Uses uses = uses_of(plan, step);
            if (!std::all_of(inside.begin(), inside.end(), [&](const Uses& other) { return uses.independent_of(other); })) break;
            inside.push_back(std::move(uses));
            if (step.opaque) {
                ++end;
                break;
            }
        }
        regions.insert(regions.end(), static_cast<std::size_t>(end - first), {first, end});
        first = end;
    }
    return regions;
}

}  // namespace loopegg
