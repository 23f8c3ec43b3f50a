// Runs a loopegg bundle: loads cubins with the CUDA driver, checks every output, times what is right. Needs cuda.h and libcuda alone.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Failure {
    std::string words;
};
void must(CUresult r, const char* doing) {
    if (r == CUDA_SUCCESS) return;
    const char* name = nullptr;
    cuGetErrorName(r, &name);
    throw Failure{std::string(doing) + ": " + (name ? name : "unknown")};
}
#define MUST(call) must(call, #call)

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
        if (format == "i8") v[i] = static_cast<float>(static_cast<signed char>(bytes[i]) * step);
        else v[i] = reinterpret_cast<const float*>(bytes.data())[i];
    }
    return v;
}

struct KernelEntry {
    CUfunction function;
    unsigned grid[3], block[3];
};
struct Step {
    int kernel = -1;   // -1: a copy
    std::vector<CUdeviceptr> arguments;
    long to = 0, from = 0;
    std::vector<long> dims;
};
struct Check {
    long offset, count;
    std::vector<float> wanted;
    double tolerance;
};

struct Program {
    std::string key;
    CUdeviceptr memory = 0;
    long size = 0;
    std::map<int, KernelEntry> kernels;
    std::vector<CUmodule> modules;
    std::vector<Step> steps;
    std::vector<Check> checks;

    CUdeviceptr at(long offset) const { return memory + static_cast<CUdeviceptr>(offset) * sizeof(float); }
    void copy(long to, long from, const long* d, std::size_t rank, CUstream stream) const {
        if (rank == 1 && d[1] == 1 && d[2] == 1) {
            MUST(cuMemcpyDtoDAsync(at(to), at(from), static_cast<std::size_t>(d[0]) * sizeof(float), stream));
            return;
        }
        if (rank == 2 && d[4] == 1 && d[5] == 1) {   // rows
            CUDA_MEMCPY2D c{};
            c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
            c.srcDevice = at(from), c.dstDevice = at(to);
            c.srcPitch = static_cast<std::size_t>(d[2]) * sizeof(float), c.dstPitch = static_cast<std::size_t>(d[1]) * sizeof(float);
            c.WidthInBytes = static_cast<std::size_t>(d[3]) * sizeof(float), c.Height = static_cast<std::size_t>(d[0]);
            MUST(cuMemcpy2DAsync(&c, stream));
            return;
        }
        if (rank == 1) {   // elements one after another, as rows of one
            const long as_rows[] = {d[0], d[1], d[2], 1, 1, 1};
            return copy(to, from, as_rows, 2, stream);
        }
        for (long i = 0; i < d[0]; ++i) copy(to + i * d[1], from + i * d[2], d + 3, rank - 1, stream);
    }
    void run(CUstream stream) const {
        for (const Step& s : steps) {
            if (s.kernel < 0) {
                copy(s.to, s.from, s.dims.data(), s.dims.size() / 3, stream);
                continue;
            }
            const KernelEntry& k = kernels.at(s.kernel);
            std::vector<void*> arguments;
            for (const CUdeviceptr& a : s.arguments) arguments.push_back(const_cast<CUdeviceptr*>(&a));
            MUST(cuLaunchKernel(k.function, k.grid[0], k.grid[1], k.grid[2], k.block[0], k.block[1], k.block[2], 0, stream, arguments.data(), nullptr));
        }
    }
    void release() {
        for (CUmodule m : modules) cuModuleUnload(m);
        if (memory) cuMemFree(memory);
        *this = Program{};
    }
};

std::string verdict(const Program& p) {
    for (const Check& c : p.checks) {
        std::vector<float> got(static_cast<std::size_t>(c.count));
        MUST(cuMemcpyDtoH(got.data(), p.at(c.offset), got.size() * sizeof(float)));
        double scale = 1;
        for (float w : c.wanted) scale = std::max(scale, static_cast<double>(std::fabs(w)));
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!(std::fabs(static_cast<double>(got[i]) - c.wanted[i]) <= c.tolerance * scale))
                return "wrong element " + std::to_string(i) + " is " + std::to_string(got[i]) + " and should be " + std::to_string(c.wanted[i]);
    }
    return "";
}

// The whole program as one graph, so that times are the device's and not the launching thread's.
std::vector<double> times(const Program& p, CUstream stream) {
    CUgraph graph;
    CUgraphExec ready;
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    p.run(stream);
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&ready, graph, 0));
    CUevent begin, end;
    MUST(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&end, CU_EVENT_DEFAULT));
    auto batch = [&](int n) {
        MUST(cuEventRecord(begin, stream));
        for (int i = 0; i < n; ++i) MUST(cuGraphLaunch(ready, stream));
        MUST(cuEventRecord(end, stream));
        MUST(cuEventSynchronize(end));
        float ms = 0;
        MUST(cuEventElapsedTime(&ms, begin, end));
        return static_cast<double>(ms) / n;
    };
    batch(3);
    const int n = std::max(1, std::min(1000, static_cast<int>(2.0 / std::max(1e-4, batch(3)))));
    std::vector<double> all;
    for (int i = 0; i < 21; ++i) all.push_back(batch(n));
    cuEventDestroy(begin), cuEventDestroy(end), cuGraphExecDestroy(ready), cuGraphDestroy(graph);
    std::sort(all.begin(), all.end());
    return all;
}

constexpr unsigned most_seconds = 60;   // for one program
constexpr int start_again = 3, no_device = 4;   // how a process of programs ends, if not well

// Reads the bundle line by line and answers its programs, one line each, but for the first `answered`.
class Runner {
public:
    Runner(const std::string& results, int answered) : out_(results, std::ios::app), skip_(answered) {
        CUdevice device;
        CUcontext context;
        MUST(cuInit(0));
        MUST(cuDeviceGet(&device, 0));
        MUST(cuDevicePrimaryCtxRetain(&context, device));
        MUST(cuCtxSetCurrent(context));
        MUST(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
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
        alarm(most_seconds);
    }

    void prepare(const std::string& word, std::istream& words) {
        Program& p = program_;
        if (word == "memory") {
            words >> p.size;
            MUST(cuMemAlloc(&p.memory, static_cast<std::size_t>(p.size) * sizeof(float) + 256));
            MUST(cuMemsetD8(p.memory, 0, static_cast<std::size_t>(p.size) * sizeof(float)));
        } else if (word == "kernel") {
            int id;
            std::string cubin, symbol;
            KernelEntry k{};
            CUmodule module;
            words >> id >> cubin >> symbol >> k.grid[0] >> k.grid[1] >> k.grid[2] >> k.block[0] >> k.block[1] >> k.block[2];
            MUST(cuModuleLoadData(&module, file_bytes(cubin).data()));
            p.modules.push_back(module);
            MUST(cuModuleGetFunction(&k.function, module, symbol.c_str()));
            p.kernels[id] = k;
        } else if (word == "gather") {
            gather(words);
        } else if (word == "load" || word == "check" || word == "logical") {
            long offset, count;
            std::string format, file;
            double step, tolerance;
            words >> offset >> count >> format >> step >> file >> tolerance;
            std::vector<float> v = floats(count, format, step, file);
            if (word == "logical") logical_ = std::move(v);
            else if (word == "load") MUST(cuMemcpyHtoD(p.at(offset), v.data(), v.size() * sizeof(float)));
            else p.checks.push_back({offset, count, std::move(v), tolerance});
        } else if (word == "launch") {
            Step s;
            std::size_t n;
            words >> s.kernel >> n;
            for (long o; s.arguments.size() < n && words >> o;) s.arguments.push_back(p.at(o));
            p.steps.push_back(s);
        } else if (word == "copy") {
            Step s;
            std::size_t rank;
            words >> s.to >> s.from >> rank;
            for (long d; s.dims.size() < 3 * rank && words >> d;) s.dims.push_back(d);
            p.steps.push_back(s);
        }
    }

    // Weights in the order in which a schedule visits them, from the last logical values: digits of mixed radix, innermost fastest.
    void gather(std::istream& words) {
        long offset, rank, atoms, all = 1;
        words >> offset >> rank >> atoms;
        auto numbers = [&](long n) {
            std::vector<long> v(static_cast<std::size_t>(n));
            for (long& x : v) words >> x;
            return v;
        };
        const std::vector<long> shape = numbers(rank), extents = numbers(atoms);
        std::vector<long> at, digit(extents.size(), 0);
        std::vector<std::vector<long>> coefficients;
        for (long d = 0; d < rank; ++d) at.push_back(numbers(1)[0]), coefficients.push_back(numbers(atoms));
        if (!words) throw Failure{"a line of the bundle cannot be read"};
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
        MUST(cuMemcpyHtoD(program_.at(offset), out.data(), out.size() * sizeof(float)));
    }

    void end() {
        try {
            if (broken_.empty()) {
                program_.run(stream_);
                MUST(cuStreamSynchronize(stream_));
                broken_ = verdict(program_);
            }
            if (!broken_.empty()) return failed(broken_);
            const std::vector<double> t = times(program_, stream_);
            out_ << program_.key << " ok " << t[10] << " " << t[15] - t[5] << " " << t.size() << std::endl;
        } catch (const Failure& f) {   // an illegal address, say, which breaks the context for all that come after
            failed(f.words);
            std::_Exit(start_again);
        }
    }
    void failed(const std::string& why) { out_ << program_.key << " failed " << why << std::endl; }

    CUstream stream_ = nullptr;
    Program program_;
    std::vector<float> logical_;
    std::ofstream out_;
    int skip_;
    bool skipping_ = false;
    std::string broken_;
};

std::vector<std::string> program_keys(const std::string& bundle) {
    std::ifstream in(bundle);
    std::string line, word, key;
    std::getline(in, line);
    if (line.rfind("loopegg-bundle 1 ", 0) != 0) throw Failure{bundle + " is no bundle that this runner knows"};
    std::vector<std::string> keys;
    while (std::getline(in, line))
        if (std::istringstream words(line); words >> word >> key && word == "program") keys.push_back(key);
    return keys;
}

std::size_t lines_with(const std::string& file, const std::string& text) {
    std::ifstream in(file);
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);) count += line.find(text) != line.npos;
    return count;
}

// Programs run in a process of their own, so that one that crashes, hangs or breaks the context costs itself alone. Says what became of the process if it left
// the program in hand without an answer.
std::string run_apart(const std::string& bundle, const std::string& results, int answered) {
    const pid_t child = fork();
    if (child < 0) throw Failure{"no process can be started"};
    if (child == 0) {
        try {
            std::ifstream in(bundle);
            Runner(results, answered).run(in);
            std::_Exit(0);
        } catch (const Failure& f) {
            std::fprintf(stderr, "%s\n", f.words.c_str());
            std::_Exit(no_device);
        }
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "it takes more than " + std::to_string(most_seconds) + " s"
                                           : "it crashed by signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) == no_device) throw Failure{"the programs cannot be run here"};
    return "";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: bundle_runner bundle.txt results.txt\n"), 2;
    const std::string bundle = argv[1], results = argv[2];
    try {
        const std::vector<std::string> keys = program_keys(bundle);
        std::ofstream(results, std::ios::trunc);
        for (std::size_t answered = 0; answered < keys.size(); answered = lines_with(results, "")) {
            std::string why = run_apart(bundle, results, static_cast<int>(answered));
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
