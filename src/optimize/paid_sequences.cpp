#include "optimize/paid_sequences.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr const char* between = ", ";

std::vector<std::string> steps_in(const std::string& sequence) {
    std::vector<std::string> steps = split(sequence, ',');
    for (std::string& step : steps) step.erase(0, step.find_first_not_of(' '));
    return steps;
}

}  // namespace

std::string neural_sequence(const RuleBook& book, const Variant& variant) {
    std::vector<std::string> steps;
    for (const DerivationStep& s : variant.steps) {
        if (!s.neural) continue;
        const Rule* rule = book.find_rule(s.rule);
        require(rule, "a variant was made by a rule of the book");
        std::string step = s.rule;
        for (const ChoiceCall& choice : rule->choices)
            for (const auto& [variable, value] : s.with)
                if (!choice.values.empty() && variable == choice.variable.text()) step += " " + variable + "=" + to_string(value);
        steps.push_back(std::move(step));
    }
    std::sort(steps.begin(), steps.end());
    return join(steps, between);
}

std::vector<std::string> rules_in(const std::string& sequence) {
    std::vector<std::string> names;
    for (const std::string& step : steps_in(sequence)) names.push_back(split(step, ' ').front());
    return names;
}

std::string neural_part(const RuleBook& book, const std::string& sequence) {
    std::vector<std::string> steps = steps_in(sequence);
    std::erase_if(steps, [&](const std::string& step) {
        const Rule* rule = book.find_rule(split(step, ' ').front());
        return !rule || rule->arrow != Arrow::neural;
    });
    std::sort(steps.begin(), steps.end());
    return join(steps, between);
}

bool in_sequences(const std::set<std::string>& sequences, const std::string& rule, const std::string& value) {
    const auto has = [](const std::vector<std::string>& words, const std::string& one) { return std::find(words.begin(), words.end(), one) != words.end(); };
    for (const std::string& sequence : sequences)
        for (const std::string& step : steps_in(sequence))
            if (const std::vector<std::string> words = split(step, ' '); words.front() == rule && (value.empty() || has(words, value))) return true;
    return false;
}

}  // namespace loopegg
