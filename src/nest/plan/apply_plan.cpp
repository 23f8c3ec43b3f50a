#include "nest/plan/apply_plan.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "graph/domain_sets.hpp"
#include "graph/normalise.hpp"
#include "graph/operators.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/plan/site_form.hpp"

namespace loopegg {
namespace {

constexpr std::string_view whole_nest = "restrict-nest";  // the step that names no rule

// Throws Refusal, for example for a rule that was taken out of the file.
void expect_rule(const NamedRules& rules, const std::string& name) {
    std::vector<std::string> known = rules.names();
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    known.emplace_back(whole_nest);
    const std::string near = did_you_mean(name, known), other = "a plan of other rules needs their file: --rules FILE";
    throw Refusal(
        Diagnostic{"unknown rule '" + name + "': '" + rules.source() + "' has no rule of that name", {}, near.empty() ? other : near + " Or " + other});
}

class SiteApplier {
public:
    SiteApplier(Graph& graph, std::string site, const NamedRules& rules)
        : graph_(graph), site_(std::move(site)), rules_(rules), form_(*graph.find(site_)), restore_(graph.find(site_)->domain.restore) {}

    void apply(const Application& a) {
        if (a.part && *a.part >= static_cast<std::int64_t>(form_.parts()))
            throw Refusal("there is no part " + std::to_string(*a.part) + ": the nest has " + std::to_string(form_.parts()));
        if (a.rule == whole_nest)
            restrict_nest(argument(a, "?n"));
        else if (is_bottleneck(a) && a.restore == "propagate")
            narrow_width(a);
        else
            by_name(is_bottleneck(a) ? bottleneck(a) : a);
    }

    void finish() {
        Node& node = *graph_.find(site_);
        Domain domain = domain_of(form_.statement(), form_.schedule());
        domain.restore = domain.whole() ? Restore::none : restore_;
        if (!domain.whole()) {
            std::vector<Axis> axes = axes_of(node);
            std::vector<std::string> outputs;
            for (const Axis& axis : axes)
                if (!axis.reduction) outputs.push_back(axis.name);
            std::vector<char> computed = projection(domain, axes, outputs);
            bool missing = std::find(computed.begin(), computed.end(), 0) != computed.end();
            if (missing && domain.restore == Restore::none)
                throw Refusal(
                    "some outputs are left with no value: say how they come back with \"restore\": \"repeat\", \"zero\", \"pointwise\" or \"propagate\"");
            if (!missing) domain.restore = Restore::none;
        }
        if (domain.restore == Restore::pointwise) {
            graph_ = with_domain(graph_, site_, domain);
            return;
        }
        set_domain(node, domain);
        complete(graph_);
    }

private:
    void by_name(const Application& a) {
        expect_rule(rules_, a.rule);
        const Term made = rules_.apply(a, nest_from({form_.statement().term, form_.schedule(), restore_word(restore_)}));
        form_ = SiteForm(made);
        restore_ = domain_of(made).restore;
    }

    static bool is_bottleneck(const Application& a) { return a.rule == "bottleneck-axis" || a.rule == "bottleneck-output"; }

    // The words of plans in the words of the two rules.
    Application bottleneck(Application a) const {
        const std::size_t part = a.part ? static_cast<std::size_t>(*a.part) : 0;
        if (a.rule == "bottleneck-axis" && form_.is_output_axis(axis_argument(a, part, "?a"))) {
            if (a.restore.empty())
                throw Refusal("'" + to_string(argument(a, "?a")) +
                              "' is an output axis: say how its values come back with \"restore\": \"repeat\", \"zero\", \"pointwise\" or \"propagate\"");
            a.rule = "bottleneck-output";
        } else if (a.rule == "bottleneck-axis" && a.restore == "pointwise") {
            only_channels(a);
        } else if (a.rule == "bottleneck-output" && is_channels(a)) {
            a.with["?a"] = Term("co");
            if (a.with.contains("?w")) a.with["?w"] = Term(of_each_group(number_argument(a, part, "?w")));
        }
        return a;
    }
    [[noreturn]] static void only_channels(const Application& a) {
        const auto it = a.with.find("?a");
        throw Refusal("restore '" + (a.restore.empty() ? "propagate" : a.restore) + "' is for the output channels of the whole nest (co), not for '" +
                      (it == a.with.end() ? "co" : to_string(it->second)) + "'");
    }
    static bool is_channels(const Application& a) {
        const auto it = a.with.find("?a");
        return it == a.with.end() || it->second == Term("co");
    }

    // The width between this site and its readers. A rule over several sites has no nest to be applied to.
    void narrow_width(const Application& a) {
        expect_rule(rules_, "narrow-width");
        const Term co = form_.axis(0, Term("co"));
        const std::int64_t channels = axis_extent(co);
        if (form_.parts() != 1 || (a.rule == "bottleneck-axis" && axis_argument(a, 0, "?a") != co) ||
            co != axis_leaf("co", form_.statement().axes[static_cast<std::size_t>(form_.statement().axis("co"))].extent))
            only_channels(a);
        const std::int64_t kept = kept_argument(a, channels);
        finish();
        restore_propagate(graph_, site_, (a.rule == "bottleneck-axis" || !a.with.contains("?w") ? kept : of_each_group(kept)) * groups_of_site());
        complete(graph_);
        restart();
    }

    // How many values of an axis are kept: ?w gives the number, or ?k gives a factor.
    std::int64_t kept_argument(const Application& a, std::int64_t extent) const {
        if (a.with.contains("?w")) return number_argument(a, 0, "?w");
        const std::int64_t factor = number_argument(a, 0, "?k");
        if (factor < 2) throw Refusal("a bottleneck keeps at most one half: the factor is at least 2, not " + std::to_string(factor));
        if (extent % factor != 0) throw Refusal("a factor of " + std::to_string(factor) + " does not divide " + std::to_string(extent));
        return extent / factor;
    }

    // The site is another node than before.
    void restart() {
        form_ = SiteForm(*graph_.find(site_));
        restore_ = graph_.find(site_)->domain.restore;
    }

    std::int64_t groups_of_site() const {
        const int g = form_.statement().axis("g");
        return g < 0 ? 1 : form_.statement().axes[static_cast<std::size_t>(g)].extent;
    }
    // bottleneck-output counts the channels of the whole site.
    std::int64_t of_each_group(std::int64_t channels) const {
        const std::int64_t groups = groups_of_site();
        if (channels % groups != 0) throw Refusal(std::to_string(channels) + " channels are not as many in each of " + std::to_string(groups) + " groups");
        return channels / groups;
    }

    // For restrictions that no list of the other rules makes: the nest itself, which must visit a part of the instances that are visited now.
    void restrict_nest(const Term& nest) {
        const NestParts parts = nest_parts(nest);
        if (parts.statement != form_.statement().term)
            throw Refusal("the nest is of '" + to_string(parts.statement) + "', and the site is '" + to_string(form_.statement().term) + "'");
        const std::vector<Axis> axes = graph_axes(form_.statement());
        const Domain before = domain_of(form_.statement(), form_.schedule()), after = domain_of(nest);
        if (!before.whole()) {
            Domain both;
            for (const DomainPart& a : after.whole() ? std::vector<DomainPart>{{}} : after.parts)
                for (DomainPart b : before.parts) {
                    b.ranges.insert(b.ranges.end(), a.ranges.begin(), a.ranges.end());
                    b.diagonals.insert(b.diagonals.end(), a.diagonals.begin(), a.diagonals.end());
                    both.parts.push_back(std::move(b));
                }
            if (instance_count(both, axes) != instance_count(after, axes)) throw Refusal("the nest visits instances that are left out already");
        }
        form_ = SiteForm(nest);
        restore_ = after.restore;
    }

    const Term& argument(const Application& a, const std::string& name) const {
        auto it = a.with.find(name);
        if (it == a.with.end()) throw Refusal(a.rule + " needs " + name);
        return it->second;
    }
    Term axis_argument(const Application& a, std::size_t part, const std::string& name) const { return form_.axis(part, argument(a, name)); }
    std::int64_t number_argument(const Application& a, std::size_t part, const std::string& name) const { return form_.number(part, argument(a, name)); }

    Graph& graph_;
    std::string site_;
    const NamedRules& rules_;
    SiteForm form_;
    Restore restore_;
};

std::vector<std::string> sites_of(const Graph& graph, const SiteStep& step) {
    std::vector<std::string> sites, known;
    for (const Node& node : graph.nodes) {
        if (!is_site(node)) continue;
        known.push_back(node.name);
        if (glob_matches(step.site, node.name)) sites.push_back(node.name);
    }
    if (sites.empty())
        throw UserError(
            Diagnostic{"no convolution, linear or matmul of '" + graph.name + "' is named '" + step.site + "'", step.where, did_you_mean(step.site, known)});
    return sites;
}

[[noreturn]] void blame(const UserError& e, const std::string& where, const Application* current) {
    Diagnostic d = e.diagnostics()[0];
    d.message = "site '" + where + "'" + (current ? ", " + current->rule : "") + ": " + d.message;
    if (!d.where.known() && current) d.where = current->where;
    throw UserError(d);
}

void apply_to_sites(Graph& graph, const SiteStep& step, std::span<const Application> applications, const NamedRules& rules) {
    for (const std::string& site : sites_of(graph, step)) {
        const Application* current = nullptr;
        try {
            SiteApplier applier(graph, site, rules);
            for (const Application& a : applications) {
                current = &a;
                applier.apply(a);
            }
            applier.finish();
        } catch (const UserError& e) {
            blame(e, site, current);
        }
    }
}

// What is taken from one site of the glob may be taken from others at once.
void apply_to_network(Graph& graph, const SiteStep& step, const Application& a, const NamedRules& rules) {
    bool any = false;
    std::optional<UserError> refusal;  // a glob may match sites from which the rule takes nothing
    for (const std::string& site : sites_of(graph, step)) {
        if (!graph.find(site)) continue;  // left out with an earlier one
        try {
            if (auto made = rules.apply(a, graph, site)) graph = std::move(*made), any = true;
        } catch (const UserError& e) {
            if (!refusal) refusal = e;
        }
    }
    if (!any) blame(refusal.value_or(UserError("it takes nothing from a site of that name")), step.site, &a);
}

}  // namespace

Graph apply_plan(const Graph& original, const Plan& plan, const NamedRules& rules) {
    Graph graph = original;
    for (const SiteStep& step : plan.steps) {
        sites_of(graph, step);  // throws: a glob that matches no site is a mistake, whatever the rules
        for (auto first = step.apply.begin(), last = first; first != step.apply.end(); first = last) {
            const auto several_sites = [&](const Application& a) { return rules.over_networks(a.rule); };
            const bool several = several_sites(*first);
            last = several ? first + 1 : std::find_if(first, step.apply.end(), several_sites);
            if (several)
                apply_to_network(graph, step, *first, rules);
            else
                apply_to_sites(graph, step, {first, last}, rules);
        }
    }
    return normalise(std::move(graph));
}

void set_domain(Node& node, const Domain& domain) {
    node.domain = domain;
    if (node.op != "conv2d" || domain.parts.size() != 1 || domain.restore != Restore::none) return;
    const DomainPart& part = domain.parts[0];
    std::int64_t groups = node.integer("groups"), co = node.integer("out_channels") / groups, ci = node.input_shapes[0][1] / groups;
    for (std::size_t i = 0; i < part.diagonals.size(); ++i) {
        const DigitPair& d = part.diagonals[i];
        const Digit &a = d.first.axis == "ci" ? d.first : d.second, &b = d.first.axis == "ci" ? d.second : d.first;
        if (a.axis != "ci" || b.axis != "co" || a.stride * a.radix != ci || b.stride * b.radix != co) continue;
        // The topmost digits of output and input channels are equal: these are groups. The other digits keep their place within a group.
        Domain rest{{part}, Restore::none};
        auto& kept = rest.parts[0];
        kept.diagonals.erase(kept.diagonals.begin() + static_cast<std::ptrdiff_t>(i));
        for (const DigitRange& r : kept.ranges)
            if ((r.digit.axis == "co" && r.digit.stride * r.digit.radix > b.stride) || (r.digit.axis == "ci" && r.digit.stride * r.digit.radix > a.stride))
                return;
        for (const DigitPair& p : kept.diagonals)
            for (const Digit* x : {&p.first, &p.second})
                if ((x->axis == "co" && x->stride * x->radix > b.stride) || (x->axis == "ci" && x->stride * x->radix > a.stride)) return;
        if (kept.ranges.empty() && kept.diagonals.empty()) rest.parts.clear();
        node.attrs["groups"] = groups * a.radix;
        set_domain(node, rest);
        return;
    }
}

}  // namespace loopegg
