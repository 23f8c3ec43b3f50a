#include "backends/network/block_candidates.hpp"

#include <algorithm>

#include "backends/lower/default_schedule.hpp"
#include "nest/term/blockwise.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t max_rows = 64, min_rows = 8;  // of a block
constexpr std::int64_t rows_at_once = 4;             // of which a core adds up products, so a block of other numbers of rows wastes some
constexpr std::size_t sizes_tried = 2;               // numbers of rows, and numbers of columns for each

// The largest numbers of rows that blocks may have: those that divide the rows, else those that leave the last block few rows short.
std::vector<std::int64_t> row_blocks(std::int64_t rows) {
    std::vector<std::int64_t> all;
    const std::int64_t fewest = std::min(min_rows, rows);
    for (std::int64_t n = std::min(max_rows, rows); n >= fewest && all.size() < sizes_tried; --n)
        if (rows % n == 0) all.push_back(n);
    for (std::int64_t blocks = (rows + max_rows - 1) / max_rows; all.size() < sizes_tried; ++blocks) {
        const std::int64_t n = (rows + blocks - 1) / blocks, even = std::min(rows, (n + rows_at_once - 1) / rows_at_once * rows_at_once);
        if (even < fewest) break;
        if (std::find(all.begin(), all.end(), even) == all.end()) all.push_back(even);
    }
    return all;
}

// Floats that one block works on.
double working_set(const Blockwise& b) {
    double floats = static_cast<double>(b.row_block) * static_cast<double>(b.column_block);
    for (const BlockPart& p : b.parts)
        for (std::size_t i = 0; i < p.views.size(); ++i)
            if (p.views[i].part < 0 || p.kind == BlockPart::Kind::sum) floats += static_cast<double>(element_count(p.statement.buffers[i].shape));
    return floats;
}

// The product that begins a value in blocks.
const Term& first_nest(const Term& value) { return value.is("columns", 2) ? value[1] : first_nest(value[0]); }
std::int64_t rows_of(const Term& value) { return plain_statement(nest_parts(first_nest(value)).statement)[1].integer().value_or(1); }

Term scheduled(const Term& stmt, const Target& target) {
    std::vector<Term> nests;
    for (const BlockPart& part : blockwise_of(stmt).parts) nests.push_back(arrange_for_one_core(part.nest, target));
    const Statement s = statement_of(with_part_nests(stmt, nests));
    Term loops = naive_schedule(s);
    if (loops.is("at", 2) && s.axes[0].extent > 1) loops = Term("par", {loops[0], loops[1]});
    return Term("nest", {s.term, loops});
}

}  // namespace

std::vector<Term> block_candidates(const BlockChain& chain, const Target& target) {
    std::vector<Term> nests;
    if (chain.forms.empty()) return nests;
    const double held = target.machine.l2_kb * 1024 / 4 / 2;  // the other half is for what comes next
    for (const std::int64_t rows : row_blocks(rows_of(chain.forms.front().value))) {
        std::vector<std::pair<std::int64_t, Term>> by_columns;
        for (const BlockForm& form : chain.forms)
            if (const auto stmt = blockwise_form(form.value, rows))
                if (const Blockwise b = blockwise_of(*stmt); working_set(b) <= held) by_columns.emplace_back(-b.column_block, *stmt);
        // Sums of longer blocks are rescaled more seldom.
        std::stable_sort(by_columns.begin(), by_columns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t i = 0; i < std::min(sizes_tried, by_columns.size()); ++i) nests.push_back(scheduled(by_columns[i].second, target));
    }
    return nests;
}

Schedules with_block_estimates(const Graph& graph, Schedules schedules, const Target& target) {
    if (target.gpu()) return schedules;
    const double held = target.machine.l2_kb * 1024;
    for (const BlockChain& chain : block_chains(graph, target)) {
        if (chain.forms.empty() || schedules.contains(chain.site)) continue;
        const auto between = blockwise_form(chain.forms.front().value, 1);
        const double bytes = 4.0 * static_cast<double>((*between)[0].integer().value_or(0)) * static_cast<double>((*between)[1].integer().value_or(0)) *
                             static_cast<double>((*between)[2].integer().value_or(0));
        if (bytes < held) continue;
        if (const std::vector<Term> nests = block_candidates(chain, target); !nests.empty()) schedules[chain.site] = nests.front();
    }
    return schedules;
}

}  // namespace loopegg
