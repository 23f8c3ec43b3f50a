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

bool has_separate_columns(const Term& stmt) {
    if (plain_statement(stmt).op().text() != "matmul") return false;
    for (Term t = stmt; t.size() > 0 && !t.is("matmul", 4); t = Term(t[t.size() - 1]))
        if (t.is("layout", 4) || (t.is("epilogue", 2) && !t[0].is("times", 1) && !is_plain_function(t[0].op().text()))) return false;
    return true;
}
bool works_by_element(const Term& stmt) { return stmt.is("wide_exp", 2) || stmt.is("map", 2) || stmt.is("scale", 2); }
bool works_by_pair(const Term& stmt) {
    constexpr std::int64_t all = 15;  // I has every dimension of the output
    return stmt.is("zip", 2) || (stmt.is("stretch", 7) && stmt[5].integer() == all);
}
bool sums_columns(const Term& stmt) {
    Term inner = stmt;
    while (inner.is("order", 3)) inner = Term(inner[2]);
    return inner.is("matmul", 4) || (stmt.is("row_sum", 3) && stmt[2].integer() == 1);
}

std::vector<Term> column_blocks(const Term& stmt) {
    constexpr std::int64_t fewest = 32, most = 1024;  // shorter blocks spend time on what blocks carry over; longer ones leave the near caches
    std::vector<Term> all;
    if (!sums_columns(stmt)) return all;
    const Term plain = plain_statement(stmt);
    const std::int64_t columns = plain[plain.is("matmul", 4) ? 3 : 1].integer().value_or(0);
    for (std::int64_t k = fewest; k <= most && k < columns; k *= 2) all.emplace_back(k);
    if (columns > 0 && columns <= most) all.emplace_back(columns);
    return all;
}

bool is_epilogue_function(const std::string& word) { return is_plain_function(word); }

}  // namespace loopegg
