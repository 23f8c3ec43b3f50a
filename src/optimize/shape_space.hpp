// The networks that rules over several sites reach: branches dropped, streams and hidden widths narrower, sites in groups.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/drop_branch.hpp"
#include "graph/graph.hpp"
#include "graph/streams.hpp"
#include "nest/plan/plan.hpp"
#include "optimize/sites.hpp"

namespace loopegg {

// What is left of a network, as rule applications in their order. The original is the empty shape.
struct NetworkShape {
    std::set<std::string> dropped{};               // sites that end a branch
    std::map<std::string, std::int64_t> widths{};  // channels that are kept, by the first writer of the stream in the original
    std::map<std::string, std::int64_t> groups{};  // by site
    bool whole() const { return dropped.empty() && widths.empty() && groups.empty(); }
    friend auto operator<=>(const NetworkShape&, const NetworkShape&) = default;
};

class ShapeSpace {
public:
    // Sites that are kept (Sites) lose no channel and are in no branch that may go. Widths are multiples of `channels_multiple`.
    ShapeSpace(const Graph& original, const Sites& sites, int channels_multiple = 1);

    struct Width {
        std::string name;  // the first writer of the stream
        std::vector<std::string> writers;
        std::vector<std::int64_t> choices;  // the widths that rules offer, the smallest first; the last is the full width
        std::int64_t step = 1;              // every choice is a multiple of this
        bool joined = false;                // a residual stream, or a stream that is concatenated
        std::size_t stage = 0;

        std::int64_t kept_by(const NetworkShape& shape) const;
    };
    struct Depth {
        Branch branch;
        std::size_t stage = 0;  // branches of one stage write one stream, or outputs of as many pixels
    };
    const std::vector<Width>& widths() const { return widths_; }
    const std::vector<Depth>& branches() const { return branches_; }
    const std::vector<std::string>& groupable() const { return groupable_; }  // sites that may be split in groups
    std::size_t stages() const { return stages_; }

    // The plan that 'loopegg apply' takes. It has no steps for parts that are dropped, such as the width of a dropped branch.
    Plan plan(const NetworkShape& shape) const;
    // Empty where a rule refuses.
    std::optional<Graph> network(const NetworkShape& shape) const;

    // The same network by the shape that names only what is left of it: without widths and groups of sites in dropped branches.
    NetworkShape reduced(NetworkShape shape) const;

    // The remaining streams that are narrower than in the original: a writer of each, and its width.
    std::vector<std::pair<std::string, std::int64_t>> narrowed(const NetworkShape& shape) const;

    // How far two shapes are apart: over all stages, the difference in the share of branches that stay, and the mean
    // difference in log2 of widths and of groups.
    double distance(const NetworkShape& a, const NetworkShape& b) const;

    // A naive scaling: every width keeps the same share, and every stage keeps the same share of its branches, the first ones.
    NetworkShape scaled(double width, double depth) const;

private:
    // The original without the branches that a shape drops. A search asks for few sets of branches, and for each of them many times.
    struct Left {
        Graph graph;
        Streams streams;
    };
    const Width* find_width(const std::string& name) const;
    const Left& without_dropped(const NetworkShape& shape) const;
    std::vector<std::pair<std::string, std::int64_t>> narrowed_writers(const NetworkShape& shape, const Left& left) const;

    Graph original_;
    mutable std::map<std::set<std::string>, Left> left_;
    std::vector<Width> widths_;
    std::vector<Depth> branches_;
    std::vector<std::string> groupable_;
    std::size_t stages_ = 0;
};

}  // namespace loopegg
