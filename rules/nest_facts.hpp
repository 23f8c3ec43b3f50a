// What is known of the nests that a guard or a choice of values is asked about.
#pragma once
#include "base/error.hpp"
#include "nest/term/facts.hpp"
#include "rules/language.hpp"

namespace loopegg {

inline const NestAnalysis& nest_facts(const Question& q) {
    const auto* facts = dynamic_cast<const NestAnalysis*>(q.facts);
    require(facts != nullptr, "rules over nests and networks are bound to nest facts");
    return *facts;
}

}  // namespace loopegg
