// How many channels the parts of a network rule read and write, for all sizes: polynomials over what the rule's variables stand for.
//
// What a network ?x reads is a symbol, and what it writes is an unknown function of what comes in, unless a condition says more: a fresh network writes a
// constant, and a channelwise one a multiple of what comes in. The left side is a network, so its parts fit together, and that relates the symbols.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "rules/judge/polynomial.hpp"
#include "rules/rule.hpp"

namespace loopegg {

using Channels = std::optional<Polynomial>;  // none where a term does not determine them

class NetCounts {
public:
    explicit NetCounts(const Rule& rule);

    Polynomial number(const Term& leaf);
    Channels in(const Term& net);
    Polynomial written(const Term& net, const Channels& in);
    Polynomial written_by(const Term& variable_or_layer, const std::string& in);  // where so many come in, in words
    // Why the parts of a term do not fit together; empty where they do.
    std::string misfit(const Term& net);
    Polynomial resolved(Polynomial p) const;

    bool has_guard(const char* name, const Term& variable) const;
    bool is_fresh(const Term& variable) const { return has_guard("fresh", variable); }
    // How many channels a channelwise variable writes for each one that it reads.
    std::optional<Polynomial> copies(const Term& net) const;
    // A nest of another size: the nest that it is made from, and the output channels that it was given.
    struct Nest {
        Term base;
        Channels outputs{};
        Polynomial missing{};
    };
    Nest nest(const Term& leaf);

private:
    const Expression* computed(const Term& leaf) const;
    Polynomial value(const Expression& e);
    Polynomial call(const Expression& e);
    Polynomial absent(const Polynomial& missing, const Term& net);
    void note_guards();
    void assume_fit(const Term& net);
    void assume_equal(const Polynomial& a, const Polynomial& b);

    const Rule& rule_;
    std::map<std::string, Polynomial> known_;  // what symbols stand for
};

bool is_variable_leaf(const Term& term);
// The number of channels around a (write W NET) and its like.
bool is_width(const Term& net);

}  // namespace loopegg
