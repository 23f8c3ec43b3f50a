#include "rules/read_bilinear.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "rules/judge/bilinear_identity.hpp"
#include "rules/read_rule.hpp"

namespace loopegg {
namespace {

constexpr std::array<std::string_view, 4> bilinear_keywords{":computes", ":output", ":weights", ":input"};
constexpr std::array<std::string_view, 3> matrix_names{":output", ":weights", ":input"};  // in the order of BilinearRepair::Matrix

std::string counted(std::int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

class BilinearReader {
public:
    BilinearReader(const SExpr& form, Complaints& complaints) : form_(form), complaints_(complaints) {}

    std::optional<NamedAlgorithm> read() {
        const std::size_t before = complaints_.count();
        const std::string name = read_name(form_, "bilinear algorithm", complaints_);
        read_settings();
        for (const std::string_view key : bilinear_keywords)
            if (complaints_.count() == before && !given_.contains(key))
                complaints_.say(form_.where, fmt::format("bilinear algorithm '{}' has no '{}'", name, key));
        if (complaints_.count() == before) check_sizes();
        if (complaints_.count() == before) check_products();
        if (complaints_.count() == before) prove(name);
        if (complaints_.count() != before) return {};
        return NamedAlgorithm{name, algorithm(), form_.items[1].where};
    }

private:
    BilinearForm algorithm() const { return {matrices_[0], matrices_[1], matrices_[2]}; }

    void read_settings() {
        for (std::size_t i = 2; i < form_.items.size(); i += 2) {
            const SExpr& key = form_.items[i];
            const auto known = std::find_if(bilinear_keywords.begin(), bilinear_keywords.end(), [&](std::string_view k) { return key.is_atom(k); });
            if (known == bilinear_keywords.end())
                return complaints_.say(key.where, fmt::format("a bilinear algorithm knows no '{}'", to_string(key)),
                                       did_you_mean(key.atom, std::span<const std::string_view>(bilinear_keywords)));
            if (!given_.insert(*known).second) return complaints_.say(key.where, fmt::format("'{}' is given twice", key.atom));
            if (i + 1 == form_.items.size()) return complaints_.say(key.where, fmt::format("'{}' is followed by nothing", key.atom));
            if (*known == ":computes")
                read_computes(form_.items[i + 1]);
            else
                read_matrix(static_cast<std::size_t>(std::find(matrix_names.begin(), matrix_names.end(), *known) - matrix_names.begin()), form_.items[i + 1]);
        }
    }

    void read_computes(const SExpr& e) {
        if (!e.is_atom("correlation")) complaints_.say(e.where, fmt::format("a bilinear algorithm computes a 'correlation', but this is '{}'", to_string(e)));
    }

    void read_matrix(std::size_t which, const SExpr& e) {
        RationalMatrix matrix;
        if (!e.is_list || e.items.empty())
            return complaints_.say(e.where, fmt::format("'{}' takes the rows of a matrix, as in ((1 0 -1/2) (0 1 1))", matrix_names[which]));
        for (const SExpr& row : e.items) {
            if (!row.is_list || row.items.empty())
                return complaints_.say(row.where, fmt::format("a row of '{}' is a list of numbers, but this is '{}'", matrix_names[which], to_string(row)));
            auto& entries = matrix.entries.emplace_back();
            for (const SExpr& entry : row.items) {
                const auto number = entry.is_list || entry.quoted ? std::nullopt : rational(entry.atom);
                if (!number)
                    return complaints_.say(
                        entry.where, fmt::format("an entry of a matrix is a whole number or a fraction such as -1/24, but this is '{}'", to_string(entry)));
                entries.push_back(*number);
            }
            if (entries.size() != matrix.entries.front().size())
                return complaints_.say(row.where, fmt::format("this row has another number of entries than the first row of '{}': {}, not {}",
                                                              matrix_names[which], entries.size(), matrix.entries.front().size()));
        }
        if (matrix.rows() > max_matrix_side || matrix.columns() > max_matrix_side)
            return complaints_.say(e.where, fmt::format("a matrix has at most {} rows and columns", max_matrix_side));
        matrices_[which] = std::move(matrix), places_[which] = &e;
    }

    void check_sizes() {
        const auto& [output, weights, input] = matrices_;
        const auto expect = [&](std::size_t which, std::int64_t is, std::int64_t wanted, const char* what, const std::string& why) {
            if (is != wanted)
                complaints_.say(places_[which]->where, fmt::format("'{}' has {}, but must have {}: {}", matrix_names[which], counted(is, what), wanted, why));
        };
        const std::int64_t products = output.columns();
        const std::string each = "one for each product, and ':output' has a column for each";
        expect(1, weights.rows(), products, "row", each);
        expect(2, input.rows(), products, "row", each);
        expect(2, input.columns(), output.rows() + weights.columns() - 1, "column",
               fmt::format("{} of {} read so many inputs", counted(output.rows(), "output"), counted(weights.columns(), "tap")));
    }

    // Each product must be used, so that every entry counts in the identity.
    void check_products() {
        const auto zero = [](const Rational& r) { return r.over == 0; };
        const auto& [output, weights, input] = matrices_;
        for (std::size_t u = 0; u < weights.entries.size(); ++u) {
            for (const std::size_t which : {1, 2})
                if (const auto& row = matrices_[which].entries[u]; std::all_of(row.begin(), row.end(), zero))
                    complaints_.say(places_[which]->items[u].where,
                                    fmt::format("this row of '{}' is zero, so nothing uses product {}", matrix_names[which], u));
            if (std::all_of(output.entries.begin(), output.entries.end(), [&](const auto& row) { return zero(row[u]); }))
                complaints_.say(places_[0]->where, fmt::format("column {} of ':output' is zero, so nothing uses product {}", u, u));
        }
    }

    const Position& place(const BilinearRepair& r) const { return places_[static_cast<std::size_t>(r.matrix)]->items[r.row].items[r.column].where; }

    void prove(const std::string& name) {
        const auto fault = bilinear_fault(algorithm());
        if (!fault) return;
        const std::string message = fmt::format("bilinear algorithm '{}' is not the correlation: {}", name, fault->why);
        if (fault->repairs.empty()) return complaints_.say(form_.items[1].where, message, "no change of one entry makes it right");
        std::string hint = fmt::format("it is right with {} here", fault->repairs[0].entry);
        for (std::size_t i = 1; i < fault->repairs.size(); ++i)
            hint += fmt::format(", or with {} at {}:{}", fault->repairs[i].entry, place(fault->repairs[i]).line(), place(fault->repairs[i]).column());
        complaints_.say(place(fault->repairs[0]), message, hint);
    }

    const SExpr& form_;
    Complaints& complaints_;
    std::set<std::string_view> given_;
    std::array<RationalMatrix, 3> matrices_;
    std::array<const SExpr*, 3> places_{};
};

const NamedAlgorithm* named(const std::vector<NamedAlgorithm>& known, const std::string& name) {
    const auto at = std::find_if(known.begin(), known.end(), [&](const NamedAlgorithm& a) { return a.name == name; });
    return at == known.end() ? nullptr : &*at;
}

void replace_names(SExpr& e, const std::vector<NamedAlgorithm>& known) {
    for (SExpr& item : e.items) replace_names(item, known);
    if (e.is_list || e.quoted) return;
    if (const NamedAlgorithm* a = named(known, e.atom)) e.atom = to_string(to_term(a->form));
}

}  // namespace

std::optional<NamedAlgorithm> read_bilinear(const SExpr& form, const Language& language, Complaints& complaints) {
    if (!language.has_operator("bilinear")) {
        complaints.say(form.where, fmt::format("language {} has no bilinear algorithms", language.name), "a file that begins with '(language nest)' has");
        return {};
    }
    auto read = BilinearReader(form, complaints).read();
    if (read && (language.has_operator(read->name) || (language.leaf_kind && language.leaf_kind(read->name)))) {
        complaints.say(read->where, fmt::format("'{}' means something else in language {}, so no algorithm can have this name", read->name, language.name));
        return {};
    }
    return read;
}

SExpr with_algorithms(const SExpr& rule, const std::vector<NamedAlgorithm>& known) {
    SExpr all = rule;
    for (std::size_t i = 2; i < all.items.size(); ++i) replace_names(all.items[i], known);  // not the name of the rule
    return all;
}

void check_algorithms(const Rule& rule, const std::vector<NamedAlgorithm>& known, Complaints& complaints) {
    std::vector<std::string> names;
    for (const NamedAlgorithm& a : known) names.push_back(a.name);
    std::set<Symbol> seen;
    for (const ChoiceCall& list : rule.choices)
        for (std::size_t i = 0; list.list && i < list.arguments.size(); ++i) {
            const auto& parameters = list.list->signature.parameters;
            if (i >= parameters.size() || parameters[i] != "algorithm" || !seen.insert(list.arguments[i].name).second) continue;
            for (const ChoiceCall& from : rule.choices)
                for (const Term& value : from.variable == list.arguments[i].name ? from.values : std::vector<Term>{})
                    if (!bilinear_form(value))
                        complaints.say(from.where, fmt::format("there is no bilinear algorithm '{}'", to_string(value)), did_you_mean(to_string(value), names));
        }
}

}  // namespace loopegg
