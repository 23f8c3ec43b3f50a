// Axes as isl reads them: expressions over the iterators, and the conditions under which they are defined.
#pragma once
#include <functional>
#include <string>

#include "base/term.hpp"
#include "nest/judge/isl_questions.hpp"

namespace loopegg {

// a R b, for R such as " = " or " < ".
IslText related(const IslText& a, const char* relation, const IslText& b);

// Adds the conditions under which the axis is defined (a span or a diagonal holds) to `conditions`. `name_of` gives the text of an iterator, by its name.
IslText axis_text(const Term& axis, const std::function<IslText(const std::string&)>& name_of, Conjunction& conditions);

}  // namespace loopegg
