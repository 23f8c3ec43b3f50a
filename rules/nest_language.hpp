// The language of loop nests as the rule language sees it (`(language nest)`): its operators, and guards, lists and functions over the
// facts of src/nest.
#pragma once
#include "rules/language.hpp"

namespace loopegg {

const Language& nest_language();

}  // namespace loopegg
