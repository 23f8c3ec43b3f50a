#include "optimize/audit/check_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "backends/kernel/elf_object.hpp"
#include "backends/measure/network_measure.hpp"
#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "backends/network/rounding_error.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "base/text.hpp"
#include "fisher/oracle.hpp"
#include "graph/architecture.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/weights.hpp"
#include "nest/domain/domain.hpp"
#include "nest/net/resize.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/plan/plan.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/answer/answer.hpp"
#include "optimize/answer/certificate.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/answer/site_row.hpp"
#include "optimize/audit/compiled_files.hpp"
#include "optimize/audit/found_networks.hpp"
#include "optimize/audit/network_replay.hpp"
#include "optimize/audit/replay.hpp"
#include "optimize/run/request.hpp"
#include "optimize/run/sites.hpp"
#include "optimize/run/trainings.hpp"
#include "rewrite/plan_rules.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double same_within = 1e-3;  // of the largest value

// A nest, or nests in a row, with the extents of all axes.
Term completed(const Term& nest) {
    if (nest.is("prepare", 2)) return Term(nest.op(), {nest[0], completed(nest[1])});
    if (nest.is("site", 1)) return Term(nest.op(), {complete(nest[0])});
    if (nest.is("then", 2)) return Term(nest.op(), {completed(nest[0]), complete(nest[1])});
    return complete(nest);
}

class Checker {
public:
    Checker(fs::path folder, Progress& progress) : folder_(std::move(folder)), progress_(progress) {}

    RunChecks run(const std::string& recheck) {
        finish_update(folder_);
        for (const std::string& f : manifest_faults(folder_)) out_.faults.push_back(f);
        if (out_.faults.empty()) out_.held.push_back("every file is as it was written");
        const std::vector<std::pair<const char*, std::function<void()>>> parts{
            {"result.json",
             [&] {
                 result_ = read("result.json"), sequences_ = read("sequences.json");
                 rules_ = plan_rules(rules_file(result_.at("rules")));
             }},
            {"the network", [&] { networks(); }},
            {"plan.json", [&] { plan(); }},
            {"sequences.json", [&] { sequences(); }},
            {"result.json", [&] { figures(); }},
            {"evidence.jsonl", [&] { evidence(); }},
            {"certificate.json", [&] { certificate(); }},
            {"the compiled network", [&] { compiled(); }},
            {"the compiled files", [&] { files(); }},
            {"the guard",
             [&] {
                 if (!recheck.empty()) ask_again(recheck);
             }},
        };
        for (const auto& [name, part] : parts) {
            progress_.stage(std::string("check ") + name);
            const std::size_t before = out_.faults.size();
            try {
                part();
            } catch (const UserError& e) {
                fault(name, e.what());
            } catch (const json::exception& e) {
                fault(name, std::string("it is not as docs/reference/formats.md says: ") + e.what());
            } catch (const std::system_error& e) {
                fault(name, e.what());
            }
            progress_.finish(out_.faults.size() == before ? "" : "NOT VALID");
        }
        return std::move(out_);
    }

private:
    // Read and judged once, by the first part that needs it.
    const RuleBook& rule_book() {
        if (!book_) book_ = load_rules(rules_file(result_.at("rules")));
        return *book_;
    }

    void fault(const std::string& where, const std::string& why) { out_.faults.push_back(where + ": " + why); }
    template <class... A>
    void expect(bool holds, const std::string& where, fmt::format_string<A...> why, A&&... a) {
        if (!holds) fault(where, fmt::format(why, std::forward<A>(a)...));
    }
    json read(const char* name) const { return json::parse(read_file(folder_ / name)); }

    void networks() {
        original_ = read_model(folder_ / "original.json");
        Model model = load_model((folder_ / "model.json").string());
        expect(model.graph.weights_file == "weights.safetensors", "model.json", "it names '{}' as its weights", model.graph.weights_file);
        const auto about = about_run(result_, read_file(folder_ / "plan.json"));
        const OnnxFiles onnx = onnx_files(model.graph, model.weights, "model.onnx", {about});
        const bool same = read_file(folder_ / "model.onnx") == onnx.model && (onnx.data.empty() || read_file(folder_ / "model.onnx.data") == onnx.data);
        expect(same, "model.onnx", "it is not the network of model.json and weights.safetensors, with the metadata of result.json and plan.json");
        expect(read_file(folder_ / "network.py") == network_py(model.graph, about), "network.py",
               "it is not the network of model.json, with the metadata of result.json and plan.json");
        returned_ = std::move(model.graph), weights_ = std::move(model.weights);
        whole_sites_ = sites_of(original_), sites_ = sites_of(returned_);
        shaped_ = original_;
        if (!sequences_.contains("network")) return;
        NetworkReplay replay = replay_network(sequences_.at("network"), original_, rule_book());
        network_steps_ = replay.steps;
        if (!replay.fault.empty()) return fault("sequences.json", "the network: " + replay.fault);
        shaped_ = std::move(*replay.graph);
        out_.held.push_back("the steps lead from the term of the original network to the one that is claimed");
    }

    void plan() {
        const Plan plan = read_plan(read_source(folder_ / "plan.json"));
        expect(text_of(apply_plan(original_, plan, rules_)) == text_of(returned_), "plan.json", "applied to original.json it does not give model.json");
        Graph made = shaped_;  // what the steps say, site by site
        for (const json& site : sequences_.at("sites")) {
            const Node* node = shaped_.find(site.at("name").get<std::string>());
            if (!node || site.at("steps").empty()) continue;
            made = apply_plan(made, {{{exact_glob(node->name), site_applications(*node, site, rules_)}}}, rules_);
        }
        expect(text_of(made) == text_of(returned_), "sequences.json", "its steps do not make the network of model.json");
        if (out_.faults.empty()) out_.held.push_back("the plan makes the network of the original");
    }

    // Every site of the returned network is there once, and begins at its own nest.
    void sequences() {
        json all = sequences_.at("sites");
        const RuleBook& book = rule_book();
        expect(all.size() == sites_.all.size(), "sequences.json", "it has {} sites and the network {}", all.size(), sites_.all.size());
        std::map<std::string, const json*> results;
        for (const json& r : result_.at("sites")) results[r.at("name")] = &r;
        for (std::size_t i = 0; i < all.size(); ++i) {
            json& s = all[i];
            const std::string name = s.at("name");
            if (i >= sites_.all.size() || name != sites_.all[i].name) {
                fault("sequences.json", fmt::format("site {} is '{}', expected '{}'", i, name, i < sites_.all.size() ? sites_.all[i].name : "none"));
                continue;
            }
            if (const Node* node = shaped_.find(name))  // a convolution that brings channels back is not there yet
                expect(s.at("original") == to_string(s.at("steps").empty() ? nest_of(*returned_.find(name)) : channels_first(*node)), "sequences.json",
                       "'{}' does not begin at its original nest", name);
            steps(s);
            const auto r = results.find(name);
            if (r == results.end()) continue;
            if (r->second->contains("nest_after")) s["schedule"] = r->second->at("nest_after");
            if (r->second->contains("restoring")) s["restoring"] = r->second->at("restoring").at("nest");
        }
        out_.sites = replay(all, book);
        std::size_t steps = network_steps_;
        for (const SiteCheck& c : out_.sites) steps += c.steps;
        out_.held.push_back(fmt::format("{} steps replayed", steps));
    }

    // The steps that people are shown are the steps of the proofs.
    void steps(const json& site) {
        json proven = json::array(), shown = json::array();
        std::string key;
        for (const json& proof : site.at("proofs"))
            for (const json& s : proof.at("steps")) proven.push_back({s.at("rule"), proof.at("neural").get<bool>() ? "neural" : "exact", s.at("with")});
        std::string at = site.at("original");
        for (const json& s : site.at("steps")) {
            shown.push_back({s.at("rule"), s.at("kind"), s.at("with")});
            key += (key.empty() ? "" : " ") + s.at("rule").get<std::string>();
            expect(s.at("before") == at, "sequences.json", "a step of '{}' does not begin where the one before it ended", site.at("name").get<std::string>());
            at = s.at("after");
        }
        expect(at == site.at("chosen"), "sequences.json", "the steps of '{}' do not end at the chosen nest", site.at("name").get<std::string>());
        expect(shown == proven && key == site.at("key"), "sequences.json", "the steps of '{}' are not those of its proofs", site.at("name").get<std::string>());
    }

    void figures() {
        const json &before = result_.at("original"), &after = result_.at("optimized");
        expect(before.at("parameters") == parameters(original_) && before.at("macs") == macs(original_), "result.json",
               "parameters or MACs of the original are not those of original.json");
        expect(after.at("parameters") == parameters(returned_) && after.at("macs") == macs(returned_), "result.json",
               "parameters or MACs of the returned network are not those of model.json");
        expect(result_.at("model") == original_.name, "result.json", "it is about another model than original.json");
        const double a = before.at("median_ms"), b = after.at("median_ms"), ia = before.at("iqr_ms"), ib = after.at("iqr_ms");
        expect(a > 0 && b > 0 && ia >= 0 && ib >= 0, "result.json", "its times are none");
        expect(near(result_.at("speedup"), a / b) && near(result_.at("speedup_low"), std::max(0.0, a - ia / 2) / (b + ib / 2)) &&
                   near(result_.at("speedup_high"), (a + ia / 2) / std::max(1e-9, b - ib / 2)),
               "result.json", "the speed-up is not the quotient of its times");
        const bool same = text_of(original_) == text_of(returned_);
        const std::string returned = result_.at("returned");
        expect(returned == (same ? "original" : "optimized"), "result.json", "it says that the {} network is returned", returned);
        const json& sites = result_.at("sites");
        expect(sites.size() == whole_sites_.all.size(), "result.json", "it has {} sites and the original {}", sites.size(), whole_sites_.all.size());
        for (std::size_t i = 0; i < std::min(sites.size(), whole_sites_.all.size()); ++i) site_row(sites[i], whole_sites_.all[i]);
        const Architecture architecture = classify_architecture(original_);
        expect(result_.at("class") == to_string(architecture.kind) && result_.at("class_why") == architecture.why, "result.json",
               "the network's class is not that of original.json");
        expect(before.at("target") == result_.at("target") && after.at("target") == result_.at("target"), "result.json", "its times are of another target");
        sizes(result_.at("metrics"), folder_), sizes(result_.at("metrics").at("original"), folder_ / "original");
        expect(!original_.inputs.empty() && !original_.inputs[0].shape.empty() && result_.at("batch") == original_.inputs[0].shape[0], "result.json",
               "its batch is not that of original.json");
        named_ = check_named_networks(folder_, result_, original_, rules_, out_.faults);
    }

    // A site of the original, and what its row says became of it.
    void site_row(const json& r, const Site& s) {
        const auto now = std::find_if(sites_.all.begin(), sites_.all.end(), [&](const Site& t) { return t.name == s.name; });
        const auto back = std::find_if(sites_.all.begin(), sites_.all.end(), [&](const Site& t) { return t.name == s.name + ".restore"; });
        const bool gone = now == sites_.all.end();
        expect(r.at("name") == s.name && r.at("op") == s.op && r.at("original_statement") == to_string(s.statement) && r.at("original_macs") == s.macs &&
                   r.at("original_parameters") == s.parameters,
               "result.json", "it says something else of the original's '{}'", s.name);
        if (gone) {
            expect(r.at("sequence") == "dropped" && r.at("variant") == "dropped" && r.at("effect") == effect_of(s, nullptr, {}) && r.at("macs") == 0 &&
                       r.at("parameters") == 0 && !r.contains("pseudo_after"),
                   "result.json", "'{}' is not there any more", s.name);
            return;
        }
        const bool restored = back != sites_.all.end();
        expect(r.at("shape") == now->shape && r.at("statement") == to_string(now->statement) && r.at("macs") == now->macs + (restored ? back->macs : 0) &&
                   r.at("parameters") == now->parameters + (restored ? back->parameters : 0),
               "result.json", "'{}' is not the site of model.json", s.name);
        Domain domain;
        for (const json& q : sequences_.at("sites"))
            if (q.at("name") == s.name) {
                domain = domain_of(parse_term(q.at("chosen").get<std::string>()));
                expect(r.at("sequence") == q.at("sequence"), "result.json", "'{}' is not what sequences.json says", s.name);
            }
        expect(r.at("variant") == domain_text(domain) && r.at("effect") == effect_of(s, &*now, domain), "result.json",
               "'{}' is not restricted as sequences.json says", s.name);
        for (const char* when : {"before", "after"}) {
            expect(r.contains(std::string("nest_") + when) == r.contains(std::string("pseudo_") + when), "result.json", "'{}' has loops without a nest",
                   s.name);
            if (!r.contains(std::string("nest_") + when) || !r.contains(std::string("pseudo_") + when)) continue;
            const Term nest = parse_term(r.at(std::string("nest_") + when).get<std::string>());
            expect(r.at(std::string("pseudo_") + when) == pseudo(completed(nest)), "result.json", "the loops of '{}' are not those of its nest {}", s.name,
                   when);
        }
        for (const char* which : {"original_latency", "latency"})
            expect(r.at(which).value("target", result_.at("target")) == result_.at("target"), "result.json", "'{}' was timed for another target", s.name);
    }

    void sizes(const json& metrics, const fs::path& folder) {
        if (!fs::exists(folder / "network.json")) return;
        const json network = json::parse(read_file(folder / "network.json"));
        for (const auto& [figure, floats] : {std::pair{"weights_mb", "weight_floats"}, {"activations_mb", "arena_floats"}})
            expect(near(metrics.at(figure), network.at(floats).get<double>() * 4 / 1e6), "result.json", "{} is not what {} says", figure,
                   (folder.filename() / "network.json").string());
    }

    // Every verdict agrees with its own figures, and the verdict about the returned network is there.
    void evidence() {
        const std::string network = graph_key(without_unread_outputs(original_)).hex(), variant = graph_key(without_unread_outputs(returned_)).hex();
        std::size_t line = 0;
        const json* whole = nullptr;
        for (const std::string& text : split(read_file(folder_ / "evidence.jsonl"), '\n')) {
            ++line;
            if (text.empty()) continue;
            json row = json::parse(text);
            if (row.value("oracle", "") == "rounding") {
                rounding(row, line);
                continue;
            }
            rows_.push_back(std::move(row));
            const json& e = rows_.back();
            expect(answers_by_its_figures(e), "evidence.jsonl", "line {}: the verdict is not what its figures say", line);
        }
        const json& guard = result_.at("guard");
        expect(guard.at("allowed").get<bool>(), "result.json", "the guard did not allow the network that was returned");
        if (result_.at("returned") == "original") return;
        for (const json& e : rows_)
            if (e.at("network_key") == network && e.at("variant_key") == variant && e.at("oracle") == guard.at("name")) whole = &e;
        if (!whole) return fault("evidence.jsonl", "there is no verdict about the network that was returned");
        expect(whole->at("allowed").get<bool>(), "evidence.jsonl", "the guard did not allow the network that was returned");
        expect(near(whole->at("kept"), guard.at("ratio"), 1e-9) && whole->at("why") == guard.at("why"), "result.json",
               "the guard's figures are not those of its evidence");
        verdict_ = *whole;
        check_guard(guard, verdict_, out_.faults);
        std::map<std::string, const Graph*> here{{variant, &returned_}};
        for (const NamedNetwork& n : named_) here.emplace(graph_key(without_unread_outputs(n.graph)).hex(), &n.graph);
        for (const json& e : rows_) {
            const auto found = here.find(e.value("variant_key", ""));
            if (found != here.end() && e.at("network_key") == network) check_sizes_said(e, original_, *found->second, options_of(e), out_.faults);
        }
        out_.held.push_back(fmt::format("{} verdicts agree with their figures, one of them about the returned network", rows_.size()));
    }

    // What the guard of roundings measured is what result.json says, and within its limits.
    void rounding(const json& row, std::size_t line) {
        const json& e = row.at("evidence");
        std::size_t rounded = 0;
        for (const auto& [site, r] : e.at("of_site").items()) rounded += r.at("precision") != "float32";
        expect(rounded == e.at("sites"), "evidence.jsonl", "line {}: it says that {} sites round, and lists {}", line, e.at("sites").get<int>(), rounded);
        expect(e.at("largest") <= e.at("limit"), "evidence.jsonl", "line {}: rounding moves outputs further than its limit", line);
        if (e.contains("points"))
            expect(e.at("points").at("lost") <= e.at("points").at("allowed"), "evidence.jsonl", "line {}: rounding loses more points than are allowed", line);
        const std::string network = row.at("network");
        if (network == "original" || result_.at("returned") == network)
            expect(result_.at(network).value("rounding", json()) == e, "result.json", "its rounding of the {} network is not what evidence.jsonl says",
                   network);
    }

    // Outputs as they should be, and how far from them those of other code may be: by the interpreter, which sums in double, and for a network that multiplies
    // rounded numbers by the same roundings on this machine.
    std::pair<std::vector<Tensor>, double> wanted_outputs(const std::vector<Tensor>& in) {
        const json said = result_.at("optimized").value("rounding", json());
        std::vector<Tensor> wanted;
        if (said.is_object() && said.at("sites") > 0) {
            const JsonView network = read_json(read_source(folder_ / "network.json", 1 << 30));
            Schedules schedules;
            for (const auto& [site, nest] : network.at("schedules").members()) schedules[site] = parse_term(nest.text());
            const Schedules here = rounded_here(returned_, schedules, find_target(network.at("target").text()));
            const ScratchFile name(".rounded");
            const ScratchFolder folder(name.path());
            compile_network({returned_, with_int8_scales(weights_, network), here}, find_target("host"), folder.path());
            return {run_confined(folder.path(), in), std::max(same_within, said.at("largest").get<double>())};
        }
        std::map<std::string, Tensor> named;
        for (std::size_t i = 0; i < in.size(); ++i) named[returned_.inputs[i].name] = in[i];
        const auto all = interpret(returned_, weights_, named);
        for (const std::string& output : returned_.outputs) wanted.push_back(all.at(output));
        return {wanted, same_within};
    }

    // The certificate says what the other files say. Whoever does not trust this program reads it with the one in checker/.
    void certificate() {
        const json is = read("certificate.json"), should = certificate_of(folder_, result_, sequences_, rule_book());
        for (const auto& [key, value] : should.items())
            expect(is.contains(key) && is.at(key) == value, "certificate.json", "its '{}' are not what the other files say", key);
        expect(is.size() == should.size(), "certificate.json", "it says more than a certificate does");
        if (out_.faults.empty()) out_.held.push_back("the certificate says what the other files say");
    }

    // Runs the compiled network once.
    void compiled() {
        const NetworkPorts ports = read_ports(folder_);
        std::vector<GraphInput> outputs;
        for (const std::string& o : returned_.outputs) outputs.push_back({o, returned_.shape_of(o)});
        auto same = [](const std::vector<GraphInput>& a, const std::vector<GraphInput>& b) {
            return a.size() == b.size() &&
                   std::equal(a.begin(), a.end(), b.begin(), [](const GraphInput& x, const GraphInput& y) { return x.name == y.name && x.shape == y.shape; });
        };
        expect(same(ports.inputs, returned_.inputs) && same(ports.outputs, outputs), "network.json", "its inputs and outputs are not those of model.json");
        if (ports.architecture != native_architecture()) {
            out_.held.push_back("the compiled network is for " + ports.architecture + " and was not run");
            return;
        }
        std::vector<Tensor> in;
        for (const GraphInput& i : returned_.inputs) in.push_back(normal_tensor(i.shape, 7, i.name));
        const std::vector<Tensor> got = run_confined(folder_, in);
        const auto [wanted, within] = wanted_outputs(in);
        double worst = 0;
        for (std::size_t o = 0; o < got.size(); ++o) {
            const Tensor& w = wanted.at(o);
            double largest = 1e-3;
            for (float v : w.values) largest = std::max(largest, static_cast<double>(std::abs(v)));
            for (std::size_t i = 0; i < w.values.size(); ++i) {
                const double apart = std::abs(static_cast<double>(got[o].values[i]) - static_cast<double>(w.values[i])) / largest;
                if (!(apart <= within))
                    return fault("network.so",
                                 fmt::format("element {} of '{}' is {} and should be {}", i, returned_.outputs[o], got[o].values[i], w.values[i]));
                worst = std::max(worst, apart);
            }
        }
        out_.held.push_back(fmt::format("what was compiled computes the network (largest difference {:.1e} of the largest value)", worst));
    }

    // As the guard was asked for this row.
    OracleOptions options_of(const json& row) const {
        OracleOptions options;
        options.conditions = conditions_in(row), options.batch = row.at("batch"), options.seed = row.at("seed");
        const std::string data = row.at("data");
        if (const auto space = data.find(' '); space != data.npos) options.data = data.substr(space + 1);
        if (row.contains("calibrated") || row.contains("taught"))  // 0.1 wrote "taught"
            options.calibration = read_trainings(read_source(folder_ / "trainings.jsonl"), original_, rules_file(result_.at("rules"))).calibration;
        return options;
    }

    // The files of the returned network and of the original, and the nests that they are said to run. Compiling takes a while, so it is left out where
    // something was found already.
    void files() {
        if (!out_.faults.empty()) return;
        const CompiledBy by{result_.at("machine").at("cpu"), result_.at("version")};
        const auto compare = [&](const std::vector<fs::path>& folders, const Graph& graph, const Weights& weights, const CompiledBy& how) {
            const FilesCheck check = check_compiled_files(folders, graph, weights, how, progress_);
            out_.faults.insert(out_.faults.end(), check.faults.begin(), check.faults.end());
            if (!check.held.empty()) out_.held.push_back(check.held);
            for (const auto& [site, error] : check.errors) {
                const json said = result_.at("errors").at(site).at("measured");
                expect(error.measured ? said.is_number() && near(said, *error.measured) : said.is_null(), "result.json",
                       "the kernels of '{}' do not err as it says", site);
            }
        };
        const bool same = result_.at("returned") == "original";
        std::vector<fs::path> returned{folder_};
        if (!same && fs::exists(folder_ / "optimized")) returned.push_back(folder_ / "optimized");
        compare(returned, returned_, weights_, by);
        const Weights drawn = same ? weights_ : initial_weights(original_, result_.at("seed"));
        CompiledBy before = by;
        before.same_weights = same || !trained();
        before.errors = false;  // result.json has those of the returned network
        if (fs::exists(folder_ / "original")) compare({folder_ / "original"}, original_, drawn, before);
        nests_run();
    }

    // Finalists of a trained network bring their weights. Those of the original itself are in the user's model alone; other originals draw them from a seed.
    bool trained() const {
        return std::any_of(named_.begin(), named_.end(),
                           [&](const NamedNetwork& n) { return fs::exists(folder_ / "finalists" / n.name / "weights.safetensors"); });
    }

    // The nests of result.json are those that network.json was compiled with.
    void nests_run() {
        const json network = read("network.json");
        Schedules schedules;
        for (const auto& [site, nest] : network.at("schedules").items()) schedules[site] = parse_term(nest.get<std::string>());
        const std::map<std::string, Term> nests = fused_nests(returned_, schedules, find_target(network.at("target")));
        const std::map<std::string, ErrorBound> bounds = site_bounds(returned_, nests);
        expect(bounds.size() == result_.at("errors").size(), "result.json", "'errors' are of other sites than those that have a bound");
        for (const auto& [site, bound] : bounds) {
            json said = result_.at("errors").at(site);
            const json measured = said.at("measured");
            expect(measured.is_null() || measured.get<double>() <= bound.bound, "result.json", "the kernels of '{}' err more than their bound", site);
            said.erase("measured");
            expect(said == bound_json(bound), "result.json", "the bound of the error of '{}' is not that of its nest", site);
        }
        for (const json& r : result_.at("sites")) {
            const auto runs = nests.find(r.at("name"));
            if (runs == nests.end() || !r.contains("nest_after")) continue;
            expect(r.at("nest_after") == to_string(bare(runs->second)), "result.json", "'{}' runs another nest than network.json says",
                   r.at("name").get<std::string>());
        }
    }

    void ask_again(const std::string& file) {
        Model model = load_model(file, result_.at("seed"));
        model.graph = with_batch(std::move(model.graph), result_.at("batch"));
        if (text_of(model.graph) != text_of(original_)) return fault("original.json", "it is not the network of '" + file + "'");
        if (result_.at("returned") == "original") return;
        if (verdict_.is_null()) return fault("evidence.jsonl", "there is no verdict to repeat");
        OracleOptions options = options_of(verdict_);
        options.trained = brings_weights(file, model.graph) ? &model.weights : nullptr;
        const Graph returned[]{returned_};
        const std::unique_ptr<Oracle> oracle = make_oracle(std::move(options));
        const Verdict v = oracle->judge(original_, returned).at(0);
        const Verdict said{verdict_.at("allowed"), verdict_.at("why"), verdict_};
        expect(v.allowed && says_the_same(v, said, 1e-3), "the guard", "recomputed, it says '{}', and said '{}'", v.why, said.why);
        ask_steps_again(*oracle);
    }

    // Each step that was judged by itself.
    void ask_steps_again(Oracle& oracle) {
        std::size_t asked = 0;
        for (const StepAlone& step : steps_alone(sequences_, original_, rule_book())) {
            const Graph alone[]{step.network};
            const auto again = step.by_size ? oracle.judge_by_size(original_, alone, step.conditions) : oracle.judge(original_, alone, step.conditions);
            const Verdict said{step.allowed, "", {{"measures", step.measures}}};
            expect(says_the_same(again.front(), said, 1e-3), "the guard", "recomputed for {} alone, it reports '{}'", step.rule, again.front().why);
            ++asked;
        }
        out_.held.push_back(fmt::format("all measures of the returned network and of {} steps, recomputed, are the same", asked));
    }

    fs::path folder_;
    Progress& progress_;
    RunChecks out_;
    json result_, sequences_, verdict_;
    std::vector<json> rows_;
    PlanRules rules_{{}};  // of the run
    std::optional<RuleBook> book_;
    Graph original_, shaped_, returned_;  // shaped: what rules over networks made of the original
    std::size_t network_steps_ = 0;
    Weights weights_;
    std::vector<NamedNetwork> named_;
    Sites whole_sites_, sites_;  // of the original, and of the returned network
};

}  // namespace

bool RunChecks::valid() const {
    return faults.empty() && std::all_of(sites.begin(), sites.end(), [](const SiteCheck& s) { return s.valid; });
}

RunChecks check_run(const fs::path& folder, const std::string& recheck, Progress& progress) { return Checker(folder, progress).run(recheck); }

}  // namespace loopegg
