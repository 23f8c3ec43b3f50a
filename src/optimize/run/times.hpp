// Where a run gets its times from: workers on this machine, a board, or rounds of bundles.
#pragma once
#include <memory>
#include <optional>
#include <unordered_set>

#include "backends/measure/round_measurer.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "extract/measurer.hpp"
#include "optimize/run/rounds.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// A measurer that charges the time of each candidate once.

// A run asks about some candidates several times: when it picks an algorithm for a site, when it tunes the site, and when another network has the same site.
// Only the first answer costs time, whether it comes from the machine or from the store. So a run and its repetition spend alike.
class ChargedOnce : public Measurer {
public:
    explicit ChargedOnce(Measurer& measurer) : measurer_(measurer) {}

    std::vector<Measured> measure(std::span<const Candidate> candidates) override {
        std::vector<Measured> answers = measurer_.measure(candidates);
        for (std::size_t i = 0; i < answers.size(); ++i)
            if (known_.insert(candidates[i].nest).second)
                charged_ += answers[i].seconds;
            else
                answers[i].seconds = 0;
        return answers;
    }

    double charged() const { return charged_; }  // seconds so far

private:
    Measurer& measurer_;
    std::unordered_set<Term> known_;
    double charged_ = 0;
};

class Times {
public:
    Times(const OptimizeRequest& request, const Graph& graph, Target target, const MeasurerOptions& options);

    Timing timing();

    bool in_rounds() const { return rounds_.has_value(); }
    nlohmann::json next_round(Progress& progress) { return rounds_->next(*elsewhere_, progress); }

private:
    Target target_;
    std::unique_ptr<TvmMeasurer> workers_;
    std::unique_ptr<RoundMeasurer> elsewhere_;
    std::optional<ChargedOnce> nests_;  // one of the two
    std::optional<Rounds> rounds_;
};

}  // namespace loopegg
