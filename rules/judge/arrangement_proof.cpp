#include "rules/judge/arrangement_proof.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "egraph/rewrite.hpp"
#include "nest/term/rounding.hpp"
#include "rules/tile_contracts.hpp"

namespace loopegg {
namespace {

enum class LoopUse { serial, apart, partial, tensor };

struct PartUse {
    std::string part;
    bool rest = false;
    LoopUse use = LoopUse::serial;
};
using PartPath = std::vector<PartUse>;

struct Wrong {
    std::string why;
};

const ChoiceCall* choice_of(const Rule& rule, Symbol variable) {
    const auto found = std::find_if(rule.choices.begin(), rule.choices.end(), [&](const ChoiceCall& c) { return c.variable == variable; });
    return found == rule.choices.end() ? nullptr : &*found;
}

// The computed schedule of a right side (nest ?n COMPUTED).
const Expression* computed_schedule(const Rule& rule) {
    const Term& right = rule.right[0].term;
    if (!right.is("nest", 2) || right[1].size() > 0) return nullptr;
    const ChoiceCall* made = choice_of(rule, right[1].op());
    return made && made->computed ? &*made->computed : nullptr;
}

bool is_word(const Expression& e, const char* word) { return e.form == Expression::Form::word && e.name.text() == word; }
bool is_call(const Expression& e) { return e.form == Expression::Form::call; }

class ArrangementReader {
public:
    explicit ArrangementReader(const Rule& rule) : rule_(rule) {
        const Term& left = rule.left[0].term;
        const bool whole = left.is("nest", 2) && is_variable(left[0].op()) && left[0].size() == 0 && left[1].size() == 0 && is_variable(left[1].op());
        if (!whole || rule.right[0].term[0] != left[0]) throw Wrong{"a computed schedule takes the place of a whole schedule: (nest ?n ?s) => (nest ?n ...)"};
        nest_ = left[0].op(), schedule_ = left[1].op();
    }

    void read(const Expression& e, PartPath path) {
        if (is_word(e, "done")) {
            paths.push_back(std::move(path));
            return;
        }
        if (!is_call(e)) throw Wrong{"'" + e.text + "' is no schedule that the judge knows"};
        const std::string& op = e.function->name;
        if (op == "cat") {
            read(e.arguments[0], path);
            read(e.arguments[1], std::move(path));
        } else if (op == "stage") {
            read(e.arguments[1], std::move(path));  // a copy of what the rest touches changes no value
        } else if (op == "at" || op == "unroll" || op == "par" || op == "vec") {
            add(e.arguments[0], op == "par" || op == "vec" ? LoopUse::apart : LoopUse::serial, path);
            read(e.arguments[1], std::move(path));
        } else if (op == "bind" || op == "partial") {
            const bool listed = op == "bind" && is_unit(e.arguments[0]);
            if (!listed && e.arguments[0].form != Expression::Form::word) throw Wrong{"the place of a loop is not written out"};
            const bool tensor = listed || (op == "bind" && is_tensor_place(Term(e.arguments[0].name)));
            add(e.arguments[1], op == "partial" ? LoopUse::partial : tensor ? LoopUse::tensor : LoopUse::apart, path);
            read(e.arguments[2], std::move(path));
        } else {
            throw Wrong{"'" + e.text + "' is no schedule that the judge knows"};
        }
    }

    std::vector<PartPath> paths;
    const TileContract* contract = nullptr;

private:
    void add(const Expression& axes, LoopUse use, PartPath& path) {
        if (!is_call(axes)) throw Wrong{"'" + axes.text + "' is no list of axes that the judge knows"};
        const std::string& name = axes.function->name;
        if (name == "fused") return add(axes.arguments[0], use, path);
        if (name == "both") {
            for (const Expression& each : axes.arguments) add(each, use, path);
            return;
        }
        note_tile(axes);
        if (name != contract->parts_of && (name != contract->rest_of || contract->rest_of.empty()))
            throw Wrong{fmt::format("({} ...) gives no part of a tile from the list {}", name, contract->list)};
        if (axes.arguments[3].form != Expression::Form::word) throw Wrong{"the part of a tile is not written out"};
        const bool rest = name == contract->rest_of;
        path.push_back({axes.arguments[3].name.text(), rest, use});
    }

    // A place from the list of the machine's units.
    bool is_unit(const Expression& place) const {
        const ChoiceCall* from = place.form == Expression::Form::variable ? choice_of(rule_, place.name) : nullptr;
        return from && from->list && (from->list->name == "units" || from->list->name == "units-of");
    }

    // All parts are of one tile of this nest.
    void note_tile(const Expression& part) {
        const bool of_nest = part.arguments.size() == 4 && part.arguments[0].name == nest_ && part.arguments[1].name == schedule_;
        const ChoiceCall* tile = part.arguments.size() == 4 ? choice_of(rule_, part.arguments[2].name) : nullptr;
        if (!of_nest || !tile || !tile->list) throw Wrong{"'" + part.text + "' is no part of a tile of this nest"};
        const TileContract* of = contract_of_list(tile->list->name);
        const bool listed = of && tile->arguments.size() >= 2 && tile->arguments[0].name == nest_ && tile->arguments[1].name == schedule_;
        if (!listed) throw Wrong{fmt::format("'{}' is no tile of this nest", tile->variable.text())};
        if (tile_ && tile_ != tile) throw Wrong{"its loops come from two tiles"};
        tile_ = tile, contract = of;
    }

    const Rule& rule_;
    Symbol nest_, schedule_;
    const ChoiceCall* tile_ = nullptr;
};

std::string base_part(const TileContract& c, const std::string& part) {
    for (const auto& [plain, other] : c.instead)
        if (part == other) return std::string(plain);
    return part;
}

PartRole part_role(const TileContract& c, const std::string& part) {
    const std::string base = base_part(c, part);
    for (const TilePart& p : c.parts)
        if (p.name == base) return p.role;
    throw Wrong{fmt::format("a tile from the list {} has no part '{}'", c.list, part)};
}

bool is_empty(const TileContract& c, const std::string& part) { return std::find(c.empty.begin(), c.empty.end(), part) != c.empty.end(); }

// Every part once, of the tile or of its rest; both have the loops of "shared" in common.
void check_parts(const TileContract& c, const PartPath& path, bool rest) {
    std::set<std::string> seen;
    int other = 0, plain = 0;
    for (const PartUse& use : path) {
        part_role(c, use.part);
        if (use.rest != rest && use.part != "shared") throw Wrong{"loops of a tile are mixed with loops of its rest"};
        const std::string base = base_part(c, use.part);
        if (!is_empty(c, base) && !seen.insert(base).second) throw Wrong{"walks the loops of the part '" + use.part + "' twice"};
        for (const auto& [name, instead] : c.instead) plain += use.part == name, other += use.part == instead;
    }
    if (other > 0 && plain > 0) throw Wrong{"the threads' own outputs overlap"};
    for (const TilePart& p : c.parts)
        if (!seen.contains(std::string(p.name)) && !is_empty(c, std::string(p.name)))
            throw Wrong{"leaves out the loops of the part '" + std::string(p.name) + "'"};
}

void check_uses(const TileContract& c, const PartPath& path) {
    for (const PartUse& use : path) {
        const PartRole role = part_role(c, use.part);
        if (use.use == LoopUse::apart && role != PartRole::parallel)
            throw Wrong{"runs the iterations of the part '" + use.part + "' at once, which add into one result"};
        if (use.use == LoopUse::partial && role != PartRole::sum) throw Wrong{"takes sums in parts along '" + use.part + "', which sums up nothing"};
    }
}

bool reorders(const TileContract& c, const PartPath& path) {
    std::size_t next = 0;
    for (const PartUse& use : path) {
        if (part_role(c, use.part) == PartRole::parallel || is_empty(c, use.part)) continue;
        if (use.use == LoopUse::partial || use.use == LoopUse::tensor) return true;
        const auto at = static_cast<std::size_t>(std::find(c.sums.begin(), c.sums.end(), use.part) - c.sums.begin());
        if (at == c.sums.size() || at < next) return true;
        next = at;
    }
    return c.cuts_a_sum;
}

}  // namespace

bool is_arrangement(const Rule& rule) { return computed_schedule(rule) != nullptr; }

namespace {

void collect_roundings(const Expression& e, std::set<std::string>& into) {
    if (is_call(e) && e.function->name == "bind") {
        const Expression& place = e.arguments[0];
        if (place.form == Expression::Form::variable)
            into.insert(place.name.text());
        else if (is_tensor_place(Term(place.name)))
            into.insert(place.name.text().substr(tensor_place.size()));
    }
    for (const Expression& each : e.arguments) collect_roundings(each, into);
}

}  // namespace

std::set<std::string> arrangement_roundings(const Rule& rule) {
    std::set<std::string> all;
    if (const Expression* made = computed_schedule(rule)) collect_roundings(*made, all);
    return all;
}

ArrangementFinding prove_arrangement(const Rule& rule) {
    try {
        if (rule.arrow != Arrow::forward) throw Wrong{"a computed schedule is exact, and goes one way"};
        ArrangementReader reader(rule);
        reader.read(*computed_schedule(rule), {});
        if (!reader.contract) throw Wrong{"its schedule has no loops"};
        const TileContract& contract = *reader.contract;
        const bool cut = !contract.rest_of.empty();
        if (reader.paths.size() != (cut ? 2u : 1u)) throw Wrong{cut ? "a tile that is cut has a rest" : "visits the nest's instances more than once"};
        ArrangementFinding found;
        const bool first_is_rest = cut && std::any_of(reader.paths[0].begin(), reader.paths[0].end(), [](const PartUse& u) { return u.rest; });
        for (std::size_t i = 0; i < reader.paths.size(); ++i) {
            check_parts(contract, reader.paths[i], cut && (i == 1) != first_is_rest);
            check_uses(contract, reader.paths[i]);
            found.reorders_sums = found.reorders_sums || reorders(contract, reader.paths[i]);
        }
        const bool asked = std::any_of(rule.guards.begin(), rule.guards.end(), [](const GuardCall& g) { return g.guard->name == "allow-reassociation"; });
        if (asked) found.reorders_sums = false;
        return found;
    } catch (const Wrong& wrong) {
        return {wrong.why, false};
    }
}

}  // namespace loopegg
