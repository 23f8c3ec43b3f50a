// Gathers the mistakes of rule files, each with its place and the rule it is in.
#pragma once
#include <string>
#include <vector>

#include "rules/load.hpp"

namespace loopegg {

class Complaints {
public:
    void say(const Position& where, std::string message, std::string hint = {}) {
        if (all_.size() < most) all_.push_back({{std::move(message), where, std::move(hint)}, rule_});
        ++count_;
    }
    void enter_rule(std::string name) { rule_ = std::move(name); }
    void leave_rule() { rule_.clear(); }
    std::size_t count() const { return count_; }  // also of those beyond `most`
    std::vector<RuleMistake> take() { return std::move(all_); }

private:
    static constexpr std::size_t most = 500;  // for a file that is no rule file at all, so many complaints are enough
    std::vector<RuleMistake> all_;
    std::size_t count_ = 0;
    std::string rule_;
};

}  // namespace loopegg
