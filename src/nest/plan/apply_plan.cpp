#include "nest/plan/apply_plan.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "graph/domain_sets.hpp"
#include "graph/drop_branch.hpp"
#include "graph/narrow_stream.hpp"
#include "graph/normalise.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"
#include "nest/domain/domain.hpp"
#include "nest/plan/site_form.hpp"

namespace loopegg {
namespace {

// The rules that apply_plan knows without a rule file.
constexpr std::array<std::string_view, 9> own_rules{"cut-domain",  "group-axes",    "bottleneck-axis", "bottleneck-output", "restrict-nest",
                                                    "drop-branch", "narrow-stream", "narrow-branch",   "narrow-width"};

class SiteApplier {
public:
    SiteApplier(Graph& graph, std::string site, const NamedRules* rules)
        : graph_(graph), site_(std::move(site)), rules_(rules), form_(*graph.find(site_)), restore_(graph.find(site_)->domain.restore) {}

    void apply(const Application& a) {
        const std::string& rule = a.rule;
        if (a.part && *a.part >= static_cast<std::int64_t>(form_.parts()))
            throw Refusal("there is no part " + std::to_string(*a.part) + ": the nest has " + std::to_string(form_.parts()));
        std::size_t first = a.part ? static_cast<std::size_t>(*a.part) : 0, last = a.part ? first + 1 : form_.parts();
        if (rule == "cut-domain") {
            if (last - first != 1) throw Refusal("cut-domain cuts one part: say which with \"part\"");
            Term axis = axis_argument(a, first, "?a");
            form_.cut_domain(first, axis, number_argument(a, first, "?k"));
        } else if (rule == "group-axes") {
            for (std::size_t p = first; p < last; ++p) form_.group_axes(p, axis_argument(a, p, "?a"), axis_argument(a, p, "?b"), number_argument(a, p, "?g"));
        } else if (rule == "bottleneck-axis" || rule == "bottleneck-output") {
            bottleneck(a, first, last);
        } else if (rule == "narrow-width") {
            Application width = a;
            width.rule = "bottleneck-output", width.restore = "propagate";
            bottleneck(width, first, last);
        } else if (rule == "restrict-nest") {
            restrict_nest(argument(a, "?n"));
        } else {
            by_name(a);
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
                throw Refusal(
                    "some outputs are left with no value: say how they come back with \"restore\": \"repeat\", \"zero\", \"pointwise\" or \"propagate\"");
            if (!missing) domain.restore = Restore::none;
        }
        set_domain(node, domain);
        complete(graph_);
    }

private:
    void by_name(const Application& a) {
        std::vector<std::string> known;
        if (rules_) known = rules_->names();
        if (std::find(known.begin(), known.end(), a.rule) == known.end()) {
            known.insert(known.end(), own_rules.begin(), own_rules.end());
            throw Refusal(Diagnostic{"unknown rule '" + a.rule + "'", {}, did_you_mean(a.rule, known)});
        }
        const Term nest("nest", {form_.statement().term, form_.schedule()});
        const Term made = rules_->apply(a, restore_ == Restore::none ? nest : Term("restore", {Term(to_string(restore_)), nest}));
        const std::string how = nest_parts(made).restore;
        if (how == "pointwise") throw Refusal("a plan says 'pointwise' with the rule bottleneck-output");
        form_ = SiteForm(made);
        restore_ = how == "repeat" ? Restore::repeat : how == "zero" ? Restore::zero : Restore::none;
    }

    // How many values of an axis are kept: ?w gives the number, or ?k gives a factor.
    std::int64_t kept_argument(const Application& a, std::size_t part, std::int64_t extent) const {
        if (a.with.contains("?w")) return number_argument(a, part, "?w");
        const std::int64_t factor = number_argument(a, part, "?k");
        if (factor < 2) throw Refusal("a bottleneck keeps at most one half: the factor is at least 2, not " + std::to_string(factor));
        if (extent % factor != 0) throw Refusal("a factor of " + std::to_string(factor) + " does not divide " + std::to_string(extent));
        return extent / factor;
    }

    void bottleneck(const Application& a, std::size_t first, std::size_t last) {
        bool by_graph = a.restore == "pointwise" || a.restore == "propagate";
        const std::string named = a.rule == "bottleneck-output" ? "co" : to_string(argument(a, "?a"));
        for (std::size_t p = first; p < last; ++p) {
            Term axis = a.rule == "bottleneck-output" ? form_.axis(p, Term("co")) : axis_argument(a, p, "?a");
            bool output = form_.is_output_axis(axis);
            if (output && a.restore.empty())
                throw Refusal("'" + named +
                              "' is an output axis: say how its values come back with \"restore\": \"repeat\", \"zero\", \"pointwise\" or \"propagate\"");
            const std::int64_t extent = axis_extent(axis);
            if (by_graph) {
                if (axis != axis_leaf("co", form_.statement().axes[static_cast<std::size_t>(form_.statement().axis("co"))].extent) || form_.parts() != 1)
                    throw Refusal("restore '" + a.restore + "' is for the output channels of the whole nest (co), not for '" + named + "'");
                const std::int64_t groups = groups_of_site(), kept = of_each_group(a, kept_argument(a, p, extent), groups);
                finish();
                if (a.restore == "pointwise")
                    restore_pointwise(graph_, site_, kept);
                else
                    restore_propagate(graph_, site_, kept * groups);
                complete(graph_);
                form_ = SiteForm(*graph_.find(site_));
                return;
            }
            form_.bottleneck_axis(
                p, axis, a.rule == "bottleneck-output" ? of_each_group(a, kept_argument(a, p, extent), groups_of_site()) : kept_argument(a, p, extent));
            if (output) {
                Restore how = a.restore == "repeat" ? Restore::repeat : Restore::zero;
                if (restore_ != Restore::none && restore_ != how)
                    throw Refusal("one nest is restored one way: '" + to_string(restore_) + "' before, '" + a.restore + "' here");
                restore_ = how;
            }
        }
    }

    std::int64_t groups_of_site() const {
        const int g = form_.statement().axis("g");
        return g < 0 ? 1 : form_.statement().axes[static_cast<std::size_t>(g)].extent;
    }
    // bottleneck-output counts the channels of the whole site.
    static std::int64_t of_each_group(const Application& a, std::int64_t kept, std::int64_t groups) {
        if (a.rule != "bottleneck-output" || !a.with.contains("?w")) return kept;
        if (kept % groups != 0) throw Refusal(std::to_string(kept) + " channels are not as many in each of " + std::to_string(groups) + " groups");
        return kept / groups;
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
    const NamedRules* rules_;
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

void apply_to_sites(Graph& graph, const SiteStep& step, std::span<const Application> applications, const NamedRules* rules) {
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

// Where two sites of the glob end the two branches of one addition, the branch with more work is dropped.
void drop_branches(Graph& graph, const SiteStep& step) {
    const std::vector<std::string> sites = sites_of(graph, step);
    std::vector<std::string> ends;
    for (const Branch& b : branches_of(graph))
        if (std::find(sites.begin(), sites.end(), b.site) != sites.end()) ends.push_back(b.site);
    if (ends.empty()) ends.push_back(sites.front());  // it ends the branch with less work, or no branch, and the refusal says why
    for (const std::string& site : ends)
        if (graph.find(site)) graph = without_branch(graph, branch_written_by(graph, site));
}

void narrow_streams(Graph& graph, const SiteStep& step, const Application& a) {
    const auto width = a.with.find("?w");
    if (width == a.with.end()) throw Refusal("narrow-stream needs ?w, the number of channels that are kept");
    const Streams streams = streams_of(graph);
    std::map<std::size_t, std::int64_t> widths;
    const std::vector<std::string> sites = sites_of(graph, step);
    for (bool joined : {true, false}) {  // where no site of the glob writes a residual stream, the streams that these sites write
        if (!widths.empty()) break;
        for (const std::string& site : sites)
            if (const auto s = streams.written_by(site); s && streams.all[*s].joined == joined)
                widths.try_emplace(*s, SiteForm(*graph.find(site)).number(0, width->second));
    }
    if (widths.empty()) throw Refusal("no site of '" + step.site + "' writes channels of its own");
    for (const auto& [s, w] : widths)
        if (w < 1) throw Refusal("at least one channel is kept, not " + std::to_string(w));
    graph = with_widths(std::move(graph), streams, widths);
}

bool spans_sites(const std::string& rule) { return rule == "drop-branch" || rule == "narrow-stream" || rule == "narrow-branch"; }

void apply_to_network(Graph& graph, const SiteStep& step, const Application& a) {
    try {
        if (a.rule == "drop-branch")
            drop_branches(graph, step);
        else
            narrow_streams(graph, step, a);
    } catch (const UserError& e) {
        blame(e, step.site, &a);
    }
}

}  // namespace

Graph apply_plan(const Graph& original, const Plan& plan, const NamedRules* rules) {
    Graph graph = original;
    for (const SiteStep& step : plan.steps) {
        sites_of(graph, step);  // throws: a glob that matches no site is a mistake, whatever the rules
        for (auto first = step.apply.begin(), last = first; first != step.apply.end(); first = last) {
            const bool several = spans_sites(first->rule);
            last = several ? first + 1 : std::find_if(first, step.apply.end(), [](const Application& a) { return spans_sites(a.rule); });
            if (several)
                apply_to_network(graph, step, *first);
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
