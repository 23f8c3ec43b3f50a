// A measurer that charges the time of each candidate once.
#pragma once
#include <unordered_set>

#include "extract/measurer.hpp"

namespace loopegg {

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

}  // namespace loopegg
