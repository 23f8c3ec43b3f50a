// A site's nest as plans see it: parts of the domain, each a set of loops whose order does not matter.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "graph/graph.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// Why a rule cannot be applied here.
class Refusal : public UserError {
public:
    using UserError::UserError;
};

class SiteForm {
public:
    // The parts of the node's nest as its domain leaves it.
    explicit SiteForm(const Node& node);
    // The parts that a whole NEST visits.
    explicit SiteForm(const Term& nest);

    std::size_t parts() const { return parts_.size(); }

    // In an application's expressions an iterator's name means what is left of it in that part: after a cut of co at 32, `co` in part 0
    // is the first half; after a grouping, `co` and `ci` are the channels of one group and `g` is the group.
    // A name with its extent (co:64) is the iterator itself, as it is in the terms of a derivation.
    // Expressions for numbers are made of (extent A), + - * / min max gcd and numbers.
    Term axis(std::size_t part, const Term& expression) const;
    std::int64_t number(std::size_t part, const Term& expression) const;

    bool is_output_axis(const Term& axis) const;                                 // the output's index depends on some iterator of the axis
    Term list(std::size_t part, const std::vector<Term>& outermost = {}) const;  // one serial loop per axis of a part, `outermost` first. Throws Refusal
    Term schedule() const;                                                       // the lists of all parts, one after another
    const Statement& statement() const { return statement_; }

private:
    using Loops = std::vector<Term>;
    std::size_t isolate(Loops& loops, const Term& axis) const;
    Term left_of(const Loops& loops, const std::string& iterator) const;

    Statement statement_;
    std::vector<Loops> parts_;
};

}  // namespace loopegg
