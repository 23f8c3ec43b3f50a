#include "rules/verdict.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

using Proof = RuleVerdict::Proof;

constexpr std::array<std::pair<Proof, const char*>, 5> words{
    {{Proof::all_sizes, "all-sizes"}, {Proof::listed, "listed"}, {Proof::tried, "tried"}, {Proof::unproved, "unproved"}, {Proof::refuted, "refuted"}}};

}  // namespace

std::string to_string(Proof proof) {
    for (const auto& [p, word] : words)
        if (p == proof) return word;
    return "unproved";
}

Proof proof_named(const std::string& word) {
    for (const auto& [p, known] : words)
        if (known == word) return p;
    throw UserError("'" + word + "' is no verdict on a rule");
}

std::string in_words(const RuleVerdict& v) {
    std::string text = v.proof == Proof::all_sizes ? "proved for all sizes"
                       : v.proof == Proof::tried   ? v.why
                       : v.proof == Proof::listed  ? "proved for"
                       : v.proof == Proof::refuted ? "unsound: " + v.why
                                                   : "not proved: " + v.why;
    if (v.proof == Proof::listed) {
        const char* comma = " ";
        for (const auto& [variable, most] : v.most) text += fmt::format("{}{} up to {}", comma, variable, most), comma = ", ";
    }
    if (v.reorders_sums) text += "; reorders sums";
    const char* kinds = "; rounds operands to ";
    for (const std::string& kind : v.roundings) text += kinds + kind, kinds = " and ";
    return text;
}

}  // namespace loopegg
