// plan.json: a list of sites and of rule applications to them, by hand or as the record of what was chosen.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/term.hpp"

namespace loopegg {

struct Application {
    std::string rule;                    // "group-axes"
    std::map<std::string, Term> with;    // the substitution: "?a" -> co, "?g" -> 4; axes and numbers may be expressions
    std::string restore{};               // repeat | zero | pointwise | propagate, or none
    std::optional<std::int64_t> part{};  // after cut-domain: the piece that is meant
    bool backwards = false;              // an exact rule, from its right side to its left side
    Position where{};
    friend bool operator==(const Application& a, const Application& b) {
        return a.rule == b.rule && a.with == b.with && a.restore == b.restore && a.part == b.part && a.backwards == b.backwards;
    }
};

struct SiteStep {
    std::string site;  // a glob over node names
    std::vector<Application> apply;
    Position where{};
    friend bool operator==(const SiteStep& a, const SiteStep& b) { return a.site == b.site && a.apply == b.apply; }
};

struct Plan {
    std::vector<SiteStep> steps;
    friend bool operator==(const Plan&, const Plan&) = default;
};

// Throws UserError that points into the file.
Plan read_plan(const SourcePtr& source);
Plan read_plan(const JsonView& view);      // a plan inside another file
std::string write_plan(const Plan& plan);  // reading it gives the same plan

// An application of a rule as a person types it in one line: 'group-axes a=co b=ci g=4'.

// RULE, then VARIABLE=VALUE for each variable (with or without its '?'), and restore=WORD, part=N or backwards where a plan has these. A value is an axis or a
// number, or an expression in parentheses: b='(quo oh 16)' is typed b=(quo oh 16). Throws UserError with the column of what cannot be read.
Application read_typed_application(const SourcePtr& source);

}  // namespace loopegg
