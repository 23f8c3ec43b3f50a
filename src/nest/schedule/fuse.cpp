#include "nest/schedule/fuse.hpp"

#include <functional>
#include <optional>
#include <string_view>

#include "graph/functions.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

Term laid_out_plainly(Term stmt) {
    while (stmt.is("layout", 4)) stmt = stmt[3];
    return stmt;
}

// (then (site NEST) (nest STMT ...)), where NEST may be restored: the nest with `wrap` around its statement.
using Wrap = std::function<std::optional<Term>(const Term& stmt, const Term& follower)>;

std::optional<Term> into_site(const Term& value, bool restored, const Wrap& wrap) {
    if (!value.is("then", 2) || !value[0].is("site", 1)) return {};
    const Term& whole = value[0][0];
    if (whole.is("restore", 2) != restored) return {};
    const Term& nest = restored ? whole[1] : whole;
    auto stmt = wrap(nest[0], value[1][0]);
    if (!stmt) return {};
    Term made("nest", {*stmt, nest[1]});
    return Term("site", {restored ? Term("restore", {whole[0], made}) : made});
}

Term epilogue(const Term& function, const Term& stmt) { return Term("epilogue", {function, stmt}); }

std::optional<Term> batch_norm(const Term& stmt, const Term& follower) {
    if (!follower.is("channel_scale", 3) || !is_convolution(stmt)) return {};
    return epilogue(Term("scale_shift"), stmt);
}

std::optional<Term> activation(const Term& stmt, const Term& follower) {
    if (!follower.is("map", 2) || follower[0].size() > 0 || !is_epilogue_function(follower[0].op().text()) || !is_beyond_map(stmt)) return {};
    return epilogue(follower[0], stmt);
}

std::optional<Term> addition(const Term& stmt, const Term& follower) {
    if (!follower.is("zip", 2) || follower[0].op().text() != "+" || !has_weights(stmt)) return {};
    return epilogue(Term("add"), stmt);
}

// (site (nest (epilogue scale_shift STMT) S)), not restored: its statement, and the nest around another.
std::optional<Term> scaled_statement(const Term& value) {
    if (!value.is("site", 1) || !value[0].is("nest", 2)) return {};
    const Term& stmt = value[0][0];
    return stmt.is("epilogue", 2) && stmt[0].op().text() == "scale_shift" ? std::optional(stmt[1]) : std::nullopt;
}
Term prepared_site(const char* how, const Term& stmt, const Term& value) {
    return Term("prepare", {Term(how), Term("site", {Term("nest", {stmt, value[0][1]})})});
}

std::optional<Term> fold_bias(const Term& value) {
    auto inner = scaled_statement(value);
    if (!inner || !inner->is("epilogue", 2) || (*inner)[0].op().text() != "bias") return {};
    return prepared_site("fold-bias", epilogue(Term("scale_shift"), (*inner)[1]), value);
}

std::optional<Term> fold_scale(const Term& value) {
    auto inner = scaled_statement(value);
    if (!inner || !is_weighted_sum(*inner)) return {};
    return prepared_site("fold-scale", epilogue(Term("bias"), *inner), value);
}

std::optional<Term> prepare_first(const Term& value) {
    if (!value.is("then", 2) || !value[0].is("prepare", 2)) return {};
    return Term("prepare", {value[0][0], Term("then", {value[0][1], value[1]})});
}

struct FusionRule {
    const char* name;
    std::function<std::optional<Term>(const Term&)> apply;
};

const std::vector<FusionRule>& rules() {
    auto into = [](bool restored, const Wrap& wrap) { return [=](const Term& value) { return into_site(value, restored, wrap); }; };
    static const std::vector<FusionRule> all{
        {"fold-bias", fold_bias},
        {"fold-scale", fold_scale},
        {"prepare-first", prepare_first},
        {"fuse-batch-norm", into(false, batch_norm)},
        {"fuse-activation", into(false, activation)},
        {"fuse-add", into(false, addition)},
        {"fuse-batch-norm-restored", into(true, batch_norm)},
        {"fuse-activation-restored", into(true, activation)},
        {"fuse-add-restored", into(true, addition)},
    };
    return all;
}

// The first rule that applies inside a value or, if none does, to it: a site is done before what follows it is looked at.
std::optional<FusionStep> step(const Term& value) {
    if (value.is("then", 2))
        if (auto inner = step(value[0])) return FusionStep{inner->rule, Term("then", {inner->value, value[1]})};
    if (value.is("prepare", 2))
        if (auto inner = step(value[1])) return FusionStep{inner->rule, Term("prepare", {value[0], inner->value})};
    for (const FusionRule& rule : rules())
        if (auto made = rule.apply(value)) return FusionStep{rule.name, *made};
    return {};
}

}  // namespace

std::vector<FusionStep> fuse(const Term& value) {
    std::vector<FusionStep> all;
    for (Term now = value;;) {
        auto next = step(now);
        if (!next) return all;
        now = next->value;
        all.push_back(std::move(*next));
    }
}

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

bool is_epilogue_function(const std::string& word) {
    return is_plain_function(word);
}

}  // namespace loopegg
