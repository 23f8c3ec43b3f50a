#include "nest/term/statement_kinds.hpp"

#include "graph/functions.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

Term laid_out_plainly(Term stmt) {
    while (stmt.is("layout", 4)) stmt = stmt[3];
    return stmt;
}

}  // namespace

bool is_convolution(const Term& stmt) {
    const Term outer = laid_out_plainly(stmt);
    return laid_out_plainly(outer.is("epilogue", 2) && outer[0].op().text() == "bias" ? outer[1] : outer).op().text() == "conv2d";
}
bool is_weighted_sum(const Term& stmt) {
    const std::string& op = laid_out_plainly(stmt).op().text();
    return op == "conv2d" || op == "linear";
}
bool has_weights(const Term& stmt) { return is_weighted_sum(plain_statement(stmt)); }
bool is_beyond_map(const Term& stmt) { return plain_statement(stmt).op().text() != "map"; }

bool is_epilogue_function(const std::string& word) { return is_plain_function(word); }

}  // namespace loopegg
