#include "optimize/tune/statement_kind.hpp"

#include <fmt/format.h>

#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/wrapped_statement.hpp"

namespace loopegg {

std::string statement_kind(const Term& stmt) {
    if (is_wrapper(stmt)) {
        std::string wrapper = stmt.op().text();
        for (std::size_t i = 0; i + 1 < stmt.size(); ++i) wrapper += " " + to_string(stmt[i]);
        return fmt::format("({} {})", wrapper, statement_kind(stmt[stmt.size() - 1]));
    }
    Term kind = stmt;
    for (const Iterator& axis : statement_of(stmt).axes)
        for (const char* channels : {"g", "co", "ci", "c", "r"})
            if (axis.name == channels && axis.extent > 1) kind = with_size(kind, axis.name, Term("several"));
    return to_string(kind);
}

}  // namespace loopegg
