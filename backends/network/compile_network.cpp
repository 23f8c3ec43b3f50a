#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/kernel_cache.hpp"
#include "backends/kernel/shared_library.hpp"
#include "backends/lower/nvrtc.hpp"
#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "backends/network/network_memory.hpp"
#include "backends/network/network_source.hpp"
#include "base/error.hpp"
#include "base/fault.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/places.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "base/team.hpp"
#include "graph/opaque.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

// network.so of a network on CPUs: the runtime, the kernels and the tables, linked without a compiler.

// What network.h offers, each by its name behind the prefix.
constexpr const char* offered[] = {"abi", "lacks",     "open",  "close",  "create",  "destroy",    "threads",
                                   "run", "run_steps", "steps", "inputs", "outputs", "input_size", "output_size"};

template <class Row>
std::string bytes_of(const std::vector<Row>& rows) {
    return {reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row)};
}

// The tables that loopegg_tables points to: the field, and what it points to.
struct PointedTable {
    std::size_t field;
    std::string name, bytes;
};

// The runtime is an object for the network's processor. Throws UserError where the objects need what only a system's linker does. The network has no operators
// that run as they are: their code is C++.
std::string network_library(const PlacedNetwork& n, const std::string& runtime) {
    const NetworkTables t = network_tables(n);
    require(t.operators.empty(), "a network that is linked here has no opaque operators");
    LinkRequest request;
    request.objects.push_back(runtime);
    for (const Kernel& k : n.kernels) request.objects.push_back(k.code);
    LinkedData kernels{"tables.kernels", std::string(sizeof(loopegg_kernel) * n.kernels.size(), '\0')};
    for (std::size_t k = 0; k < n.kernels.size(); ++k) kernels.pointers.push_back({k * sizeof(loopegg_kernel), n.kernels[k].symbol});
    LinkedData tables{"loopeggrt_tables", {reinterpret_cast<const char*>(&t.counts), sizeof t.counts}};
    tables.pointers.push_back({offsetof(loopegg_tables, kernels), kernels.name});
    request.data.push_back(std::move(kernels));
    for (PointedTable& table : std::vector<PointedTable>{{offsetof(loopegg_tables, step), "tables.steps", bytes_of(t.steps)},
                                                         {offsetof(loopegg_tables, operands), "tables.operands", bytes_of(t.operands)},
                                                         {offsetof(loopegg_tables, dimensions), "tables.dimensions", bytes_of(t.dimensions)},
                                                         {offsetof(loopegg_tables, input_sizes), "tables.input_sizes", bytes_of(t.input_sizes)},
                                                         {offsetof(loopegg_tables, output_sizes), "tables.output_sizes", bytes_of(t.output_sizes)},
                                                         {offsetof(loopegg_tables, input_offsets), "tables.input_offsets", bytes_of(t.input_offsets)},
                                                         {offsetof(loopegg_tables, output_offsets), "tables.output_offsets", bytes_of(t.output_offsets)},
                                                         {offsetof(loopegg_tables, output_places), "tables.output_places", bytes_of(t.output_places)}}) {
        tables.pointers.push_back({table.field, table.name});
        request.data.push_back({table.name, std::move(table.bytes)});
    }
    request.data.push_back(std::move(tables));
    for (const char* name : offered) request.exported[network_prefix(n.name) + name] = std::string("loopeggrt_") + name;
    try {
        return link_shared_library(request);
    } catch (const Unlinkable& u) {
        throw UserError("network.so cannot be linked: " + u.why);
    }
}

namespace fs = std::filesystem;

// Distinct nests. All cores compile them.
struct KernelSet {
    std::vector<Term> nests;
    std::vector<std::string> sites;
    std::vector<Kernel> kernels;
    std::map<std::string, int> index;
    double seconds = 0;  // processor time for all kernels

    int add(const Term& nest, const std::string& site) {
        auto [it, fresh] = index.try_emplace(to_string(nest), static_cast<int>(nests.size()));
        if (fresh) nests.push_back(nest), sites.push_back(site);
        return it->second;
    }
    void compile(const Target& target, Progress* progress, KernelCache& cache) {
        kernels.resize(nests.size());
        std::atomic<std::size_t> next{0}, finished{0};
        std::mutex mutex;
        std::string failure;
        auto work = [&](std::size_t) {
            for (std::size_t i = next++; i < nests.size(); i = next++) {
                try {
                    TimedKernel made = cache.compile(nests[i], target);
                    kernels[i] = std::move(made.kernel);
                    std::lock_guard lock(mutex);
                    seconds += made.seconds;
                } catch (const std::exception& e) {
                    std::lock_guard lock(mutex);
                    if (failure.empty()) failure = fmt::format("site '{}' cannot be compiled for {}: {}", sites[i], target.name, e.what());
                }
                if (progress) progress->advance(static_cast<std::int64_t>(++finished), sites[i]);
            }
        };
        run_together(processors(), work);
        if (!failure.empty()) throw UserError(failure);
    }
};

// The inputs, and the outputs that are values of their own: those that are no part of another value, and no input or output before.
std::map<std::string, int> ports_of(const Graph& graph, const NetworkPlan& plan) {
    std::map<std::string, int> ports;
    for (const GraphInput& in : graph.inputs) ports.emplace(in.name, static_cast<int>(ports.size()));
    int next = static_cast<int>(graph.inputs.size());
    for (const std::string& out : graph.outputs) {
        if (home(plan, out).first == out) ports.emplace(out, next);
        ++next;
    }
    return ports;
}

// Constants as the kernel takes them. int8 weights need the scales of their site.
std::vector<float> stored_constants(const KernelBuffer& p, const Operand& o, const std::string& site) {
    if (p.rounding != "int8") return to_storage(p, o.constants);
    if (o.int8.empty())
        throw UserError(Diagnostic{fmt::format("site '{}' multiplies int8 numbers, and nothing says how large its inputs are", site),
                                   {},
                                   "scales are measured on data: 'loopegg compile --allow int8 --data FOLDER'"});
    Int8Scales scales = scales_from(o.int8);
    if (!std::isnormal(scales.input) || scales.input < 0 || !(scales.zero >= 0 && scales.zero <= 255) || std::nearbyint(scales.zero) != scales.zero)
        throw UserError(fmt::format("site '{}': the scale of int8 inputs is {} with zero {}, expected a scale above 0 and a zero from 0 to 255", site,
                                    scales.input, scales.zero));
    if (!std::all_of(o.constants.begin(), o.constants.end(), [](float w) { return std::isfinite(w); }))
        throw UserError(fmt::format("site '{}' has weights that are not finite, so they have no int8 scale", site));
    const auto is_scale = [](float s) { return std::isnormal(s) && s > 0; };
    if (!scales.weights.empty() &&
        (static_cast<std::int64_t>(scales.weights.size()) != p.logical[0] || !std::all_of(scales.weights.begin(), scales.weights.end(), is_scale)))
        throw UserError(fmt::format("site '{}': the {} scales of its int8 weights are not {} numbers above 0, one for each output channel", site,
                                    scales.weights.size(), p.logical[0]));
    if (scales.weights.empty()) scales.weights = weight_scales(o.constants, p.logical[0]);
    return to_storage(p, o.constants, scales);
}

PlacedNetwork place(const Graph& graph, const NetworkPlan& plan, const std::vector<StepRegion>& regions, const MemoryPlan& memory, KernelSet& set) {
    PlacedNetwork n;
    n.name = graph.name;
    n.inputs = graph.inputs;
    auto store = [&](const std::vector<float>& values) {
        const auto at = static_cast<std::int64_t>(n.weights.size());
        n.weights.insert(n.weights.end(), values.begin(), values.end());
        n.weights.resize((n.weights.size() + 31) / 16 * 16, 0.0f);
        return at;
    };
    const std::map<std::string, int> ports = ports_of(graph, plan);
    auto locate = [&](const std::string& value) -> PlacedOperand {
        const auto [root, offset] = home(plan, value);
        if (auto c = plan.constants.find(root); c != plan.constants.end()) {
            auto [it, fresh] = n.constants.try_emplace(root, 0);
            if (fresh) it->second = store(c->second);
            return {true, it->second + offset};
        }
        const auto port = ports.find(root);
        return {false, memory.offsets.at(value), port == ports.end() ? -1 : port->second};
    };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const NetworkPlan::Step& step = plan.steps[i];
        PlacedStep placed;
        if (step.nest) {
            placed.site = step.nest->site;
            for (const FusedRule& f : step.nest->fused) placed.fused.push_back(f.node.empty() ? f.rule : f.rule + " " + f.node);
            placed.kernel = set.add(step.nest->nest, step.nest->site);
            const Kernel& kernel = set.kernels[static_cast<std::size_t>(placed.kernel)];
            for (std::size_t i = 0; i < step.nest->operands.size(); ++i) {
                const Operand& o = step.nest->operands[i];
                if (o.value.empty())
                    placed.operands.push_back({true, store(stored_constants(kernel.parameters[i], o, step.nest->site))});
                else
                    placed.operands.push_back(locate(o.value));
            }
        } else if (step.copy) {
            const CopyStep& c = *step.copy;
            PlacedOperand to = locate(c.to), from = locate(c.from);
            to.offset += c.to_offset, from.offset += c.from_offset;
            placed = {-1, {to, from}, c.shape, c.to_strides, c.from_strides, c.site, {}};
        } else {
            const OpaqueStep& o = *step.opaque;
            placed.kernel = -2, placed.site = o.site, placed.opaque = o.node, placed.output = o.output, placed.shape = {o.count}, placed.read_shapes = o.shapes;
            placed.operands = {locate(o.to)};
            for (const std::string& from : o.from) placed.operands.push_back(locate(from));
        }
        placed.together = regions[i].end - static_cast<int>(i);
        n.steps.push_back(std::move(placed));
    }
    for (const GraphInput& in : graph.inputs) n.input_offsets.push_back(memory.offsets.at(in.name));
    for (const std::string& out : graph.outputs) {
        n.outputs.push_back({out, graph.shape_of(out)});
        n.output_places.push_back(locate(out));
    }
    n.kernels = set.kernels;
    n.arena = memory.floats;
    return n;
}

nlohmann::json described(const std::vector<GraphInput>& all) {
    nlohmann::json j = nlohmann::json::array();
    for (const GraphInput& i : all) j.push_back({{"name", i.name}, {"shape", i.shape}});
    return j;
}

nlohmann::json operands_json(const std::vector<PlacedOperand>& all) {
    nlohmann::json j = nlohmann::json::array();
    for (const PlacedOperand& o : all) j.push_back({{"space", o.constant ? "weights" : "arena"}, {"offset", o.offset}});
    return j;
}

// What is compiled: a plan, and the schedules that it was made from, if it was made from schedules.
struct Planned {
    const Graph& graph;
    NetworkPlan plan;
    const Schedules* schedules = nullptr;
    const Weights* weights = nullptr;  // with the scales of int8 numbers
};

// All that another program needs to run the network. A bundle's runner reads it, too.
nlohmann::json manifest(const PlacedNetwork& n, const std::vector<Term>& nests, const Target& target, const Planned& what) {
    nlohmann::json kernels = nlohmann::json::array(), steps = nlohmann::json::array();
    for (std::size_t i = 0; i < n.kernels.size(); ++i)
        kernels.push_back(
            {{"symbol", n.kernels[i].symbol}, {"nest", to_string(nests[i])}, {"grid", n.kernels[i].launch.grid}, {"block", n.kernels[i].launch.block}});
    for (const PlacedStep& s : n.steps)
        steps.push_back({{"site", s.site},
                         {"kernel", s.kernel},
                         {"fused", s.fused},
                         {"operands", operands_json(s.operands)},
                         {"shape", s.shape},
                         {"to_strides", s.to_strides},
                         {"from_strides", s.from_strides}});
    nlohmann::json all{{"loopegg", 1},
                       {"name", n.name},
                       {"abi", network_abi},
                       {"prefix", network_prefix(n.name)},
                       {"target", target.name},
                       {"architecture", target.architecture()},
                       {"inputs", described(n.inputs)},
                       {"outputs", described(n.outputs)},
                       {"input_offsets", n.input_offsets},
                       {"output_places", operands_json(n.output_places)},
                       {"arena_floats", n.arena},
                       {"weight_floats", n.weights.size()},
                       {"kernels", kernels},
                       {"steps", steps}};
    if (what.schedules) {
        all["schedules"] = nlohmann::json::object();
        for (const auto& [site, schedule] : *what.schedules) all["schedules"][site] = to_string(schedule);
        if (const nlohmann::json scales = int8_scales_json(*what.weights); !scales.empty()) all["int8"] = scales;
    }
    return all;
}

// The C compiler for this target; "" where it is not installed.
std::string c_compiler(const Target& target) {
    const std::string name = target.architecture() == native_architecture() ? "cc" : target.architecture() + "-linux-gnu-gcc";
    return program_exists(name) ? name : "";
}

bool has_operators(const PlacedNetwork& n) {
    return std::any_of(n.steps.begin(), n.steps.end(), [](const PlacedStep& s) { return s.kernel == -2; });
}

// The object of the runtime for this target, as it came with loopegg, or as a compiler for the target makes it; "" where neither is there.
std::string runtime_object(const Target& target, KernelCache& cache) {
    const fs::path shipped_object = runtime_object_file(target.architecture());
    if (fs::exists(shipped_object)) return read_file(shipped_object);
    const std::string compiler = c_compiler(target);
    return compiler.empty() ? "" : read_file(cache.runtime(compiler));
}

// The code of operators that run as they are is C++, so a compiler links it. It keeps its names to itself.
void link_with_operators(const Target& target, const fs::path& folder, KernelCache& cache) {
    const std::string compiler = c_compiler(target);
    std::vector<std::string> words{compiler,
                                   "-O2",
                                   "-std=gnu11",
                                   "-shared",
                                   "-fPIC",
                                   "-Wl,--version-script=" + (folder / "network.map").string(),
                                   (folder / "network.c").string(),
                                   cache.runtime(compiler).string()};
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".o") words.push_back(entry.path().string());
    for (const std::string& word : {opaque_library().string(), std::string("-lstdc++"), std::string("-Wl,--exclude-libs,ALL"), std::string("-o"),
                                    (folder / "network.so").string(), std::string("-lm"), std::string("-lpthread")})
        words.push_back(word);
    run_or_throw(words, "building network.so");
}

// Sources and objects are written plainly, because only the library counts. False: there are objects and sources, and network.c says how to build the library.
bool write_cpu(const PlacedNetwork& n, const Target& target, const fs::path& folder, KernelCache& cache) {
    const fs::path runtime = shipped("backends/runtime");
    write_scratch(folder / "network.c", network_source(n));
    write_file(folder / "network.h", network_header(n, target));
    write_scratch(folder / "network.map", exported_names(n));
    for (const char* file : runtime_files) write_scratch(folder / file, read_file(runtime / file));
    for (std::size_t i = 0; i < n.kernels.size(); ++i) {
        const std::string architecture = elf_architecture(n.kernels[i].code);
        if (architecture != target.architecture()) throw InternalFault("a kernel's object is for " + architecture);
        write_scratch(folder / kernel_file(i, target), n.kernels[i].code);
    }
    if (fault_here(FaultPlace::compile)) throw UserError("building network.so failed: No space left on device");
    if (has_operators(n)) {
        link_with_operators(target, folder, cache);
        return true;
    }
    const std::string object = runtime_object(target, cache);
    if (!object.empty()) write_file(folder / "network.so", network_library(n, object));
    return !object.empty();
}

// The library runs on a machine of this architecture that has the driver. It is built here if there is a C compiler. Otherwise the first line of network.c
// shows how to build it.
bool write_gpu(const PlacedNetwork& n, const Target& target, const fs::path& folder) {
    const fs::path runtime = shipped("backends/runtime");
    std::vector<std::string> sources;
    for (const Kernel& k : n.kernels) sources.push_back(k.code);
    const std::vector<std::string> cubins = make_cubins(sources, target.architecture());
    for (std::size_t i = 0; i < n.kernels.size(); ++i) {
        write_file(folder / kernel_file(i, target), n.kernels[i].code);
        const std::string architecture = elf_architecture(cubins[i]);
        if (architecture != target.architecture()) throw InternalFault("a kernel's cubin is for " + architecture);
        write_file(folder / fmt::format("kernel{:03}.cubin", i), cubins[i]);
    }
    write_file(folder / "network.c", gpu_network_source(n, cubins));
    write_file(folder / "network.h", network_header(n, target));
    for (const char* file : {"gpu_network.h", "gpu_program.h", "cuda_driver.h", "loopegg_weights.h"}) write_file(folder / file, read_file(runtime / file));
    if (!program_exists("cc")) return false;
    run_or_throw({"cc", "-O2", "-std=gnu11", "-shared", "-fPIC", (folder / "network.c").string(), "-o", (folder / "network.so").string(), "-ldl"},
                 "building network.so");
    return true;
}

}  // namespace

PlacedNetwork place_network(const Graph& graph, NetworkPlan plan, const Target& target, Progress* progress, std::vector<Term>& nests, KernelCache& cache) {
    std::vector<std::string> inputs;
    for (const GraphInput& i : graph.inputs) inputs.push_back(i.name);
    place_concats(plan, inputs);
    const std::vector<StepRegion> regions = step_regions(plan);
    const MemoryPlan memory = plan_memory(plan, regions, inputs, graph.outputs);
    KernelSet set;
    for (const NetworkPlan::Step& s : plan.steps)
        if (s.nest) set.add(s.nest->nest, s.nest->site);
    Progress::Inner stage(progress, "compile for " + target.name, static_cast<std::int64_t>(set.nests.size()));
    set.compile(target, progress, cache);
    PlacedNetwork n = place(graph, plan, regions, memory, set);
    n.kernel_seconds = set.seconds;
    stage.finish(fmt::format("{} kernels, {} steps", set.nests.size(), n.steps.size()));
    nests = set.nests;
    return n;
}

namespace {

CompiledNetwork written(Planned what, const Target& target, const fs::path& folder, Progress* progress, KernelCache& cache) {
    const Graph& graph = what.graph;
    std::vector<Term> nests;
    const PlacedNetwork n = place_network(graph, std::move(what.plan), target, progress, nests, cache);
    if (has_operators(n)) require_linkable(graph, target);
    const auto start = std::chrono::steady_clock::now();
    fs::create_directories(folder);
    write_file(folder / "weights.bin", {reinterpret_cast<const char*>(n.weights.data()), n.weights.size() * sizeof(float)});
    write_file(folder / "network.json", manifest(n, nests, target, what).dump(1) + "\n");
    const bool linked = target.gpu() ? write_gpu(n, target, folder) : write_cpu(n, target, folder, cache);
    return {folder,
            target.name,
            static_cast<int>(nests.size()),
            static_cast<int>(n.steps.size()),
            n.arena * 4,
            static_cast<std::int64_t>(n.weights.size()) * 4,
            n.kernel_seconds + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
            linked};
}

}  // namespace

void require_linkable(const Graph& graph, const Target& target) {
    const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op == "onnx"; });
    if (node == graph.nodes.end()) return;
    const std::string what = fmt::format("node '{}' is an ONNX operator ({}) that loopegg's own code runs", node->name, opaque_of(*node).node.op);
    if (target.gpu() || target.architecture() != native_architecture())
        throw UserError(fmt::format("{}, which is there for this machine's processor alone, not for {}", what, target.name));
    if (c_compiler(target).empty())
        throw UserError(
            Diagnostic{what + ", and only a C++ compiler links that code: there is no 'cc' on the PATH", {}, "install g++ (Debian: apt install g++)"});
}

void compile_plan(const Graph& graph, NetworkPlan plan, const Target& target, const fs::path& folder, Progress* progress) {
    KernelCache own;
    written({graph, std::move(plan)}, target, folder, progress, own);
}

CompiledNetwork compile_network(const ScheduledNetwork& network, const Target& target, const fs::path& folder, Progress* progress, KernelCache* cache) {
    KernelCache own;
    const auto& [graph, weights, schedules] = network;
    return written({graph, plan_network(graph, weights, schedules, target), &schedules, &weights}, target, folder, progress, cache ? *cache : own);
}

std::map<std::string, Term> fused_nests(const Graph& graph, const Schedules& schedules, const Target& target) {
    std::map<std::string, Term> all;
    for (const NetworkPlan::Step& s : plan_without_constants(graph, schedules, target).steps) {
        if (!s.nest) continue;
        const auto given = schedules.find(s.nest->site);
        const bool in_a_row = given != schedules.end() && given->second.is("prepare", 2);
        const auto [at, fresh] = all.try_emplace(s.nest->site, in_a_row ? Term("site", {s.nest->nest}) : s.nest->nest);
        if (!fresh && in_a_row) at->second = Term("then", {at->second, s.nest->nest});
    }
    for (auto& [site, nest] : all)
        if (!nest.is("nest", 2) && !nest.is("restore", 2)) nest = Term("prepare", {schedules.at(site)[0], nest});
    return all;
}

CompiledNetwork recompile(const fs::path& from, const Graph& graph, const Weights& weights, const fs::path& to, Progress* progress) {
    const JsonView manifest = read_json(read_source(from / "network.json", 1 << 30));
    const auto said = manifest.find("schedules");
    if (!said)
        throw UserError(Diagnostic{from.string() + " does not hold the schedules of its network", {}, "run 'loopegg optimize' or 'loopegg compile' again"});
    Schedules schedules;
    for (const auto& [site, schedule] : said->members()) schedules[site] = parse_term(schedule.text());
    const Target target = find_target(manifest.at("target").text());

    ScratchFile name(".kernels");
    const ScratchFolder pool(name.path());
    fs::create_directories(pool.path());
    const KernelPool kernels(pool.path());
    std::size_t index = 0;
    for (const JsonView& kernel : manifest.at("kernels").items()) {
        const fs::path code = from / kernel_file(index++, target);
        if (fs::exists(code)) kernels.put(parse_term(kernel.at("nest").text()), target, read_file(code));
    }
    KernelCache cache{kernels};
    const Weights scaled = with_int8_scales(weights, manifest);
    CompiledNetwork made = compile_network({graph, scaled, schedules}, target, to, progress, &cache);
    const JsonView fresh = read_json(read_source(to / "network.json", 1 << 30));
    if (fresh.at("steps").value() != manifest.at("steps").value() || fresh.at("kernels").value() != manifest.at("kernels").value())
        throw UserError(Diagnostic{
            from.string() + " was compiled by another version of loopegg, which makes other steps of this network", {}, "run 'loopegg optimize' again"});
    return made;
}

}  // namespace loopegg
