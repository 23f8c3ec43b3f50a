#include "rules/net_language.hpp"

#include "base/error.hpp"
#include "nest/net/net.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/facts.hpp"
#include "rules/nest_facts.hpp"

namespace loopegg {
namespace {

const NetSizes* net(const Question& q, std::size_t i) { return q.arguments[i].eclass == none ? nullptr : nest_facts(q).net(q.arguments[i].eclass); }

GuardKind net_guard(std::string name, std::string summary, bool (*holds)(const NetSizes&), const char* otherwise) {
    return {std::move(name), {{"net"}}, std::move(summary), [holds, otherwise](const Question& q) {
                const NetSizes* sizes = net(q, 0);
                if (sizes == nullptr) return Verdict{false, "not a network", {}};
                return holds(*sizes) ? Verdict{true, "", {}} : Verdict{false, otherwise, {}};
            }};
}

FunctionKind channel_function(std::string name, Signature signature, std::string summary, std::optional<std::int64_t> (*value)(const Question&)) {
    return {std::move(name), std::move(signature), std::move(summary), value};
}

// A nest of other sizes. All terms of a class of nests have one domain, so any of them will do.
FunctionKind resizing(std::string name, std::string summary, std::optional<Term> (*resized)(const Term& nest, std::int64_t channels)) {
    FunctionKind function;
    function.name = std::move(name), function.signature = {{"nest", "number"}}, function.summary = std::move(summary);
    function.facts_only = false;
    function.kind = "nest";
    function.terms = [resized](const Question& q) -> std::optional<std::vector<Term>> {
        if (q.arguments[0].eclass == none || !q.arguments[1].number || !nest_facts(q).domain(q.arguments[0].eclass)) return {};
        const auto nest = resized(q.graph.smallest_term(q.arguments[0].eclass), *q.arguments[1].number);
        return nest ? std::optional(std::vector{*nest}) : std::nullopt;
    };
    return function;
}

}  // namespace

std::vector<OperatorKind> net_operator_kinds() {
    return {
        {"layer", "net", {"site", "nest"}},
        {"each", "net", {"", ""}},
        {"spread", "net", {"number", ""}},
        {"opaque", "net", {""}},
        {"same", "net", {}},
        {"row", "net", {"net", "net"}},
        {"join", "net", {"joining", "net", "net"}},
        {"stream", "net", {"net", "net"}},
        {"tangle", "net", {"ends", "net", "net"}},
        {"none", "net", {"net"}},
        {"write", "net", {"number", "net"}},
        {"read", "net", {"number", "net"}},
        {"lack", "net", {"number", "net"}},
        {"within", "net", {"number", "net"}},
        {"kept", "site", {""}},
        {"add", "joining", {""}},
        {"concat", "joining", {""}},
        {"between", "ends", {"", ""}},
    };
}

std::vector<GuardKind> net_guards() {
    std::vector<GuardKind> guards{
        net_guard(
            "fresh", "all channels that the network writes are made by its own sites: no input passes through", [](const NetSizes& n) { return n.fresh(); },
            "a part of the input passes through"),
        net_guard(
            "channelwise", "each channel that the network writes comes from one that it reads", [](const NetSizes& n) { return n.channelwise(); },
            "some channels are made from others"),
        net_guard(
            "whole", "none of the channels that the network writes is left out already", [](const NetSizes& n) { return !n.trimmed; },
            "it is narrower already"),
        net_guard(
            "narrowable", "the last sites of the network make all channels that it writes, and may write fewer of them",
            [](const NetSizes& n) { return n.narrowable; }, "not all channels that it writes are made by its last sites alone"),
        net_guard(
            "separate", "nothing that comes in is added to channels of the network's own sites: it may read fewer channels by itself",
            [](const NetSizes& n) { return !n.adds_input; }, "it adds what comes in to channels of its own"),
        net_guard(
            "computes", "the network has a site", [](const NetSizes& n) { return n.computes; }, "it computes nothing"),
        net_guard(
            "free", "the network has no site that is kept as it is", [](const NetSizes& n) { return !n.kept; }, "it has a site that is kept"),
    };
    guards.push_back({"changeable",
                      {{"site"}},
                      "the site need not stay as it is",
                      [](const Question& q) {
                          if (q.arguments[0].eclass == none) return Verdict{false, "not a site", {}};
                          return q.graph.smallest_term(q.arguments[0].eclass).is("kept", 1) ? Verdict{false, "it is kept", {}} : Verdict{true, "", {}};
                      },
                      false});
    return guards;
}

std::vector<ListKind> net_lists() {
    return {{"shares",
             {{"number", "number", "net"}},
             "M/N to (N-1)/N of the channels that the network writes, in multiples of 4 from 16 channels on; N is at most 1024",
             [](const Question& q) {
                 std::vector<Term> out;
                 const NetSizes* sizes = net(q, 2);
                 const auto channels = sizes ? sizes->written() : std::nullopt, least = q.arguments[0].number, parts = q.arguments[1].number;
                 if (channels && least && parts)
                     for (std::int64_t w : widths_offered(*channels, *least, *parts, nest_facts(q).channels_step())) out.emplace_back(w);
                 return out;
             }}};
}

std::vector<FunctionKind> net_functions() {
    using Value = std::optional<std::int64_t>;
    return {
        channel_function("channels", {{"net"}}, "how many channels the network writes",
                         [](const Question& q) -> Value {
                             const NetSizes* sizes = net(q, 0);
                             return sizes ? sizes->written() : Value{};
                         }),
        channel_function("channels-in", {{"net"}}, "how many channels come into the network",
                         [](const Question& q) -> Value {
                             const NetSizes* sizes = net(q, 0);
                             return sizes ? sizes->in : Value{};
                         }),
        channel_function("absent", {{"number", "net"}}, "how many fewer channels the network writes where so many fewer come in",
                         [](const Question& q) -> Value {
                             const NetSizes* sizes = net(q, 1);
                             return sizes && q.arguments[0].number ? sizes->absent(*q.arguments[0].number) : Value{};
                         }),
        resizing("with-outputs", "the nest of the same site with so many output channels", with_outputs),
        resizing("with-fewer-inputs", "the nest of the same site with so many input channels less", with_fewer_inputs),
    };
}

}  // namespace loopegg
