// Runs a loopegg bundle: loads cubins with the CUDA driver, checks every output, and times what is right. Needs the driver and a C++ compiler alone.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gpu_program.h"

namespace {

struct Failure {
    std::string words;
};
loopegg_cuda cuda;  // found before anything is run
void must(CUresult r, const char* doing) {
    if (r == CUDA_SUCCESS) return;
    const char* name = nullptr;
    cuda.error_name(r, &name);
    throw Failure{std::string(doing) + ": " + (name ? name : "unknown")};
}

std::string file_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Failure{"cannot read " + path};
    std::stringstream s;
    s << in.rdbuf();
    return s.str();
}

std::vector<float> floats(long count, const std::string& format, double step, const std::string& file) {
    const std::string bytes = file_bytes(file);
    std::vector<float> v(static_cast<std::size_t>(count));
    if (bytes.size() != v.size() * (format == "i8" ? 1 : 4)) throw Failure{file + " has another size"};
    for (std::size_t i = 0; i < v.size(); ++i) {
        if (format == "i8")
            v[i] = static_cast<float>(static_cast<signed char>(bytes[i]) * step);
        else
            v[i] = reinterpret_cast<const float*>(bytes.data())[i];
    }
    return v;
}

// The nearest number of 16 bits, and where two are as near, the even one.
std::uint32_t rounded_to_16_bits(float value, bool fp16) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return sign | 0x7fc0u | (fp16 ? 0x7fffu : 0u);
    if (!fp16) return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const float magnitude = std::fabs(value);
    if (magnitude >= 65520.0f) return sign | 0x7c00u;
    if (magnitude < 6.103515625e-5f) return sign | static_cast<std::uint32_t>(std::nearbyint(magnitude * 16777216.0f));  // denormals: whole numbers of 2^-24
    return sign | ((size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13);
}

// Two neighbours in each word, the first in its low half.
std::vector<float> in_words(const std::vector<float>& values, bool fp16) {
    std::vector<float> words(values.size() / 2);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::uint32_t word = rounded_to_16_bits(values[2 * i], fp16) | rounded_to_16_bits(values[2 * i + 1], fp16) << 16;
        std::memcpy(&words[i], &word, sizeof word);
    }
    return words;
}

// Draws weights as backends/network/bundle.cpp does, because a bundle does not carry them.
std::vector<float> drawn(long count, std::uint64_t seed, double low, double step) {
    std::vector<float> v(static_cast<std::size_t>(count));
    for (float& value : v) {
        std::uint64_t x = seed += 0x9e3779b97f4a7c15ull;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ x >> 27) * 0x94d049bb133111ebull;
        value = static_cast<float>(low + step * static_cast<double>(x >> 56));
    }
    return v;
}

struct Check {
    long offset, count;
    std::vector<float> wanted;
    double tolerance;
};

struct Program {
    std::string key;
    CUdeviceptr memory = 0;
    long size = 0;
    std::vector<gpu_kernel> kernels;
    std::vector<CUmodule> modules;
    std::vector<gpu_step> steps;
    std::deque<std::vector<CUdeviceptr>> arguments;  // of the steps; a deque, because their addresses must not change
    std::deque<std::vector<long>> dims;
    std::vector<Check> checks;

    CUdeviceptr at(long offset) const { return memory + static_cast<CUdeviceptr>(offset) * sizeof(float); }
    void put(long offset, const std::vector<float>& values) const {
        if (offset < 0 || offset + static_cast<long>(values.size()) > size) throw Failure{"values do not fit into the program's memory"};
        must(cuda.upload(at(offset), values.data(), values.size() * sizeof(float)), "uploading");
    }
    void run(CUstream stream) const { must(gpu_enqueue_all(&cuda, kernels.data(), steps.data(), static_cast<int>(steps.size()), stream), "launching"); }
    void release() {
        for (CUmodule m : modules) cuda.unload(m);
        if (memory) cuda.free_memory(memory);
        *this = Program{};
    }
};

std::string verdict(const Program& p) {
    for (const Check& c : p.checks) {
        std::vector<float> got(static_cast<std::size_t>(c.count));
        must(cuda.download(got.data(), p.at(c.offset), got.size() * sizeof(float)), "downloading");
        double scale = 1;
        for (float w : c.wanted) scale = std::max(scale, static_cast<double>(std::fabs(w)));
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!(std::fabs(static_cast<double>(got[i]) - c.wanted[i]) <= c.tolerance * scale))
                return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + " and should be " + std::to_string(c.wanted[i]);
    }
    return "";
}

// Runs the whole program as one graph, as a compiled network runs, so that times are those of the device and not of the launching thread. A program of few
// steps is in the graph several times: a step of a network follows another step, and the time of a graph of one step would mostly be that of launching it.
std::vector<double> times(const Program& p, CUstream stream, int repeats) {
    constexpr std::size_t steps_of_a_graph = 16;
    const std::size_t copies = (steps_of_a_graph + p.steps.size() - 1) / std::max<std::size_t>(1, p.steps.size());
    std::vector<gpu_step> steps;
    for (std::size_t i = 0; i < copies; ++i) steps.insert(steps.end(), p.steps.begin(), p.steps.end());
    CUgraphExec ready;
    must(gpu_record(&cuda, p.kernels.data(), steps.data(), static_cast<int>(steps.size()), stream, &ready), "recording");
    CUevent begin, end;
    must(cuda.event(&begin, 0), "making an event");
    must(cuda.event(&end, 0), "making an event");
    auto batch = [&](int n) {
        must(cuda.note(begin, stream), "timing");
        for (int i = 0; i < n; ++i) must(cuda.launch_graph(ready, stream), "launching");
        must(cuda.note(end, stream), "timing");
        must(cuda.await(end), "running");
        float ms = 0;
        must(cuda.elapsed(&ms, begin, end), "timing");
        return static_cast<double>(ms) / (n * static_cast<double>(copies));
    };
    batch(3);
    const int n = std::max(1, std::min(1000, static_cast<int>(2.0 / (static_cast<double>(copies) * std::max(1e-4, batch(3))))));
    std::vector<double> all;
    for (int i = 0; i < repeats; ++i) all.push_back(batch(n));
    cuda.end_event(begin), cuda.end_event(end), cuda.end_ready(ready);
    std::sort(all.begin(), all.end());
    return all;
}

constexpr unsigned max_seconds = 30;           // for one program
constexpr int start_again = 3, no_device = 4;  // exit codes of a process that runs programs and ends early

// Reads the bundle line by line and answers its programs, one line each, without the first `answered` programs.
class Runner {
public:
    Runner(const std::string& results, int answered, int repeats) : out_(results, std::ios::app), skip_(answered), repeats_(repeats) {
        CUdevice device;
        CUcontext context;
        must(cuda.init(0), "starting the driver");
        must(cuda.device(&device, 0), "finding a device");
        must(cuda.retain(&context, device), "using the device");
        must(cuda.push(context), "using the device");
        must(cuda.stream(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
    }

    void run(std::istream& in) {
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            std::string word;
            words >> word;
            if (word == "program") {
                skipping_ = skip_-- > 0;
                if (!skipping_) begin(words);
            } else if (skipping_) {
                continue;
            } else if (word == "end") {
                end();
            } else if (broken_.empty()) {
                try {
                    prepare(word, words);
                } catch (const Failure& f) {
                    broken_ = f.words;
                }
            }
        }
    }

private:
    void begin(std::istream& words) {
        program_.release();
        broken_.clear();
        words >> program_.key;
        alarm(max_seconds);
    }

    void prepare(const std::string& word, std::istream& words) {
        Program& p = program_;
        if (word == "memory") {
            words >> p.size;
            must(cuda.allocate(&p.memory, static_cast<std::size_t>(p.size) * sizeof(float) + 256), "allocating");
            must(cuda.fill(p.memory, 0, static_cast<std::size_t>(p.size) * sizeof(float)), "clearing");
        } else if (word == "kernel") {
            std::size_t id;
            std::string cubin, symbol;
            gpu_kernel k{};
            CUmodule module;
            words >> id >> cubin >> symbol >> k.grid[0] >> k.grid[1] >> k.grid[2] >> k.block[0] >> k.block[1] >> k.block[2];
            if (!words || id != p.kernels.size()) throw Failure{"a line of the bundle cannot be read"};
            must(cuda.load(&module, file_bytes(cubin).c_str()), "loading a kernel");
            p.modules.push_back(module);
            must(cuda.function(&k.function, module, symbol.c_str()), "finding a kernel");
            p.kernels.push_back(k);
        } else if (word == "gather") {
            gather(words);
        } else if (word == "drawn") {
            long count;
            std::uint64_t seed;
            double low, step;
            words >> count >> seed >> low >> step;
            if (!words || count < 0) throw Failure{"a line of the bundle cannot be read"};
            logical_ = drawn(count, seed, low, step);
        } else if (word == "place") {
            long offset = -1;
            words >> offset;
            p.put(offset, logical_);
        } else if (word == "load" || word == "check" || word == "logical") {
            long offset, count;
            std::string format, file;
            double step, tolerance;
            words >> offset >> count >> format >> step >> file >> tolerance;
            if (!words || count < 0) throw Failure{"a line of the bundle cannot be read"};
            std::vector<float> v = floats(count, format, step, file);
            if (word == "logical")
                logical_ = std::move(v);
            else if (word == "load")
                p.put(offset, v);
            else
                p.checks.push_back({offset, count, std::move(v), tolerance});
        } else if (word == "launch") {
            gpu_step s{};
            words >> s.kernel >> s.count;
            if (!words || s.kernel < 0 || s.kernel >= static_cast<int>(p.kernels.size()) || s.count < 0 || s.count > gpu_max_arguments)
                throw Failure{"a line of the bundle cannot be read"};
            p.arguments.emplace_back();
            for (const long o : numbers(words, s.count)) p.arguments.back().push_back(p.at(o));
            s.arguments = p.arguments.back().data();
            p.steps.push_back(s);
        } else if (word == "copy") {
            gpu_step s{};
            s.kernel = -1;
            const std::vector<long> places = numbers(words, 2);
            words >> s.count;
            p.arguments.push_back({p.at(places[0]), p.at(places[1])});
            p.dims.push_back(numbers(words, 3L * s.count));
            s.arguments = p.arguments.back().data(), s.dims = p.dims.back().data();
            p.steps.push_back(s);
        }
    }

    static std::vector<long> numbers(std::istream& words, long n) {
        std::vector<long> v(static_cast<std::size_t>(std::max(0L, n)));
        for (long& x : v) words >> x;
        if (!words || n < 0) throw Failure{"a line of the bundle cannot be read"};
        return v;
    }

    // Weights in the order in which a schedule visits them, from the last logical values: digits of mixed radix, innermost fastest.
    void gather(std::istream& words) {
        std::string kind;
        long offset, rank, atoms, all = 1;
        words >> kind >> offset >> rank >> atoms;
        if (!words || (kind != "float32" && kind != "fp16" && kind != "bf16")) throw Failure{"a line of the bundle cannot be read"};
        const std::vector<long> shape = numbers(words, rank), extents = numbers(words, atoms);
        std::vector<long> at, digit(extents.size(), 0);
        std::vector<std::vector<long>> coefficients;
        for (long d = 0; d < rank; ++d) at.push_back(numbers(words, 1)[0]), coefficients.push_back(numbers(words, atoms));
        for (long e : extents) all *= e;
        std::vector<float> out(static_cast<std::size_t>(all), 0.0f);
        for (float& value : out) {
            long position = 0;
            bool inside = true;
            for (std::size_t d = 0; d < at.size(); ++d) inside = inside && at[d] >= 0 && at[d] < shape[d], position = position * shape[d] + at[d];
            if (inside && position < static_cast<long>(logical_.size())) value = logical_[static_cast<std::size_t>(position)];
            for (std::size_t a = extents.size(); a-- > 0;) {
                ++digit[a];
                for (std::size_t d = 0; d < at.size(); ++d) at[d] += coefficients[d][a];
                if (digit[a] < extents[a]) break;
                for (std::size_t d = 0; d < at.size(); ++d) at[d] -= coefficients[d][a] * extents[a];
                digit[a] = 0;
            }
        }
        program_.put(offset, kind == "float32" ? out : in_words(out, kind == "fp16"));
    }

    void end() {
        try {
            if (!broken_.empty()) return failed(broken_);
            program_.run(stream_);
            must(cuda.wait(stream_), "running");
            if (const std::string wrong = verdict(program_); !wrong.empty()) {
                out_ << program_.key << " wrong " << wrong << std::endl;
                return;
            }
            const std::vector<double> t = times(program_, stream_, repeats_);
            out_ << program_.key << " ok " << t[t.size() / 2] << " " << t[3 * t.size() / 4] - t[t.size() / 4] << " " << t.size() << std::endl;
        } catch (const Failure& f) {  // for example an illegal address, which breaks the context for all programs that come after
            failed(f.words);
            std::_Exit(start_again);
        }
    }
    void failed(const std::string& why) { out_ << program_.key << " failed " << why << std::endl; }

    CUstream stream_ = nullptr;
    Program program_;
    std::vector<float> logical_;
    std::ofstream out_;
    int skip_, repeats_;
    bool skipping_ = false;
    std::string broken_;
};

struct Bundle {
    std::string id;                 // a hash of the content: results belong to one bundle
    std::vector<std::string> keys;  // of the programs
};
Bundle read_bundle(const std::string& file) {
    std::ifstream in(file);
    Bundle bundle;
    std::string line, word, version, target, architecture, key;
    std::getline(in, line);
    std::istringstream first(line);
    if (!(first >> word >> version >> target >> architecture >> bundle.id) || word != "loopegg-bundle" || version != "3")
        throw Failure{file + " is no bundle that this runner knows"};
    while (std::getline(in, line))
        if (std::istringstream words(line); words >> word >> key && word == "program") bundle.keys.push_back(key);
    return bundle;
}

// Keeps what an earlier run of this bundle answered. A line without an end, and results of another bundle, are not kept.
void keep_answers(const std::string& results, const Bundle& bundle) {
    const std::string head = "loopegg-results 1 " + bundle.id + "\n";
    std::string kept = head;
    std::ifstream in(results);
    std::string line;
    if (std::getline(in, line) && line + "\n" == head)
        for (std::size_t i = 0; i < bundle.keys.size() && std::getline(in, line) && !in.eof() && line.rfind(bundle.keys[i] + " ", 0) == 0; ++i)
            kept += line + "\n";
    in.close();
    std::ofstream(results, std::ios::trunc) << kept << std::flush;
}

std::size_t lines_with(const std::string& file, const std::string& text) {
    std::ifstream in(file);
    std::size_t count = 0;
    std::string line;
    for (std::getline(in, line); std::getline(in, line);) count += line.find(text) != line.npos;  // the first line names the bundle
    return count;
}

// Runs programs in a process of their own, so that a program that crashes, hangs or breaks the context does not affect the others. Says what became of the
// process if it ended without an answer for the current program.
std::string run_apart(const std::string& bundle, const std::string& results, int answered, int repeats) {
    const pid_t child = fork();
    if (child < 0) throw Failure{"no process can be started"};
    if (child == 0) {
        try {
            std::ifstream in(bundle);
            Runner(results, answered, repeats).run(in);
            std::_Exit(0);
        } catch (const Failure& f) {
            std::fprintf(stderr, "%s\n", f.words.c_str());
            std::_Exit(no_device);
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "it takes more than " + std::to_string(max_seconds) + " s"
                                           : "it crashed by signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) == no_device) throw Failure{"the programs cannot be run here"};
    return "";
}

}  // namespace

int main(int argc, char** argv) {
    const int repeats = argc == 4 ? std::atoi(argv[3]) : 21;
    if (argc < 3 || argc > 4 || repeats < 1) return std::fprintf(stderr, "usage: bundle_runner bundle.txt results.txt [REPEATS]\n"), 2;
    const std::string bundle = argv[1], results = argv[2];
    try {
        const Bundle read = read_bundle(bundle);
        const std::vector<std::string>& keys = read.keys;
        char why[300] = "";
        if (loopegg_find_cuda(&cuda, why, sizeof why) != 0) throw Failure{why};
        keep_answers(results, read);
        const std::size_t before = lines_with(results, "");
        if (before > 0) std::fprintf(stderr, "%zu programs were answered before; remove %s to run them again\n", before, results.c_str());
        for (std::size_t answered = before; answered < keys.size(); answered = lines_with(results, "")) {
            std::string why = run_apart(bundle, results, static_cast<int>(answered), repeats);
            const std::size_t now = lines_with(results, "");
            if (why.empty() && now == answered) why = "the bundle ends inside it";
            if (!why.empty() && now < keys.size()) std::ofstream(results, std::ios::app) << keys[now] << " failed " << why << std::endl;
        }
        const std::size_t right = lines_with(results, " ok ");
        std::printf("%zu of %zu programs right; times are in %s\n", right, keys.size(), results.c_str());
        return right == keys.size() ? 0 : 1;
    } catch (const Failure& f) {
        return std::fprintf(stderr, "%s\n", f.words.c_str()), 1;
    }
}
