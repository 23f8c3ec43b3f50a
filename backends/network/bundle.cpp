#include "backends/network/bundle.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/kernel/elf.hpp"
#include "backends/kernel/kernel_cache.hpp"
#include "backends/measure/latency_store.hpp"
#include "backends/network/network_plan.hpp"
#include "backends/network/network_source.hpp"
#include "backends/lower/nvrtc.hpp"
#include "backends/kernel/reference.hpp"
#include "base/scratch.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/quote.hpp"
#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "graph/weights.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;

// The bundle's text: one line a fact, read by runtime/bundle_runner.cpp.
class Writer {
public:
    Writer(const Target& target, fs::path folder) : target_(target), folder_(std::move(folder)) {
        fs::create_directories(folder_);
        text_ = fmt::format("loopegg-bundle 1 {} {}\n", target.name, target.architecture());
    }

    void begin(const std::string& key, const std::string& what) {
        text_ += fmt::format("program {}\n", key);
        index_.push_back({{"key", key}, {"what", what}});
        ++programs;
    }
    int kernel(const Kernel& k) {
        const int id = kernels_++;
        const std::string stem = fmt::format("k{:04}", id);
        write_file(folder_ / (stem + ".cu"), k.code);
        write_file(folder_ / (stem + ".cubin"), make_cubin(k.code, target_.architecture()));
        const auto &g = k.launch.grid, &b = k.launch.block;
        text_ += fmt::format("kernel {} {}.cubin {} {} {} {} {} {} {}\n", id, stem, k.symbol, g[0], g[1], g[2], b[0], b[1], b[2]);
        return id;
    }
    void memory(std::int64_t floats) { text_ += fmt::format("memory {}\n", floats); }
    // Values that are small multiples of one step travel as bytes.
    void load(std::int64_t offset, std::span<const float> values) { data("load", offset, values, 0); }
    // Weights in the order of their visits: the values as they are, once for all schedules of a nest, and how they are gathered.
    void gather(std::int64_t offset, const KernelBuffer& p, std::span<const float> logical) {
        if (p.readers.empty()) return load(offset, to_storage(p, logical));
        data("logical", 0, logical, 0);
        for (const WeightReader& r : p.readers) {
            text_ += fmt::format("gather {} {} {}", offset + r.start, p.logical.size(), r.atoms.size());
            for (std::int64_t d : p.logical) text_ += fmt::format(" {}", d);
            for (const WeightReader::Atom& a : r.atoms) text_ += fmt::format(" {}", a.extent);
            for (std::size_t d = 0; d < p.logical.size(); ++d) {
                text_ += fmt::format(" {}", r.offsets[d]);
                for (std::int64_t k : r.coefficients[d]) text_ += fmt::format(" {}", k);
            }
            text_ += "\n";
        }
    }
    void check(std::int64_t offset, std::span<const float> values, double tolerance) { data("check", offset, values, tolerance); }
    void launch(int kernel, const std::vector<std::int64_t>& offsets) {
        text_ += fmt::format("launch {} {}", kernel, offsets.size());
        for (std::int64_t o : offsets) text_ += fmt::format(" {}", o);
        text_ += "\n";
    }
    void copy(std::int64_t to, std::int64_t from, const PlacedStep& s) {
        text_ += fmt::format("copy {} {} {}", to, from, s.shape.size());
        for (std::size_t d = 0; d < s.shape.size(); ++d) text_ += fmt::format(" {} {} {}", s.shape[d], s.to_strides[d], s.from_strides[d]);
        text_ += "\n";
    }
    void end() { text_ += "end\n"; }

    void finish() {
        write_file(folder_ / "bundle.txt", text_);
        write_file(folder_ / "index.json", nlohmann::json{{"target", target_.name}, {"programs", index_}}.dump(1) + "\n");
        const fs::path runtime = shipped("backends/runtime");
        for (const char* file : {"bundle_runner.cpp", "run_bundle.sh"}) write_file(folder_ / file, read_file(runtime / file));
        fs::permissions(folder_ / "run_bundle.sh", fs::perms::owner_exec, fs::perm_options::add);
    }
    int programs = 0;

private:
    void data(const char* word, std::int64_t offset, std::span<const float> values, double tolerance) {
        float most = 0;
        for (float v : values) most = std::max(most, std::fabs(v));
        double step = 1;
        bool bytes = most <= 127;
        for (std::size_t i = 0; bytes && i < values.size(); ++i) bytes = values[i] == std::round(values[i]);
        if (!bytes && most > 0) {   // multiples of most/127, as rounded weights are
            step = static_cast<double>(most) / 127;
            bytes = true;
            for (std::size_t i = 0; bytes && i < values.size(); ++i) bytes = static_cast<float>(std::round(values[i] / step) * step) == values[i];
        }
        std::string packed(bytes ? "" : std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
        if (bytes)
            for (float v : values) packed += static_cast<char>(static_cast<signed char>(std::lround(v / step)));
        // schedules of one nest share what they read
        const auto [known, fresh] = files_.emplace(hash_of(packed).hex(), fmt::format("d{:05}.bin", files_.size()));
        const std::string& file = known->second;
        if (fresh) write_file(folder_ / file, packed);
        text_ += fmt::format("{} {} {} {} {:.17g} {} {}\n", word, offset, values.size(), bytes ? "i8" : "f32", step, file, tolerance);
    }

    const Target& target_;
    fs::path folder_;
    std::string text_;
    nlohmann::json index_ = nlohmann::json::array();
    std::map<std::string, std::string> files_;   // by what is in them
    int kernels_ = 0;
};

std::int64_t rounded(std::int64_t floats) { return (floats + 63) / 64 * 64; }

void write_nest(Writer& out, const Term& given, const Target& target) {
    const Term nest = complete(given);
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, target, "k");
    const auto operands = sample_operands(s, 1);
    const auto wanted = reference_output(nest, operands);
    out.begin(latency_key(target, nest).hex(), to_string(nest));
    const int id = out.kernel(kernel);
    std::vector<std::int64_t> offsets;
    std::int64_t floats = 0;
    for (const KernelBuffer& p : kernel.parameters) offsets.push_back(floats), floats = rounded(floats + p.elements);
    out.memory(floats);
    for (std::size_t b = 1; b < s.buffers.size(); ++b) out.gather(offsets[b], kernel.parameters[b], operands[b]);
    std::vector<std::int64_t> arguments;
    for (int a : kernel.arguments) arguments.push_back(offsets[static_cast<std::size_t>(a)]);
    out.launch(id, arguments);
    // Elements that nobody computes stay as the memory was, 0; so does the reference.
    out.check(offsets[0], to_storage(kernel.parameters[0], wanted), exact_on_whole_numbers(s) ? 0 : 1e-4);
    out.end();
}

// Weights as multiples of a step of their own: a byte each on the way, and the same network on both sides.
void round_weights(NetworkPlan& plan) {
    auto round_values = [](std::vector<float>& values) {
        float most = 0;
        for (float v : values) most = std::max(most, std::fabs(v));
        const double step = static_cast<double>(most) / 127;
        if (step > 0)
            for (float& v : values) v = static_cast<float>(std::round(v / step) * step);
    };
    for (NetworkPlan::Step& s : plan.steps)
        if (s.nest)
            for (Operand& o : s.nest->operands) round_values(o.constants);
    for (auto& [name, values] : plan.constants) round_values(values);
}

// What the network gives on this machine, by the same plan.
std::vector<float> host_output(const Graph& graph, const Weights& weights, const std::vector<Tensor>& inputs) {
    const Target host = find_target("host");
    ScratchFile folder(".network");
    NetworkPlan plan = plan_network(graph, weights, {}, host);
    round_weights(plan);
    compile_plan(graph, std::move(plan), host, folder.path(), nullptr);
    LoadedNetwork network(folder.path());
    auto values = network.run(inputs)[0].values;
    fs::remove_all(folder.path());
    return values;
}

void write_network(Writer& out, const Graph& graph, const Weights& weights, const Schedules& schedules, const Target& target) {
    NetworkPlan plan = plan_network(graph, weights, schedules, target);
    round_weights(plan);
    std::vector<Term> nests;
    std::vector<std::pair<std::int64_t, std::vector<float>>> constants;
    KernelCache kernels;
    const PlacedNetwork n = place_network(graph, std::move(plan), target, nullptr, nests, kernels);
    Term steps("network", [&] {
        std::vector<Term> all;
        for (const PlacedStep& s : n.steps)
            if (s.kernel >= 0) all.push_back(nests[static_cast<std::size_t>(s.kernel)]);
        return all;
    }());
    out.begin(latency_key(target, steps).hex(), "network " + graph.name);
    std::vector<int> ids;
    for (const Kernel& k : n.kernels) ids.push_back(out.kernel(k));
    const std::int64_t weights_at = rounded(n.arena);
    out.memory(weights_at + static_cast<std::int64_t>(n.weights.size()));
    for (std::size_t i = 0; i < n.constant_ranges.size(); ++i) {
        const auto [at, count] = n.constant_ranges[i];
        out.load(weights_at + at, std::span(n.weights).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)));
    }
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        inputs.push_back(normal_tensor(graph.inputs[i].shape, 1, graph.inputs[i].name));
        out.load(n.input_offsets[i], inputs.back().values);
    }
    auto where = [&](const PlacedOperand& o) { return o.constant ? weights_at + o.offset : o.offset; };
    for (const PlacedStep& s : n.steps) {
        if (s.kernel == -2) throw UserError("node '" + s.site + "' is an ONNX operator that loopegg's own code runs, and that code is not for GPUs");
        if (s.kernel < 0) {
            out.copy(where(s.operands[0]), where(s.operands[1]), s);
            continue;
        }
        std::vector<std::int64_t> arguments;
        for (int a : n.kernels[static_cast<std::size_t>(s.kernel)].arguments) arguments.push_back(where(s.operands[static_cast<std::size_t>(a)]));
        out.launch(ids[static_cast<std::size_t>(s.kernel)], arguments);
    }
    out.check(where(n.output_places[0]), host_output(graph, weights, inputs), 1e-3);
    out.end();
}

}  // namespace

BundleReport write_bundle(std::span<const Term> nests, const Graph* graph, const Weights* weights, const Schedules& schedules, const Target& target,
                          const fs::path& folder) {
    if (!target.gpu()) throw UserError("bundles are made for GPU targets; '" + target.name + "' is a CPU: carry the folder that 'loopegg compile' writes");
    Writer out(target, folder);
    BundleReport report;
    for (const Term& nest : nests) try {
        write_nest(out, nest, target);
    } catch (const UserError& e) {
        report.left_out.push_back(std::string(e.what()) + ": " + to_string(nest));
    }
    if (graph) write_network(out, *graph, *weights, schedules, target);
    out.finish();
    report.programs = out.programs;
    return report;
}

std::vector<BundleResult> import_bundle(const fs::path& folder, const StoreAddress& store_address) {
    const JsonView index = read_json(read_source(folder / "index.json"));
    const std::string target = index.at("target").text();
    std::map<std::string, std::string> what;
    for (const JsonView& p : index.at("programs").items()) {
        const std::string& key = p.at("key").text();
        if (key.size() != 32 || key.find_first_not_of("0123456789abcdef") != key.npos) p.at("key").fail("expected a key of 32 hexadecimal digits");
        what[key] = p.at("what").text();
    }
    LatencyStore store(store_address);
    std::vector<BundleResult> all;
    std::istringstream lines(read_file(folder / "results.txt"));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream in(line);
        std::string key, verdict;
        BundleResult r;
        in >> key >> verdict;
        if (!what.contains(key)) throw UserError("results.txt names a program that the bundle does not have: " + terminal_text(line));
        r.what = what[key];
        r.right = verdict == "ok";
        Measured m;
        if (r.right) {
            in >> r.latency.median_ms >> r.latency.iqr_ms >> r.latency.n;
            if (!in) throw UserError("results.txt has a line that cannot be read: " + terminal_text(line));
            if (!is_a_time(r.latency.median_ms, r.latency.iqr_ms, r.latency.n) || r.latency.n < 1)
                throw UserError("results.txt has times that no clock gives: " + terminal_text(line));
            r.latency.target = target, r.latency.measured = true;
            m.latency = r.latency;
        } else {
            std::getline(in, r.why);
            m.why = verdict + r.why, m.own = verdict == "wrong";
        }
        Hash128 hash;
        hash.high = std::stoull(key.substr(0, 16), nullptr, 16), hash.low = std::stoull(key.substr(16), nullptr, 16);
        store.put(hash, target, r.what, m);
        all.push_back(std::move(r));
    }
    return all;
}

}  // namespace loopegg
