#include "optimize/by_hand/try_plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"
#include "graph/flops.hpp"
#include "graph/graph.hpp"
#include "graph/operators.hpp"
#include "nest/domain/domain.hpp"
#include "nest/plan/plan.hpp"
#include "nest/plan/site_form.hpp"
#include "nest/term/statement.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/run/run.hpp"
#include "optimize/run/sites.hpp"
#include "optimize/run/times.hpp"
#include "optimize/search/judge_networks.hpp"
#include "optimize/tune/time_networks.hpp"
#include "optimize/tune/tuning.hpp"
#include "rewrite/plan_rules.hpp"
#include "rewrite/rule_books.hpp"
#include "rules/rule.hpp"

namespace loopegg {
namespace {

// Which rules match a site, for a person whose rule did not.

bool has_form(const Term& term, std::string_view op) {
    return term.op().text() == op || std::any_of(term.children().begin(), term.children().end(), [&](const Term& t) { return has_form(t, op); });
}

// An exact rule changes a plan only where it cuts the domain.
bool changes_plans(const Rule& rule) {
    return rule.left.size() == 1 && has_form(rule.left.front().term, "nest") && (rule.arrow == Arrow::neural || has_form(rule.right.front().term, "cat"));
}

std::vector<Term> values_of(const Rule& rule, const std::string& variable, const std::vector<Term>& axes) {
    for (const ChoiceCall& c : rule.choices)
        if (c.variable.text() == variable) return c.list ? std::vector<Term>{Term(2), Term(4), Term(8)} : c.values;
    return axes;
}

std::string words_of(const Application& a, const std::vector<std::string>& arguments, std::size_t count) {
    std::string text = a.rule;
    for (std::size_t i = 0; i < count; ++i) text += " " + arguments[i].substr(1) + "=" + to_string(a.with.at(arguments[i]));
    return text;
}

class Matcher {
public:
    Matcher(const Graph& layer, const SiteStep& before, const PlanRules& rules) : layer_(layer), before_(before), rules_(rules) {}

    // One line for each choice of all values but the last, which are listed together.
    std::vector<std::string> lines(const Rule& rule, const std::vector<Term>& axes) {
        rule_ = &rule, axes_ = &axes, arguments_ = rules_.arguments(rule.name, false), lines_.clear();
        Application a;
        a.rule = rule.name;
        choose(a, 0);
        return lines_;
    }

private:
    void choose(Application& a, std::size_t at) {
        if (at == arguments_.size()) {
            if (matches(a)) lines_.push_back(words_of(a, arguments_, at));
            return;
        }
        const std::vector<Term> values = values_of(*rule_, arguments_[at], *axes_);
        if (at + 1 < arguments_.size()) {
            for (const Term& v : values) a.with[arguments_[at]] = v, choose(a, at + 1);
            return;
        }
        std::vector<std::string> taken;
        for (const Term& v : values)
            if (a.with[arguments_[at]] = v; matches(a)) taken.push_back(to_string(v));
        if (!taken.empty()) lines_.push_back(words_of(a, arguments_, at) + " " + arguments_[at].substr(1) + "=" + join(taken, "|"));
    }

    bool matches(const Application& a) const {
        Plan plan{{before_}};
        plan.steps.front().apply.push_back(a);
        try {
            apply_plan(layer_, plan, rules_);
            return true;
        } catch (const UserError&) {  // a refusal is an answer here
            return false;
        }
    }

    const Graph& layer_;
    const SiteStep& before_;
    const PlanRules& rules_;
    const Rule* rule_ = nullptr;
    const std::vector<Term>* axes_ = nullptr;
    std::vector<std::string> arguments_, lines_;
};

// The rules of a book over single nests that restrict or cut the site after some applications, each with values of its lists that it takes there:
// "group-axes a=co b=ci g=2|4|8". `layer`: a network that has the site, the smaller the faster.
std::vector<std::string> matching_rules(const Graph& layer, const SiteStep& before, const RuleBook& book, const PlanRules& rules) {
    const Node* node = layer.find(before.site);
    require(node != nullptr, "the layer has the site");
    std::vector<Term> axes;
    for (const Iterator& i : statement_of(nest_parts(nest_of(*node)).statement).axes)
        if (i.extent > 1) axes.emplace_back(i.name);
    std::vector<std::string> all;
    Matcher matcher(layer, before, rules);
    for (const Rule* rule : book.rules())
        if (changes_plans(*rule))
            for (std::string& line : matcher.lines(*rule, axes)) all.push_back(std::move(line));
    return all;
}

// The layers of a network that a plan changes, each as a network of its own.

// Sites with equal nests before and after.
struct ChangedLayer {
    std::vector<std::string> sites;
    Graph before;
    std::optional<Graph> after;  // none where the plan drops the layer
};

std::string restoring(const std::string& site) { return site + ".restore"; }

// Layers with equal terms are the same layer.
Term term_of(const Graph& graph, const std::string& site) {
    const Node *node = graph.find(site), *back = graph.find(restoring(site));
    if (!node) return Term("dropped");
    return back ? Term("restored", {nest_of(*node), nest_of(*back)}) : nest_of(*node);
}

// The site alone, with the convolution that restores its channels where it has one. What the site reads are inputs.
Graph layer_of(const Graph& graph, const std::string& site) {
    Graph layer;
    layer.name = graph.name + "/" + site;
    for (const std::string& name : {site, restoring(site)})
        if (const Node* node = graph.find(name)) layer.nodes.push_back(*node);
    require(!layer.nodes.empty(), "the network has the site");
    for (const Node& node : layer.nodes)
        for (const std::string& input : node.inputs) {
            const bool known = layer.find(input) || std::any_of(layer.inputs.begin(), layer.inputs.end(), [&](const GraphInput& i) { return i.name == input; });
            if (!known) layer.inputs.push_back({input, graph.shape_of(input)});
        }
    layer.outputs = {layer.nodes.back().name};
    complete(layer);
    return layer;
}

std::vector<ChangedLayer> changed_layers(const Graph& before, const Graph& after) {
    std::vector<ChangedLayer> layers;
    std::map<std::string, std::size_t> place;  // by the layer before and after
    for (const Site& site : sites_of(before).all) {
        const Term was = term_of(before, site.name), is = term_of(after, site.name);
        if (was == is) continue;
        const auto [at, fresh] = place.try_emplace(to_string(was) + to_string(is), layers.size());
        if (fresh) layers.push_back({{}, layer_of(before, site.name), after.find(site.name) ? std::optional(layer_of(after, site.name)) : std::nullopt});
        layers[at->second].sites.push_back(site.name);
    }
    return layers;
}

using nlohmann::json;

// A variable that the rule does not have would silently do nothing.
void check_variables(const Application& a, const PlanRules& rules) {
    std::vector<std::string> known = rules.arguments(a.rule, a.backwards);
    if (known.empty()) return;                                                     // apply_plan() says what is wrong with the rule
    for (const char* of_plans : {"?a", "?w", "?k"}) known.emplace_back(of_plans);  // words of plans (apply_plan.hpp)
    for (const auto& [variable, value] : a.with)
        if (std::find(known.begin(), known.end(), variable) == known.end())
            throw UserError(Diagnostic{fmt::format("{} has no variable '{}': expected {}", a.rule, variable, join(rules.arguments(a.rule, a.backwards), ", ")),
                                       a.where, did_you_mean(variable, known)});
}

// What the first site of a step could take instead, in the words of a hint; empty where nothing matches.
std::string what_matches(const Graph& graph, const SiteStep& step, std::size_t failed, const RuleBook& book, const PlanRules& rules) {
    constexpr std::size_t most = 12;
    const auto site = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return is_site(n) && glob_matches(step.site, n.name); });
    if (site == graph.nodes.end()) return "";
    const SiteStep before{site->name, {step.apply.begin(), step.apply.begin() + static_cast<std::ptrdiff_t>(failed)}};
    if (std::any_of(before.apply.begin(), before.apply.end(), [&](const Application& a) { return rules.over_networks(a.rule); })) return "";
    std::vector<std::string> lines = matching_rules(layer_of(graph, site->name), before, book, rules);
    if (lines.empty()) return "no rule over single layers matches there";
    const std::size_t all = lines.size();
    lines.resize(std::min(all, most));
    return fmt::format("what matches {}{}:\n    {}", site->name, all > most ? fmt::format(" (the first {} of {})", most, all) : "", join(lines, "\n    "));
}

// The plan done to the network. A refusal says which rules would match.
Graph applied(const Graph& graph, const Plan& plan, const RuleBook& book, const PlanRules& rules) {
    for (const SiteStep& step : plan.steps)
        for (const Application& a : step.apply) check_variables(a, rules);
    try {
        return apply_plan(graph, plan, rules);
    } catch (const UserError& e) {
        Diagnostic d = e.diagnostics().front();
        for (const SiteStep& step : plan.steps)
            for (std::size_t i = 0; i < step.apply.size() && d.hint.empty(); ++i)
                if (const Position& at = step.apply[i].where; at.known() && at.source == d.where.source && at.offset == d.where.offset)
                    d.hint = what_matches(graph, step, i, book, rules);
        throw UserError(d);
    }
}

// The steps of a plan at a site, as far as paper_sequence() asks.
std::vector<DerivationStep> steps_at(const Node& node, const Plan& plan, const RuleBook& book) {
    std::vector<DerivationStep> steps;
    const SiteForm form(node);
    for (const SiteStep& step : plan.steps) {
        if (!glob_matches(step.site, node.name)) continue;
        for (const Application& a : step.apply) {
            const Rule* rule = book.find_rule(a.rule);
            DerivationStep one{a.rule, rule && rule->arrow == Arrow::neural, {}, {}, {}, a.backwards};
            for (const auto& [variable, value] : a.with) {
                Term resolved = value;
                if (value.integer()) {
                    one.with.emplace_back(variable, resolved);
                    continue;
                }
                try {
                    resolved = form.axis(0, value);
                } catch (const UserError&) {  // an axis that earlier steps made
                }
                one.with.emplace_back(variable, resolved);
            }
            steps.push_back(std::move(one));
        }
    }
    return steps;
}

std::string name_of(const ChangedLayer& layer, const Plan& plan, const RuleBook& book) {
    if (!layer.after) return "dropped";
    const Node &was = layer.before.nodes.front(), &is = layer.after->nodes.front();
    if (const std::string paper = paper_sequence(steps_at(was, plan, book)); !paper.empty()) return paper;
    const Domain domain = domain_of(nest_of(is));
    if (!domain.whole() || layer.after->nodes.size() > 1) return effect_name(domain, is.shape.size() > 1 ? is.shape[1] : 0);
    return is.op == "conv2d" && was.op == "conv2d" && is.integer("groups") > was.integer("groups") ? "group" : "narrower";
}

json judge(const TryRequest& request, const ReadNetwork& read, const RuleBook& book, const Graph& variant) {
    const OracleOptions options = oracle_options(request.run, read, book);
    const std::unique_ptr<Oracle> oracle = make_oracle(options);
    const NetworkVerdict judged = NetworkJudge(*oracle, read.network.graph, options.conditions).judge(std::span(&variant, 1)).front();
    return {{"allowed", judged.allowed},
            {"why", judged.verdict.why},
            {"measures", judged.verdict.evidence.at("measures")},
            {"loss", {{"points", judged.loss.points}, {"low", judged.loss.low}, {"high", judged.loss.high}}}};
}

class LayerTrial {
public:
    LayerTrial(const Run& run, const Plan& plan) : run_(run), plan_(plan) {}

    json operator()(const ChangedLayer& layer, const Graph& variant) const {
        json j{{"sites", layer.sites},
               {"sequence", name_of(layer, plan_, run_.book)},
               {"original_macs", macs(layer.before)},
               {"macs", layer.after ? macs(*layer.after) : 0},
               {"original_parameters", parameters(layer.before)},
               {"parameters", layer.after ? parameters(*layer.after) : 0}};
        j["effect"] = layer.after ? effect_words(domain_of(nest_of(layer.after->nodes.front()))) : "not computed";
        const Tuned before = tuned(layer.before, run_.read.network.weights);
        j["nest_before"] = nests(before);
        if (!layer.after) {
            j["original_latency"] = latency_json(before.alone), j["latency"] = nullptr, j["speedup"] = nullptr;
            return j;
        }
        const Tuned after = tuned(*layer.after, run_.read.carried_to(variant, run_.request.seed));
        j["nest_after"] = nests(after);
        const std::array pairs{std::pair{&before.network, &before.schedules}, std::pair{&after.network, &after.schedules}};
        const std::vector<Measured> times = time_interleaved(run_, pairs);
        j["original_latency"] = latency_json(times[0]), j["latency"] = latency_json(times[1]);
        const bool both = times[0].latency && times[1].latency;
        j["speedup"] = both ? json(times[0].latency->median_ms / times[1].latency->median_ms) : json(nullptr);
        j["tried"] = before.tried + after.tried;
        return j;
    }

private:
    struct Tuned {
        Network network;
        Schedules schedules;
        Measured alone;
        int tried;
    };

    Tuned tuned(const Graph& graph, const Weights& all) const {
        Weights weights;
        for (const auto& [name, tensor] : all)
            for (const Node& node : graph.nodes)
                if (name.starts_with(node.name + ".")) weights.emplace(name, tensor);
        Tuned t{{graph, std::move(weights), sites_of(graph)}, {}, {}, 0};
        RowChoices rows;
        const Tuning tuning = tune_network(run_, t.network, {run_.request.tune_seconds, run_.request.trials}, rows);
        for (const Site& site : t.network.sites.all) t.schedules[site.name] = tuning.best[site.kind].nest;
        t.alone = tuning.best.front().best, t.tried = tuning.compiled;
        return t;
    }

    static json nests(const Tuned& t) {
        json all = json::object();
        for (const auto& [site, nest] : t.schedules) all[site] = to_string(bare(nest));
        return all;
    }

    const Run& run_;
    const Plan& plan_;
};

json sizes_json(const Graph& graph) { return {{"macs", macs(graph)}, {"parameters", parameters(graph)}}; }

MeasurerOptions measurer_options(const OptimizeRequest& request, const std::filesystem::path& pool, Progress& progress) {
    MeasurerOptions options;
    options.pool = pool, options.wait_seconds = std::min(options.wait_seconds, request.tune_seconds);
    options.note = [&progress](const std::string& line) { progress.note(line); };
    return options;
}

}  // namespace

json try_plan(const TryRequest& request, Progress& progress) {
    const ScratchFile name(".try");
    const ScratchFolder scratch(name.path());
    OptimizeRequest r = request.run;
    r.out = scratch.path();
    Target target = allowing(find_target(r.target), r.allowed);
    target.rules = rules_file(r.rules);
    const RuleBook& book = *read_book(target.rules);
    ReadNetwork read = read_network(r);
    const Graph variant = applied(read.network.graph, request.plan, book, plan_rules(target.rules));

    json answer{{"model", r.model.string()}, {"name", read.network.graph.name}, {"target", target.name}, {"plan", json::parse(write_plan(request.plan))}};
    answer["original"] = sizes_json(read.network.graph), answer["variant"] = sizes_json(variant);
    answer["guard"] = nullptr;
    if (request.judged) {
        progress.stage("guard");
        answer["guard"] = judge(request, read, book, variant);
        progress.finish(answer["guard"]["why"].get<std::string>());
    }
    const std::vector<ChangedLayer> layers = changed_layers(read.network.graph, variant);
    Times times(r, read.network.graph, target, measurer_options(r, scratch.path() / "kernels", progress));
    const Run run{r, target, book, std::move(read), {}, 0, nullptr, times.timing(), KernelPool(scratch.path() / "kernels"), progress};
    const LayerTrial trial(run, request.plan);
    answer["layers"] = json::array();
    for (const ChangedLayer& layer : layers) {
        progress.stage(layer.sites.front());
        answer["layers"].push_back(trial(layer, variant));
        progress.finish();
    }
    return answer;
}

}  // namespace loopegg
