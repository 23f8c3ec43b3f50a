// A compiled network as a library for servers: contexts, many threads, several networks in one process.
#include <catch2/catch.hpp>

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backends/network/network.hpp"
#include "backends/network/network_memory.hpp"
#include "backends/network/network_plan.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

struct Folder {
    ScratchFile name{".network"};
    ~Folder() { std::filesystem::remove_all(name.path()); }
    const std::filesystem::path& path() const { return name.path(); }
};

// Three convolutions that read one value, and what joins them.
Model branches(const std::string& name, std::uint64_t seed = 0) {
    ScratchFile file(".json");
    write_file(file.path(), R"({"loopegg": 1, "name": ")" + name + R"(", "inputs": [{"name": "x", "shape": [1, 8, 14, 14]}], "outputs": ["fc"], "nodes": [
  {"name": "a", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 16, "kernel": 3, "padding": 1}},
  {"name": "b", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 16, "kernel": 1}},
  {"name": "c", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 16, "kernel": 5, "padding": 2}},
  {"name": "cat", "op": "concat", "inputs": ["a", "b", "c"]},
  {"name": "d", "op": "conv2d", "inputs": ["cat"], "attrs": {"out_channels": 24, "kernel": 3, "padding": 1}},
  {"name": "r", "op": "relu", "inputs": ["d"]},
  {"name": "g", "op": "global_avg_pool", "inputs": ["r"]},
  {"name": "f", "op": "flatten", "inputs": ["g"]},
  {"name": "fc", "op": "linear", "inputs": ["f"], "attrs": {"out_features": 10}}]})");
    return load_model(file.path().string(), seed);
}

void compile(const Model& m, const Folder& folder) { compile_network({m.graph, m.weights, {}}, find_target("host"), folder.path()); }

// network.so by its own functions, as a program has it that was built with network.h.
class Library {
public:
    explicit Library(const std::filesystem::path& folder)
        : library_(dlopen((folder / "network.so").c_str(), RTLD_NOW | RTLD_LOCAL)), prefix_(read_ports(folder).prefix) {
        REQUIRE(library_);
    }
    ~Library() { dlclose(library_); }
    template <class F>
    F* entry(const std::string& name) const {
        return reinterpret_cast<F*>(dlsym(library_, (prefix_ + name).c_str()));
    }
    void* open(const std::filesystem::path& weights) const { return entry<void*(const char*)>("open")(weights.c_str()); }
    void close(void* network) const { entry<void(void*)>("close")(network); }
    void* create(void* network, int threads) const { return entry<void*(void*, int)>("create")(network, threads); }
    void destroy(void* context) const { entry<void(void*)>("destroy")(context); }
    std::vector<float> run(void* context, const std::vector<float>& input) const {
        std::vector<float> output(static_cast<std::size_t>(entry<long(int)>("output_size")(0)));
        const float* from[]{input.data()};
        float* to[]{output.data()};
        if (entry<int(void*, const float* const*, float* const*)>("run")(context, from, to)) return {};
        return output;
    }

private:
    void* library_;
    std::string prefix_;
};

std::vector<float> input_of(std::uint64_t seed) { return normal_tensor({1, 8, 14, 14}, seed, "x").values; }

std::size_t threads_here() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

TEST_CASE("eight threads call one network, each with its own context", "[flow]") {
    Folder folder;
    compile(branches("served"), folder);
    const Library library(folder.path());
    void* const network = library.open(folder.path() / "weights.bin");
    REQUIRE(network);
    void* const first = library.create(network, 1);
    std::vector<std::vector<float>> wanted;
    for (std::uint64_t seed = 0; seed < 8; ++seed) wanted.push_back(library.run(first, input_of(seed)));
    CHECK(wanted[0] != wanted[1]);
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 8; ++caller)
        callers.emplace_back([&, caller] {
            void* const context = library.create(network, 1 + caller % 3);
            for (int n = 0; n < 60; ++n) {
                const auto seed = static_cast<std::size_t>((caller + n) % 8);
                if (library.run(context, input_of(seed)) != wanted[seed]) ++wrong;
            }
            library.destroy(context);
        });
    for (std::thread& t : callers) t.join();
    CHECK(wrong == 0);
    library.close(network);
    CHECK(library.run(first, input_of(3)) == wanted[3]);  // its context keeps the weights
    library.destroy(first);
}

TEST_CASE("two networks are linked into one program", "[flow]") {
    Folder one, two;
    compile(branches("first", 1), one);
    compile(branches("second.network", 2), two);
    const std::string a = one.path().string(), b = two.path().string();
    write_file(one.path() / "main.c", "#include <stdio.h>\n#include \"" + a + "/network.h\"\n#include \"" + b + R"(/network.h"
int main(int argc, char** argv) {
    static float in[1568], x[10], y[10];
    const float* inputs[] = {in};
    float *to_x[] = {x}, *to_y[] = {y};
    loopegg_network *first = loopegg_first_open(argv[argc - 2]), *second = loopegg_second_network_open(argv[argc - 1]);
    if (loopegg_first_abi() != LOOPEGG_ABI || !first || !second) return 1;
    if (loopegg_first_create(second, 1) || loopegg_second_network_create(first, 1)) return 2; /* of another library */
    loopegg_context *c = loopegg_first_create(first, 2), *d = loopegg_second_network_create(second, 2);
    if (!c || !d || loopegg_first_threads(c) != 2) return 3;
    for (int i = 0; i < 1568; ++i) in[i] = 1.0f;
    if (loopegg_first_run(c, inputs, to_x) || loopegg_second_network_run(d, inputs, to_y)) return 4;
    for (int i = 0; i < 10; ++i) printf("%.9g\n", x[i]);
    for (int i = 0; i < 10; ++i) printf("%.9g\n", y[i]);
    loopegg_first_destroy(c), loopegg_second_network_destroy(d);
    loopegg_first_close(first), loopegg_second_network_close(second);
    return 0;
})");
    run_or_throw({"cc", "-Wall", "-Wextra", "-Werror", a + "/main.c", a + "/network.so", b + "/network.so", "-o", a + "/main"}, "building");
    std::vector<float> got, wanted;
    for (const std::string& line : split(run_or_throw({a + "/main", a + "/weights.bin", b + "/weights.bin"}, "running"), '\n'))
        if (!line.empty()) got.push_back(std::stof(line));
    for (const Folder* folder : {&one, &two}) {
        const std::vector<Tensor> inputs{{{1, 8, 14, 14}, std::vector<float>(1568, 1.0f)}};
        const auto output = LoadedNetwork(folder->path()).run(inputs);
        wanted.insert(wanted.end(), output[0].values.begin(), output[0].values.end());
    }
    CHECK(got == wanted);
    CHECK(!std::equal(got.begin(), got.begin() + 10, got.begin() + 10));
}

TEST_CASE("a network shows the names of network.h alone", "[flow]") {
    Folder folder;
    compile(branches("shown"), folder);
    const std::string names = run_or_throw({"nm", "-D", "--defined-only", "-j", (folder.path() / "network.so").string()}, "reading names");
    std::size_t count = 0;
    for (const std::string& name : split(names, '\n')) {
        CAPTURE(name);
        CHECK((name.empty() || name.starts_with("loopegg_shown_")));
        count += !name.empty();
    }
    CHECK(count >= 12);
}

TEST_CASE("a network is loaded and unloaded many times, and nothing stays", "[flow]") {
    Folder folder;
    compile(branches("again"), folder);
    const std::size_t before = threads_here();
    const std::vector<float> input = input_of(1);
    std::vector<float> first;
    for (int n = 0; n < 100; ++n) {
        const Library library(folder.path());
        void* const network = library.open(folder.path() / "weights.bin");
        void* const context = library.create(network, 3);
        const std::vector<float> output = library.run(context, input);
        if (first.empty()) first = output;
        REQUIRE((!output.empty() && output == first));
        library.destroy(context);
        library.close(network);
    }
    CHECK(threads_here() == before);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) CHECK(line.find(folder.path().filename().string()) == std::string::npos);
}

TEST_CASE("steps that need nothing of each other are one region") {
    const Model m = branches("regions");
    NetworkPlan plan = plan_network(m.graph, m.weights, {}, find_target("host"));
    const std::vector<StepRegion> regions = step_regions(plan);
    REQUIRE(regions.size() == plan.steps.size());
    std::map<std::string, StepRegion> of;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        CHECK((regions[i].first <= static_cast<int>(i) && static_cast<int>(i) < regions[i].end));
        if (plan.steps[i].nest) of[plan.steps[i].nest->site] = regions[i];
    }
    CHECK((of.at("a").first == of.at("b").first && of.at("b").first == of.at("c").first));
    CHECK(of.at("d").first >= of.at("a").end);
    CHECK(of.at("fc").first >= of.at("d").end);
}
