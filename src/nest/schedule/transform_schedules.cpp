#include "nest/schedule/transform_schedules.hpp"

#include <algorithm>

#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

Term around(const char* kind, const Term& axis, const Term& rest) { return Term(kind, {axis, rest}); }

class Builder {
public:
    explicit Builder(const Statement& s) : s_(s) {}

    // `lanes` channels at a time. The cores share blocks of channels, and rows of tiles with them; the tiles that one of them works on lie in storage of
    // its own, where channels are neighbours.
    Term build(std::int64_t lanes, bool share_rows, bool staged) const {
        const std::int64_t channels = extent("c");
        Term s = lanes == channels ? around("vec", axis("c"), Term("done")) : around("vec", Term("rem", {axis("c"), Term(lanes)}), Term("done"));
        for (const char* name : {"kw", "kh", "v", "j", "u", "i"})
            if (s_.axis(name) >= 0) s = around("unroll", axis(name), s);
        if (extent("tw") > 1) s = around("at", axis("tw"), s);
        const bool reads = s_.axis("u") >= 0;   // the input's transform: what it reads is staged, else what it writes
        const Term stage(reads ? "I" : "O");
        const bool rows = extent("th") > 1;
        if (staged && (share_rows || !reads)) s = Term("stage", {stage, s});
        if (rows && !share_rows) s = around("at", axis("th"), s);
        if (staged && !share_rows && reads) s = Term("stage", {stage, s});
        std::vector<Term> shared;
        if (extent("n") > 1) shared.push_back(axis("n"));
        if (lanes < channels) shared.push_back(Term("quo", {axis("c"), Term(lanes)}));
        if (rows && share_rows) shared.push_back(axis("th"));
        if (shared.empty()) return s;
        Term together = shared[0];
        for (std::size_t i = 1; i < shared.size(); ++i) together = Term("pair", {together, shared[i]});
        return around("par", together, s);
    }

    std::int64_t extent(std::string_view name) const { return s_.axes[static_cast<std::size_t>(s_.axis(name))].extent; }

private:
    Term axis(std::string_view name) const { return axis_leaf(name, extent(name)); }
    const Statement& s_;
};

}  // namespace

std::vector<Term> transform_schedules(const Term& nest, const VectorMachine& machine) {
    const NestParts parts = nest_parts(nest);
    const Statement s = statement_of(parts.statement);
    std::vector<Term> out;
    if (s.coefficients.empty() || !parts.restore.empty()) return out;
    const Builder builder(s);
    for (const std::int64_t lanes : {machine.lanes, 2 * machine.lanes, machine.lanes / 2, machine.lanes / 4}) {
        if (lanes < 2 || builder.extent("c") % lanes != 0) continue;
        for (const bool share_rows : {true, false})
            for (const bool staged : {true, false})
                if (staged || s.axis("i") >= 0)   // an input that may be left is copied first: a test for each element takes long to compile
                    out.push_back(Term("nest", {parts.statement, builder.build(lanes, share_rows, staged)}));
    }
    return out;
}

}  // namespace loopegg
