// What discovery asks the guard about, with a guard that answers at once: the paper's sequences must be among it.
#include <set>

#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/plan/derive_plan.hpp"
#include "optimize/stages.hpp"
#include "rewrite/plan_rules.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

class Generous : public CapacityOracle {
public:
    std::vector<Verdict> judge(const Graph&, std::span<const Graph> variants) override {
        return std::vector<Verdict>(variants.size(), Verdict{true, "why not", {{"kept", 0.99}}});
    }
};

Discovery discovered(const Graph& graph, const Sites& sites, std::int64_t budget, std::map<std::string, std::int64_t> expected = {}) {
    const RuleBook book = load_rules(shipped("rules/discover.rules"));
    Generous oracle;
    Progress quiet(Progress::Mode::quiet);
    return discover(graph, sites, {book, *book.find_phase("discover")}, oracle, {.budget = budget, .expected = std::move(expected)}, quiet);
}

}  // namespace

TEST_CASE("with a budget of 1000, S1, S2 and S3 of resnet34-cifar10 are judged, and sequences that no one has named", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const Sites sites = sites_of(graph);
    const Discovery found = discovered(graph, sites, 1000);
    CHECK(found.configurations <= 1000);
    UNSCOPED_INFO(found.stop << ", " << found.nodes << " nodes, " << found.configurations << " configurations");
    for (std::size_t v = sites.kinds.size(); v < found.variants.size(); ++v) {
        INFO(to_string(found.variants[v].nest));
        CHECK_FALSE(found.variants[v].proofs.empty());  // a way from the original to everything that the guard admitted
    }
    for (std::size_t i = 0; i < found.admissions.size(); i += 7) {  // the way is what a plan types
        const Variant& v = found.variants[found.admissions[i].variant];
        INFO(to_string(v.nest));
        CHECK(applications_for(*graph.find(sites.all[found.admissions[i].site].name), v.steps, v.domain, shipped_plan_rules()).front().rule != "restrict-nest");
    }
    std::map<std::size_t, int> kinds;
    for (const Admission& a : found.admissions) kinds[found.variants[a.variant].kind] += found.variants[a.variant].effect == "group";
    for (const auto& [kind, count] : kinds) UNSCOPED_INFO("kind " << kind << ": grouped x" << count);
    std::map<std::string, int> judged;
    for (const Admission& a : found.admissions) ++judged[found.variants[a.variant].effect];
    for (const auto& [effect, count] : judged) UNSCOPED_INFO(effect << " x" << count);
    for (const char* effect : {"S1", "S2", "S3", "group", "depthwise", "bottleneck", "mixed-group"}) {
        INFO(effect);
        CHECK(judged[effect] > 0);
    }
}

TEST_CASE("on one kind of sites, 120 questions reach S1, S2 and S3, told by their steps", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    Sites sites = sites_of(graph);
    const std::size_t kind = sites.all[sites.index_of("layer2.1.conv1")].kind;
    for (Site& s : sites.all) s.kept |= s.kind != kind;
    const Discovery found = discovered(graph, sites, 120);
    std::map<std::string, int> judged;
    for (const Admission& a : found.admissions) {
        CHECK(found.variants[a.variant].kind == kind);
        ++judged[found.variants[a.variant].effect];
        std::string steps;
        for (const DerivationStep& step : found.variants[a.variant].steps) steps += " " + step.rule;
        UNSCOPED_INFO(found.variants[a.variant].effect << ":" << steps);
    }
    for (const auto& [effect, count] : judged) UNSCOPED_INFO(effect << " x" << count);
    for (const char* effect : {"S1", "S2", "S3"}) {
        INFO(effect);
        CHECK(judged[effect] > 0);
    }
}

TEST_CASE("outputs that the next convolution may leave unread are left out without a question", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const Sites sites = sites_of(graph, {"layer3.1.conv1", "layer3.2.conv2"});
    const Discovery found = discovered(graph, sites, 60);
    std::set<std::string> writers;
    for (const Admission& a : found.admissions) {
        if (!a.reader) continue;
        const std::string &writer = sites.all[a.site].name, &reader = sites.all[*a.reader].name;
        INFO(writer << ", " << reader << ": " << to_string(found.variants[a.variant].domain));
        CHECK(reader == writer.substr(0, writer.size() - 1) + "2");
        CHECK(found.variants[a.variant].domain.restore == Restore::zero);
        CHECK_FALSE(found.variants[a.variant].proofs.empty());
        CHECK(a.verdict.evidence["unread_by"] == reader);
        writers.insert(writer);
    }
    CHECK(writers.size() == 14);  // of 16 blocks: a site that is kept stays whole, and so does what it reads
    CHECK_FALSE(writers.contains("layer3.1.conv1"));
    CHECK_FALSE(writers.contains("layer3.2.conv1"));
}

TEST_CASE("channels that a 1x1 convolution brings back are found, counted with it, and are what their plan makes", "[unit][optimize]") {
    GraphBuilder b("block");
    const std::string first = b.relu("relu", b.norm("bn", b.conv("conv1", b.input("x", {1, 8, 8, 8}), {.out = 16, .kernel = 3, .padding = 1})));
    b.add("sum", b.conv("conv2", first, {.out = 16, .kernel = 3, .padding = 1, .groups = 2}), b.conv("conv3", first, {.out = 16, .kernel = 1}));
    const Graph graph = b.finish({"sum"});
    const Sites sites = sites_of(graph);
    const Discovery found = discovered(graph, sites, 150);
    std::map<std::string, int> seen;
    for (const Admission& a : found.admissions) {
        const Variant& v = found.variants[a.variant];
        if (!v.two_nests()) continue;
        const Site& site = sites.all[a.site];
        INFO(site.name << ": " << to_string(v.domain));
        ++seen[site.name], ++seen[v.effect];
        std::vector<std::size_t> variant = original_variants(sites);
        variant[a.site] = a.variant;
        const Graph network = network_of(graph, sites, found, variant);
        const auto applications = applications_for(*graph.find(site.name), v.steps, v.domain, shipped_plan_rules());
        CHECK(network == apply_plan(graph, {{{site.name, applications}}}, shipped_plan_rules()));
        CHECK(applications.front().rule != "restrict-nest");
        CHECK(macs(network) - macs(graph) == v.macs - site.macs);
        CHECK(parameters(network) - parameters(graph) == v.parameters - site.parameters);
        CHECK(v.macs < site.macs);
        CHECK_FALSE(v.proofs.empty());
    }
    CHECK(seen["conv1"] > 0);
    CHECK(seen["conv2"] > 0);
    CHECK(seen["pointwise"] > 0);
    CHECK(seen["unnamed"] > 0);  // and grouped, or with a smaller kernel
}

TEST_CASE("pixels are never repeated from far away", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const Sites sites = sites_of(graph);
    const Discovery found = discovered(graph, sites, 200);
    for (const Variant& v : found.variants)
        for (const DomainPart& p : v.domain.parts)
            for (const DigitRange& r : p.ranges) {
                if (v.domain.restore == Restore::none || (r.digit.axis != "oh" && r.digit.axis != "ow")) continue;
                INFO(to_string(v.domain));
                CHECK((r.digit.stride == 1 && r.digit.radix == 2));
            }
}

TEST_CASE("rows of images or tokens, and products of activations, are never restricted", "[unit][optimize]") {
    const Graph graph = zoo_graph("bert-tiny");
    const Sites sites = sites_of(graph);
    const Discovery found = discovered(graph, sites, 60);
    CHECK(found.variants.size() > sites.kinds.size());
    for (std::size_t v = sites.kinds.size(); v < found.variants.size(); ++v) {
        const Variant& variant = found.variants[v];
        const Node& node = *graph.find(sites.all[sites.kinds[variant.kind].sites.front()].name);
        INFO(node.name << ": " << to_string(variant.domain));
        CHECK(node.op == "linear");
        CHECK(to_string(variant.domain).find("n/") == std::string::npos);
        CHECK(to_string(variant.domain).find("n%") == std::string::npos);
    }
}

TEST_CASE("a rule may ask as many questions as it is known to need, whatever waits behind it", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const Sites sites = sites_of(graph);
    const Discovery usual = discovered(graph, sites, 60), known = discovered(graph, sites, 60, {{"bottleneck-axis", 25}});
    CHECK(usual.rules_asked.at("bottleneck-axis") < 25);
    CHECK(known.rules_asked.at("bottleneck-axis") >= 25);
    CHECK(known.configurations <= 60);
}
