#include "backends/network/bundle.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/nvrtc.hpp"
#include "backends/measure/latency_store.hpp"
#include "backends/measure/network_measure.hpp"
#include "backends/network/network_plan.hpp"
#include "backends/network/network_source.hpp"
#include "backends/network/rounding_error.hpp"
#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/number.hpp"
#include "base/places.hpp"
#include "base/quote.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "base/team.hpp"
#include "graph/weights.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;

std::string short_name(const char* letter, std::string_view bytes) { return letter + hash_of(bytes).hex().substr(0, 16); }

// How both sides draw a constant of a network: 256 steps from `low`, about the mean and the spread of the real values, and within their smallest and largest.
struct Drawn {
    std::size_t count = 0;
    std::uint64_t seed = 0;
    double low = 0, step = 0;
};

// The text of a program, with one fact on each line, which runtime/bundle_runner.cpp reads. Files are named by a hash of their content, so programs share
// equal files.
class ProgramText {
public:
    ProgramText(const Target& target, const fs::path& folder, bool sources) : target_(target), folder_(folder), sources_(sources) {}

    int kernel(const Kernel& k) {
        const std::string stem = short_name("k", k.code);
        if (const fs::path cubin = folder_ / (stem + ".cubin"); !fs::exists(cubin)) {
            if (sources_) write_scratch(folder_ / (stem + ".cu"), k.code);
            write_file(cubin, make_cubin(k.code, target_.architecture()));
        }
        const auto &g = k.launch.grid, &b = k.launch.block;
        text_ += fmt::format("kernel {} {}.cubin {} {} {} {} {} {} {}\n", kernels_, stem, k.symbol, g[0], g[1], g[2], b[0], b[1], b[2]);
        return kernels_++;
    }
    void memory(std::int64_t floats) { text_ += fmt::format("memory {}\n", floats); }
    void load(std::int64_t offset, std::span<const float> values) { data("load", offset, values, 0); }
    void check(std::int64_t offset, std::span<const float> values, double tolerance) { data("check", offset, values, tolerance); }
    // Writes the values as they are, once for all schedules of a nest, and then where they go, in the order in which the schedule visits them.
    void weights(std::int64_t offset, const KernelBuffer& p, std::span<const float> logical) {
        if (p.readers.empty()) return load(offset, to_storage(p, logical));
        data("logical", 0, logical, 0);
        gather(offset, p);
    }
    void drawn(const Drawn& d) { text_ += fmt::format("drawn {} {} {:.17g} {:.17g}\n", d.count, d.seed, d.low, d.step); }
    void place(std::int64_t offset) { text_ += fmt::format("place {}\n", offset); }
    void gather(std::int64_t offset, const KernelBuffer& p) {
        for (const WeightReader& r : p.readers) {
            text_ += fmt::format("gather {} {} {} {}", p.in_word > 1 ? p.rounding : "float32", offset + r.start / p.in_word, p.logical.size(), r.atoms.size());
            for (std::int64_t d : p.logical) text_ += fmt::format(" {}", d);
            for (const WeightReader::Atom& a : r.atoms) text_ += fmt::format(" {}", a.extent);
            for (std::size_t d = 0; d < p.logical.size(); ++d) {
                text_ += fmt::format(" {}", r.offsets[d]);
                for (std::int64_t k : r.coefficients[d]) text_ += fmt::format(" {}", k);
            }
            text_ += "\n";
        }
    }
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
    const std::string& text() const { return text_; }

private:
    // Values that are small multiples of one step travel as bytes.
    void data(const char* word, std::int64_t offset, std::span<const float> values, double tolerance) {
        float most = 0;
        for (float v : values) most = std::max(most, std::fabs(v));
        bool bytes = most <= 127;
        for (std::size_t i = 0; bytes && i < values.size(); ++i) bytes = values[i] == std::round(values[i]);
        std::string packed(bytes ? "" : std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
        if (bytes)
            for (float v : values) packed += static_cast<char>(static_cast<signed char>(std::lround(v)));
        const std::string file = short_name("d", packed) + ".bin";
        if (!fs::exists(folder_ / file)) write_file(folder_ / file, packed);
        text_ += fmt::format("{} {} {} {} 1 {} {}\n", word, offset, values.size(), bytes ? "i8" : "f32", file, tolerance);
    }

    const Target& target_;
    const fs::path& folder_;
    const bool sources_;
    std::string text_;
    int kernels_ = 0;
};

std::int64_t rounded(std::int64_t floats) { return (floats + 63) / 64 * 64; }

struct Program {
    Hash128 key;
    std::string what, text;
};

// The outputs that nests must compute. Schedules of one nest compute the same.
class References {
public:
    std::vector<float> output(const Term& nest, const std::vector<std::vector<float>>& operands) {
        const NestParts parts = nest_parts(nest);
        const Statement s = statement_of(parts.statement);
        const std::string key = parts.restore + to_string(Term("nest", {parts.statement, schedule_of(s, domain_of(nest))}));
        {
            const std::lock_guard lock(mutex_);
            if (const auto known = known_.find(key); known != known_.end()) return known->second;
        }
        std::vector<float> wanted = reference_output(nest, operands);
        const std::lock_guard lock(mutex_);
        return known_[key] = std::move(wanted);
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::vector<float>> known_;
};

Program nest_program(const Term& given, const Target& target, const fs::path& folder, bool sources, References& references, KernelCache& kernels) {
    const Term nest = complete(given);
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = kernels.compile(nest, target).kernel;
    const auto operands = sample_operands(s, 1);
    const auto wanted = references.output(nest, operands);
    ProgramText out(target, folder, sources);
    const int id = out.kernel(kernel);
    std::vector<std::int64_t> offsets;
    std::int64_t floats = 0;
    for (const KernelBuffer& p : kernel.parameters) offsets.push_back(floats), floats = rounded(floats + p.elements);
    out.memory(floats);
    for (std::size_t b = 1; b < s.buffers.size(); ++b) out.weights(offsets[b], kernel.parameters[b], operands[b]);
    std::vector<std::int64_t> arguments;
    for (int a : kernel.arguments) arguments.push_back(offsets[static_cast<std::size_t>(a)]);
    out.launch(id, arguments);
    // Elements that no instance computes stay 0, in memory and in the reference.
    out.check(offsets[0], to_storage(kernel.parameters[0], wanted), exact_on_whole_numbers(s) ? 0 : 1e-4);
    return {latency_key(target, nest), to_string(nest), out.text()};
}

// A number near `step` whose small multiples have few digits. Then kernels that round weights, and the runner that does not, take the same weights.
double short_step(double step) {
    int exponent = 0;
    const double digits = std::frexp(step, &exponent);
    return std::ldexp(std::round(digits * 8) / 8, exponent);
}

Drawn draw(std::vector<float>& values, std::uint64_t seed) {
    if (values.empty()) return {};
    double sum = 0, squares = 0, least = values[0], most = values[0];
    for (float v : values) sum += v, least = std::min<double>(least, v), most = std::max<double>(most, v);
    const double mean = sum / static_cast<double>(values.size());
    for (float v : values) squares += (v - mean) * (v - mean);
    const double wide = std::sqrt(3 * squares / static_cast<double>(values.size()));  // half the width of a uniform distribution of the same spread
    const double low = std::max(least, mean - wide), high = std::min(most, mean + wide);
    Drawn drawn{values.size(), seed, low, (high - low) / 255};
    if (const double step = short_step(drawn.step), first = std::round(low / step); step > 0 && first >= -290 && first <= 35)
        drawn.low = first * step, drawn.step = step;
    for (float& value : values) {  // as runtime/bundle_runner.cpp draws them
        std::uint64_t x = seed += 0x9e3779b97f4a7c15ull;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        value = static_cast<float>(drawn.low + drawn.step * static_cast<double>(x >> 56));
    }
    return drawn;
}

// What represents the constants of a plan, by step and operand, and by name.
struct DrawnPlan {
    std::vector<std::vector<Drawn>> operands;
    std::map<std::string, Drawn> constants;
};

DrawnPlan draw_constants(NetworkPlan& plan) {
    DrawnPlan all;
    std::uint64_t next = 1;
    for (NetworkPlan::Step& s : plan.steps) {
        all.operands.emplace_back();
        if (s.nest)
            for (Operand& o : s.nest->operands) all.operands.back().push_back(draw(o.constants, next++ << 32));
    }
    for (auto& [name, values] : plan.constants) all.constants[name] = draw(values, next++ << 32);
    return all;
}

// The output of the network on this machine, by the same plan.
std::vector<float> host_output(const ScheduledNetwork& network, const Target& target, const std::vector<Tensor>& inputs) {
    const Target host = find_target("host");
    ScratchFile folder(".network");
    NetworkPlan plan = plan_network(network.graph, network.weights, rounded_here(network.graph, network.schedules, target), host);
    draw_constants(plan);
    compile_plan(network.graph, std::move(plan), host, folder.path(), nullptr);
    LoadedNetwork loaded(folder.path());
    auto values = loaded.run(inputs)[0].values;
    fs::remove_all(folder.path());
    return values;
}

Program network_program(const ScheduledNetwork& network, const Target& target, const fs::path& folder, bool sources, KernelCache& kernels) {
    NetworkPlan plan = plan_network(network.graph, network.weights, network.schedules, target);
    const Hash128 key = latency_key(target, network_term(plan));
    const DrawnPlan drawn = draw_constants(plan);
    std::vector<Term> nests;
    const PlacedNetwork n = place_network(network.graph, std::move(plan), target, nullptr, nests, kernels);
    ProgramText out(target, folder, sources);
    for (const Kernel& k : n.kernels) out.kernel(k);
    const std::int64_t weights_at = rounded(n.arena);
    out.memory(weights_at + static_cast<std::int64_t>(n.weights.size()));
    auto where = [&](const PlacedOperand& o) { return o.constant ? weights_at + o.offset : o.offset; };
    for (const auto& [name, offset] : n.constants) out.drawn(drawn.constants.at(name)), out.place(weights_at + offset);
    for (std::size_t i = 0; i < n.steps.size(); ++i)
        for (std::size_t o = 0; o < drawn.operands[i].size(); ++o) {
            if (drawn.operands[i][o].count == 0) continue;
            const std::int64_t at = where(n.steps[i].operands[o]);
            const KernelBuffer& p = n.kernels[static_cast<std::size_t>(n.steps[i].kernel)].parameters[o];
            if (p.readers.empty() && !p.blocking.empty()) {
                out.load(at, std::span(n.weights).subspan(static_cast<std::size_t>(at - weights_at), static_cast<std::size_t>(p.elements)));
                continue;
            }
            out.drawn(drawn.operands[i][o]);
            if (p.readers.empty())
                out.place(at);
            else
                out.gather(at, p);
        }
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < network.graph.inputs.size(); ++i) {
        inputs.push_back(normal_tensor(network.graph.inputs[i].shape, 1, network.graph.inputs[i].name));
        out.load(n.input_offsets[i], inputs.back().values);
    }
    for (const PlacedStep& s : n.steps) {
        if (s.kernel == -2) throw UserError("node '" + s.site + "' is an ONNX operator that loopegg's own code runs, and that code is not for GPUs");
        if (s.kernel < 0) {
            out.copy(where(s.operands[0]), where(s.operands[1]), s);
            continue;
        }
        std::vector<std::int64_t> arguments;
        for (int a : n.kernels[static_cast<std::size_t>(s.kernel)].arguments) arguments.push_back(where(s.operands[static_cast<std::size_t>(a)]));
        out.launch(s.kernel, arguments);
    }
    out.check(where(n.output_places[0]), host_output(network, target, inputs), 1e-3);
    return {key, "network " + network.graph.name, out.text()};
}

void write_whole(const std::vector<Program>& programs, const Target& target, const fs::path& folder) {
    std::string text;
    nlohmann::json index = nlohmann::json::array();
    for (const Program& p : programs) {
        text += fmt::format("program {}\n{}end\n", p.key.hex(), p.text);
        index.push_back({{"key", p.key.hex()}, {"what", p.what}});
    }
    const std::string id = hash_of(text).hex();  // the text names files by a hash of their content, so this id covers the whole bundle
    write_file(folder / "bundle.txt", fmt::format("loopegg-bundle 3 {} {} {}\n", target.name, target.architecture(), id) + text);
    write_file(folder / "index.json", nlohmann::json{{"target", target.name}, {"id", id}, {"programs", index}}.dump(1) + "\n");
    const fs::path runtime = shipped("backends/runtime");
    for (const char* file : {"bundle_runner.cpp", "gpu_program.h", "cuda_driver.h", "run_bundle.sh"}) write_file(folder / file, read_file(runtime / file));
    fs::permissions(folder / "run_bundle.sh", fs::perms::owner_exec, fs::perm_options::add);
}

}  // namespace

BundleReport write_bundle(std::span<const Term> nests, std::span<const ScheduledNetwork> networks, const Target& target, const fs::path& folder,
                          const BundleOptions& options) {
    if (!target.gpu()) throw UserError("bundles are made for GPU targets; '" + target.name + "' is a CPU: carry the folder that 'loopegg compile' writes");
    fs::create_directories(folder);
    References references;
    KernelCache kernels;                                     // a kernel of a network may be a program of its own as well, or be in another network
    const std::size_t all = networks.size() + nests.size();  // networks come first, because each takes as long as many nests
    std::vector<Program> programs(all);
    std::vector<std::string> why(all);
    std::atomic<std::size_t> next{0}, done{0};
    std::mutex telling;
    const auto tell = [&] {
        const std::lock_guard lock(telling);
        if (options.progress) options.progress(++done, all);
    };
    run_together(processors(), [&](std::size_t) {
        for (std::size_t i = next++; i < all; i = next++, tell()) {
            if (i < networks.size()) {
                programs[i] = network_program(networks[i], target, folder, options.sources, kernels);
                continue;
            }
            const Term& nest = nests[i - networks.size()];
            try {
                programs[i] = nest_program(nest, target, folder, options.sources, references, kernels);
            } catch (const UserError& e) {
                why[i] = std::string(e.what()) + ": " + to_string(nest);
            }
        }
    });
    std::rotate(programs.begin(), programs.begin() + static_cast<std::ptrdiff_t>(networks.size()), programs.end());  // nests are run first
    BundleReport report;
    for (const std::string& w : why)
        if (!w.empty()) report.left_out.push_back(w);
    std::set<Hash128> known;
    std::erase_if(programs, [&](const Program& p) { return p.what.empty() || !known.insert(p.key).second; });
    write_whole(programs, target, folder);
    report.programs = static_cast<int>(programs.size());
    return report;
}

namespace {

Hash128 key_of(const std::string& hex) {
    Hash128 key;
    key.high = std::stoull(hex.substr(0, 16), nullptr, 16), key.low = std::stoull(hex.substr(16), nullptr, 16);
    return key;
}

std::vector<std::string> words_of(std::string_view line, std::size_t most) {
    std::vector<std::string> words;
    while (!line.empty() && words.size() < most) {
        const std::size_t space = words.size() + 1 == most ? line.npos : line.find(' ');
        words.emplace_back(line.substr(0, space));
        line = space == line.npos ? std::string_view() : line.substr(space + 1);
    }
    return words;
}

// One line of results.txt: KEY ok MEDIAN SPREAD REPEATS, KEY wrong HOW, or KEY failed WHY.
BundleResult read_result(const Position& where, std::string_view line, const std::map<std::string, std::string>& programs, const std::string& target) {
    const std::vector<std::string> words = words_of(line, 3);
    const auto program = words.empty() ? programs.end() : programs.find(words[0]);
    if (program == programs.end())
        throw UserError(
            Diagnostic{"expected the key of a program of this bundle, but found '" + terminal_text(words.empty() ? "" : words[0].substr(0, 60)) + "'", where,
                       "its programs are named in index.json"});
    if (words.size() < 3 || (words[1] != "ok" && words[1] != "wrong" && words[1] != "failed"))
        throw UserError(Diagnostic{"expected 'ok' with a time, 'wrong' or 'failed' with a reason after the key", where});
    BundleResult r{key_of(words[0]), program->second, words[1] == "ok", {}};
    if (!r.right) {
        r.measured.why = (words[1] == "wrong" ? "wrong output: " : "") + terminal_text(words[2]), r.measured.own = words[1] == "wrong";
        return r;
    }
    const std::vector<std::string> numbers = words_of(words[2], 4);
    const bool three = numbers.size() == 3;
    const auto median_ms = three ? number_in<double>(numbers[0]) : std::nullopt, iqr_ms = three ? number_in<double>(numbers[1]) : std::nullopt;
    const auto repeats = three ? number_in<int>(numbers[2]) : std::nullopt;
    if (!median_ms || !iqr_ms || !repeats)
        throw UserError(
            Diagnostic{"expected a median and a spread in milliseconds and a number of repeats, but found '" + terminal_text(words[2]) + "'", where});
    if (!is_valid_latency(*median_ms, *iqr_ms, *repeats) || *repeats < 1)
        throw UserError(Diagnostic{"these are impossible times: '" + terminal_text(words[2]) + "'", where});
    r.measured.latency = Latency{*median_ms, *iqr_ms, *repeats, target, true, false};
    return r;
}

}  // namespace

std::vector<BundleResult> read_results(const fs::path& folder) {
    const JsonView index = read_json(read_source(folder / "index.json"));
    const std::string target = index.at("target").text(), id = index.at("id").text();
    std::map<std::string, std::string> programs;
    for (const JsonView& p : index.at("programs").items()) {
        const std::string& key = p.at("key").text();
        if (!is_hex_of_hash(key)) p.at("key").fail("expected a key of 32 hexadecimal digits");
        programs[key] = p.at("what").text();
    }
    const SourcePtr source = read_source(folder / "results.txt", 64 << 20);
    const std::string& text = source->text;
    std::vector<BundleResult> all;
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
        const std::string_view line = std::string_view(text).substr(at, end - at);
        if (at > 0)
            all.push_back(read_result({source, at}, line, programs, target));
        else if (line != "loopegg-results 1 " + id)
            throw UserError(Diagnostic{"these are not the results of this bundle: expected 'loopegg-results 1 " + id + "'",
                                       {source, at},
                                       "bring back the results.txt that run_bundle.sh wrote in this folder"});
    }
    return all;
}

std::vector<BundleResult> import_bundle(const fs::path& folder, const StoreAddress& address) {
    const std::vector<BundleResult> all = read_results(folder);  // all results are read before any is kept
    const std::string target = read_json(read_source(folder / "index.json")).at("target").text();
    LatencyStore store(address);
    for (const BundleResult& r : all) store.put(r.key, target, r.what, r.measured);
    return all;
}

void check_runner(const std::string& command) {
    if (command.find("{}") == command.npos) throw UsageError("--runner: expected a command with {} in it, which is replaced with the folder of the bundle");
}

void run_bundle(const std::string& runner, const fs::path& folder) {
    check_runner(runner);
    const std::string command = with_folder(runner, folder);
    const int status = std::system(("(" + command + ") 1>&2").c_str());  // ignored: programs that failed make the command fail, but the other results count
    if (!fs::exists(folder / "results.txt"))
        throw UserError(Diagnostic{fmt::format("--runner: '{}' ended with status {} and left no results.txt in {}", command, status, folder.string()),
                                   {},
                                   "what was measured so far is kept; the same command resumes from there"});
}

}  // namespace loopegg
