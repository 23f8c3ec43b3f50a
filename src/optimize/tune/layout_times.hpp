// The times of nests in other layouts: a few nests are timed, others are taken for like ones, and the nests that are chosen are tuned.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/term.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// Nests of one kind differ in their numbers of channels alone. In one layout, a nest is taken to gain by the layout what the dearest nest of its kind gains,
// until the nest is tuned itself.
class LayoutTimes {
public:
    LayoutTimes(const Run& run, const Effort& effort) : run_(run), effort_(effort) {}

    // A nest, and the nest that runs now in its place. One call for each node that has both. A nest that is not of a site gets its default schedule.
    void add(const Term& nest, const Term& now, bool site);

    // Times what runs now, and tunes the dearest nest of each kind in each layout.
    void explore();

    // The sum of the times of nests; none where a nest could not be timed.
    std::optional<double> of(const std::vector<Term>& nests) const;

    // The nest is chosen, once for each call: tune_wanted() tunes such nests, the dearest first.
    void want(const Term& nest);
    void tune_wanted();

    Term scheduled(const Term& nest) const;

private:
    struct Entry {
        Term now;
        std::string kind;  // with the layout
        bool site = false;
        double uses = 0, wanted = 0;
        std::optional<double> ms{};  // measured
        Term scheduled{};
    };
    void tune_all(std::vector<Term> nests, double seconds);
    std::optional<double> time_of(const Entry& entry) const;

    const Run& run_;
    Effort effort_;
    std::vector<Term> order_;
    std::unordered_map<Term, Entry> entries_;
    std::unordered_map<std::string, Term> example_;  // by kind: the dearest nest
};

}  // namespace loopegg
