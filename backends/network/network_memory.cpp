#include "backends/network/network_memory.hpp"

#include <algorithm>
#include <set>

namespace loopegg {

std::pair<std::string, std::int64_t> home(const NetworkPlan& plan, std::string value) {
    std::int64_t offset = 0;
    for (auto found = plan.inside.find(value); found != plan.inside.end(); found = plan.inside.find(value)) {
        offset += found->second.second;
        value = found->second.first;
    }
    return {value, offset};
}

void place_concats(NetworkPlan& plan, const std::vector<std::string>& inputs) {
    const std::set<std::string> fixed(inputs.begin(), inputs.end());
    std::map<std::string, std::vector<std::size_t>> parts;  // concat -> its copy steps
    std::vector<std::string> order;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (const auto& c = plan.steps[i].copy; c && c->part && c->shape.size() == 2 && c->shape[0] == 1 && c->to_strides[1] == 1 && c->from_strides[1] == 1) {
            if (!parts.contains(c->to)) order.push_back(c->to);
            parts[c->to].push_back(i);
        }
    std::set<std::size_t> dropped;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {  // the last concat of a chain holds the others
        const auto& steps = parts[*it];
        // All parts already are in one value in the right order, so the concat is a view of that value.
        const auto first = home(plan, plan.steps[steps[0]].copy->from);
        bool view = !plan.inside.contains(*it) && first.first != plan.steps[steps[0]].copy->from;
        for (std::size_t s : steps) {
            const auto [where, offset] = home(plan, plan.steps[s].copy->from);
            view = view && where == first.first && offset == first.second + plan.steps[s].copy->to_offset;
        }
        if (view) {
            plan.inside[*it] = first;
            dropped.insert(steps.begin(), steps.end());
            continue;
        }
        for (std::size_t s : steps) {
            const CopyStep& c = *plan.steps[s].copy;
            const auto [root, offset] = home(plan, c.from);
            const bool free =
                offset == 0 && !fixed.contains(root) && !plan.constants.contains(root) && root != home(plan, c.to).first && plan.sizes.at(root) == c.shape[1];
            if (!free || c.to_offset % 16 != 0) continue;
            plan.inside[root] = {c.to, c.to_offset};
            dropped.insert(s);
        }
    }
    std::vector<NetworkPlan::Step> kept;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (!dropped.contains(i)) kept.push_back(std::move(plan.steps[i]));
    plan.steps = std::move(kept);
}

MemoryPlan plan_memory(const NetworkPlan& plan, const std::vector<StepRegion>& regions, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
    struct Life {
        int first, last;
    };
    std::map<std::string, Life> lives;  // by home
    const int end = static_cast<int>(plan.steps.size());
    auto touch = [&](const std::string& value, Life when) {
        const std::string root = home(plan, value).first;
        if (plan.constants.contains(root)) return;
        auto [it, fresh] = lives.try_emplace(root, when);
        if (!fresh) it->second.first = std::min(it->second.first, when.first), it->second.last = std::max(it->second.last, when.last);
    };
    for (const std::string& in : inputs) touch(in, {-1, -1});
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        for (const std::string& value : plan.steps[i].values()) touch(value, {regions[i].first, regions[i].end - 1});
    for (const std::string& out : outputs) touch(out, {end, end});

    struct Placed {
        std::int64_t offset, size;
        Life life;
    };
    std::vector<std::pair<std::string, Life>> by_size(lives.begin(), lives.end());
    auto size_of = [&](const std::string& v) { return (plan.sizes.at(v) + 31) / 16 * 16; };  // with a vector of slack behind each value
    std::stable_sort(by_size.begin(), by_size.end(), [&](const auto& a, const auto& b) { return size_of(a.first) > size_of(b.first); });
    std::vector<Placed> placed;
    MemoryPlan memory;
    for (const auto& [value, life] : by_size) {
        std::vector<const Placed*> near;
        for (const Placed& p : placed)
            if (p.life.first <= life.last && life.first <= p.life.last) near.push_back(&p);
        std::sort(near.begin(), near.end(), [](const Placed* a, const Placed* b) { return a->offset < b->offset; });
        std::int64_t at = 0;
        for (const Placed* p : near)
            if (at + size_of(value) <= p->offset)
                break;
            else
                at = std::max(at, p->offset + p->size);
        placed.push_back({at, size_of(value), life});
        memory.offsets[value] = at;
        memory.floats = std::max(memory.floats, at + size_of(value));
    }
    for (const auto& [value, where] : plan.inside) {
        const auto [root, offset] = home(plan, value);
        if (auto found = memory.offsets.find(root); found != memory.offsets.end()) memory.offsets[value] = found->second + offset;
    }
    return memory;
}

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
