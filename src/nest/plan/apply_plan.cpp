#include "nest/plan/apply_plan.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "graph/domain_sets.hpp"
#include "graph/normalise.hpp"
#include "graph/operators.hpp"
#include "nest/domain/domain.hpp"
#include "nest/plan/site_form.hpp"

namespace loopegg {
namespace {

// Exact rules that change the schedule and not the network.
constexpr std::array<std::string_view, 11> schedule_rules{"split-loop", "swap-loops", "fuse-loops", "unfuse-loops", "tile-loops", "unroll-loop", "vectorize-loop",
                                                          "parallelize-loop", "join-domain", "stage-output", "split-reduction"};

class SiteApplier {
public:
    SiteApplier(Graph& graph, std::string site) : graph_(graph), site_(std::move(site)), form_(*graph.find(site_)), restore_(graph.find(site_)->domain.restore) {}

    void apply(const Application& a) {
        const std::string& rule = a.rule;
        if (a.part && *a.part >= static_cast<std::int64_t>(form_.parts())) throw Refusal("there is no part " + std::to_string(*a.part) + ": the nest has " + std::to_string(form_.parts()));
        std::size_t first = a.part ? static_cast<std::size_t>(*a.part) : 0, last = a.part ? first + 1 : form_.parts();
        if (rule == "cut-domain") {
            if (last - first != 1) throw Refusal("cut-domain cuts one part: say which with \"part\"");
            Term axis = axis_argument(a, first, "?a");
            form_.cut_domain(first, axis, number_argument(a, first, "?k"));
        } else if (rule == "group-axes") {
            for (std::size_t p = first; p < last; ++p)
                form_.group_axes(p, axis_argument(a, p, "?a"), axis_argument(a, p, "?b"), number_argument(a, p, "?g"));
        } else if (rule == "bottleneck-axis") {
            bottleneck(a, first, last);
        } else if (rule == "restrict-nest") {
            restrict_nest(argument(a, "?n"));
        } else if (std::find(schedule_rules.begin(), schedule_rules.end(), rule) == schedule_rules.end()) {
            std::vector<std::string_view> known(schedule_rules.begin(), schedule_rules.end());
            known.insert(known.end(), {"cut-domain", "group-axes", "bottleneck-axis", "restrict-nest"});
            throw Refusal(Diagnostic{"unknown rule '" + rule + "'", {}, did_you_mean(rule, known)});
        } else if (auto it = a.with.find("?a"); it != a.with.end()) {
            form_.axis(first, it->second);   // an exact rule names an axis that is there
        }
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
                throw Refusal("some outputs are left with no value: say how they come back with \"restore\": \"repeat\", \"zero\", \"pointwise\" or \"propagate\"");
            if (!missing) domain.restore = Restore::none;
        }
        set_domain(node, domain);
        complete(graph_);
    }

private:
    void bottleneck(const Application& a, std::size_t first, std::size_t last) {
        bool by_graph = a.restore == "pointwise" || a.restore == "propagate";
        for (std::size_t p = first; p < last; ++p) {
            Term axis = axis_argument(a, p, "?a");
            std::int64_t factor = number_argument(a, p, "?k");
            bool output = form_.is_output_axis(axis);
            if (output && a.restore.empty())
                throw Refusal("'" + to_string(a.with.at("?a")) + "' is an output axis: say how its values come back with \"restore\": \"repeat\", \"zero\", \"pointwise\" or \"propagate\"");
            if (by_graph) {
                if (axis != axis_leaf("co", form_.statement().axes[static_cast<std::size_t>(form_.statement().axis("co"))].extent) || form_.parts() != 1)
                    throw Refusal("restore '" + a.restore + "' is for the output channels of the whole nest (co), not for '" + to_string(a.with.at("?a")) + "'");
                finish();
                if (a.restore == "pointwise") restore_pointwise(graph_, site_, factor);
                else restore_propagate(graph_, site_, factor);
                complete(graph_);
                form_ = SiteForm(*graph_.find(site_));
                return;
            }
            form_.bottleneck_axis(p, axis, factor);
            if (output) {
                Restore how = a.restore == "repeat" ? Restore::repeat : Restore::zero;
                if (restore_ != Restore::none && restore_ != how) throw Refusal("one nest is restored one way: '" + to_string(restore_) + "' before, '" + a.restore + "' here");
                restore_ = how;
            }
        }
    }

    // What no list of the other rules says: the nest itself, which must visit a part of what is visited now.
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
    if (sites.empty()) throw UserError(Diagnostic{"no convolution, linear or matmul of '" + graph.name + "' is named '" + step.site + "'", step.where, did_you_mean(step.site, known)});
    return sites;
}

}  // namespace

Graph apply_plan(const Graph& original, const Plan& plan) {
    Graph graph = original;
    for (const SiteStep& step : plan.steps)
        for (const std::string& site : sites_of(graph, step)) {
            const Application* current = nullptr;
            try {
                SiteApplier applier(graph, site);
                for (const Application& a : step.apply) {
                    current = &a;
                    applier.apply(a);
                }
                applier.finish();
            } catch (const UserError& e) {
                Diagnostic d = e.diagnostics()[0];
                d.message = "site '" + site + "'" + (current ? ", " + current->rule : "") + ": " + d.message;
                if (!d.where.known() && current) d.where = current->where;
                throw UserError(d);
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
        // The topmost digits of both channels walk together: that is what groups are. The others keep their place within a group.
        Domain rest{{part}, Restore::none};
        auto& kept = rest.parts[0];
        kept.diagonals.erase(kept.diagonals.begin() + static_cast<std::ptrdiff_t>(i));
        for (const DigitRange& r : kept.ranges)
            if ((r.digit.axis == "co" && r.digit.stride * r.digit.radix > b.stride) || (r.digit.axis == "ci" && r.digit.stride * r.digit.radix > a.stride)) return;
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
