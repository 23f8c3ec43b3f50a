#include "rules/verdict.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::pair<RuleVerdict::Proof, const char*>, 4> words{{{RuleVerdict::Proof::all_sizes, "all-sizes"},
                                                                           {RuleVerdict::Proof::listed, "listed"},
                                                                           {RuleVerdict::Proof::unproved, "unproved"},
                                                                           {RuleVerdict::Proof::refuted, "refuted"}}};

}  // namespace

std::string to_string(RuleVerdict::Proof proof) {
    for (const auto& [p, word] : words)
        if (p == proof) return word;
    return "unproved";
}

RuleVerdict::Proof proof_named(const std::string& word) {
    for (const auto& [p, known] : words)
        if (known == word) return p;
    throw UserError("'" + word + "' is no verdict on a rule");
}

std::string in_words(const RuleVerdict& v) {
    std::string text = v.proof == RuleVerdict::Proof::all_sizes ? "proved for all sizes"
                       : v.proof == RuleVerdict::Proof::listed  ? "proved for"
                       : v.proof == RuleVerdict::Proof::refuted ? "unsound: " + v.why
                                                                : "not proved: " + v.why;
    if (v.proof == RuleVerdict::Proof::listed) {
        const char* comma = " ";
        for (const auto& [variable, most] : v.most) text += fmt::format("{}{} up to {}", comma, variable, most), comma = ", ";
    }
    if (v.reorders_sums) text += "; reorders sums";
    const char* kinds = "; rounds operands to ";
    for (const std::string& kind : v.roundings) text += kinds + kind, kinds = " and ";
    return text;
}

}  // namespace loopegg
