// How much the float32 of bilinear algorithms errs, compared with that of direct convolution: compiled kernels against sums in float64.
//   bench_bilinear_error random LAYERS [RULES]              over so many random layers of each kernel that the algorithms of RULES take
//   bench_bilinear_error real LAYERS MODEL CIFAR [RULES]    over so many 3x3 layers of MODEL, whose inputs are activations of CIFAR-10's test images
//   bench_bilinear_error network MODEL CIFAR [RULES]        the outputs of the whole MODEL with an algorithm at each site that takes it, compared with
//                                                           LibTorch's
// One unit is 2^-24 of the largest sum of absolute values |weight * input| among the outputs of a layer, or of the largest |output|.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/network/network.hpp"
#include "backends/target/target_rules.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "fisher/data.hpp"
#include "graph/load.hpp"
#include "nest/domain/bilinear_nests.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

constexpr double unit = 1.0 / (1 << 24);
constexpr std::int64_t channels = 16;  // output channels of a layer: one does not depend on another

// A way to compute a convolution: by a pair of algorithms, or directly.
struct Form {
    std::string name;
    std::optional<BilinearPair> pair;
};
struct KernelSize {
    std::int64_t height, width;
    friend auto operator<=>(const KernelSize&, const KernelSize&) = default;
};

// By kernel: directly, with each algorithm in both directions, and with each in one direction.
std::map<KernelSize, std::vector<Form>> forms_of(const std::filesystem::path& rules) {
    std::map<KernelSize, std::vector<Form>> all;
    const auto add = [&](const std::string& name, const BilinearForm& down, const BilinearForm& along) {
        std::vector<Form>& forms = all[{down.taps(), along.taps()}];
        if (forms.empty()) forms.push_back({"directly", {}});
        forms.push_back({name, BilinearPair{down, along}});
    };
    const std::vector<NamedAlgorithm> known = check_rules(rules).algorithms;
    for (const NamedAlgorithm& a : known) {
        if (a.form.taps() == 1) continue;
        add(a.name, a.form, a.form);
        for (const NamedAlgorithm& one : known)
            if (one.form.taps() == 1) add(a.name, one.form, a.form), add(a.name, a.form, one.form);
    }
    return all;
}

struct Layer {  // stride 1, outputs as large as inputs
    KernelSize kernel;
    std::int64_t out, in, height, width;
    std::vector<float> weights, input;
    std::string statement() const {
        return fmt::format("(conv2d 1 1 {} {} {} {} {} {} 1 1 {} {} 1 1)", out, in, height, width, kernel.height, kernel.width, kernel.height / 2,
                           kernel.width / 2);
    }
};

// The kernels of one shape, each nest with its first schedule.
class Kernels {
public:
    Kernels(const Layer& layer, const Form& form) : pair_(form.pair) {
        static const Target host = find_target("host");
        static const auto rules = schedule_rules(host);
        const Term direct = nest_of(statement_of(parse_term(layer.statement())));
        std::vector<Term> nests{direct};
        if (pair_) {
            const auto row = bilinear_nests(direct, *pair_);
            nests = {row->input, row->products, row->output};
        }
        for (const Term& nest : nests) {
            kernels_.push_back(compile_nest(rules->schedules(nest, 1).front(), host, "k"));
            loaded_.push_back(std::make_unique<LoadedKernel>(kernels_.back()));
        }
    }

    std::vector<float> run(const Layer& layer) const {
        const std::vector<float> weights = pair_ ? bilinear_weights(*pair_, layer.weights) : layer.weights;
        std::vector<float> value = layer.input;
        for (std::size_t k = 0; k < kernels_.size(); ++k) {
            std::vector<std::vector<float>> operands;
            for (const KernelBuffer& b : kernels_[k].parameters)
                operands.push_back(b.name == "W" ? weights : b.name == "I" ? std::move(value) : std::vector<float>());
            value = kernel_output(kernels_[k], operands, std::cref(*loaded_[k]));
        }
        return value;
    }

private:
    std::optional<BilinearPair> pair_;
    std::vector<Kernel> kernels_;
    std::vector<std::unique_ptr<LoadedKernel>> loaded_;
};

struct Exact {
    std::vector<double> outputs, sizes;  // sizes: the sums of absolute values
};

Exact exact(const Layer& l) {
    const std::int64_t pixels = l.height * l.width, taps = l.kernel.height * l.kernel.width;
    Exact e{std::vector<double>(static_cast<std::size_t>(l.out * pixels)), std::vector<double>(static_cast<std::size_t>(l.out * pixels))};
    for (std::int64_t o = 0; o < l.out; ++o)
        for (std::int64_t c = 0; c < l.in; ++c)
            for (std::int64_t k = 0; k < taps; ++k) {
                const double w = l.weights[static_cast<std::size_t>((o * l.in + c) * taps + k)];
                const std::int64_t dy = k / l.kernel.width - l.kernel.height / 2, dx = k % l.kernel.width - l.kernel.width / 2;
                for (std::int64_t y = std::max<std::int64_t>(0, -dy); y < std::min(l.height, l.height - dy); ++y) {
                    const float* row = l.input.data() + (c * l.height + y + dy) * l.width + dx;
                    double *sum = e.outputs.data() + o * pixels + y * l.width, *size = e.sizes.data() + o * pixels + y * l.width;
                    for (std::int64_t x = std::max<std::int64_t>(0, -dx); x < std::min(l.width, l.width - dx); ++x)
                        sum[x] += w * row[x], size[x] += std::fabs(w * row[x]);
                }
            }
    return e;
}

struct Error {
    double largest = 0, of_output = 0, sum = 0;  // the largest in both units, the sum in the first
    std::int64_t layers = 0, outputs = 0;
    std::string where;
};

class Errors {
public:
    explicit Errors(const std::filesystem::path& rules) : forms_(forms_of(rules)) {}
    const std::map<KernelSize, std::vector<Form>>& forms() const { return forms_; }

    void add(const Layer& layer, const std::string& group, const std::string& what) {
        const Exact e = exact(layer);
        double size = 0, output = 0;
        for (std::size_t i = 0; i < e.outputs.size(); ++i) size = std::max(size, e.sizes[i]), output = std::max(output, std::fabs(e.outputs[i]));
        if (output == 0) return;
        for (const Form& form : forms_.at(layer.kernel)) {
            auto& kernels = kernels_[{layer.statement(), form.name}];
            if (!kernels) kernels = std::make_unique<Kernels>(layer, form);
            const std::vector<float> got = kernels->run(layer);
            double worst = 0, sum = 0;
            for (std::size_t i = 0; i < got.size(); ++i) {
                const double off = std::fabs(got[i] - e.outputs[i]);
                worst = std::max(worst, off), sum += off;
            }
            for (const std::string& row : {group, std::string("all")}) {
                Error& error = of_[{fmt::format("{}x{} {}", layer.kernel.height, layer.kernel.width, row), form.name}];
                if (worst / (unit * size) > error.largest) error.largest = worst / (unit * size), error.where = what;
                error.of_output = std::max(error.of_output, worst / (unit * output));
                error.sum += sum / (unit * size), error.outputs += static_cast<std::int64_t>(got.size()), ++error.layers;
            }
        }
    }

    void print() const {
        fmt::print("{:<24} {:<14} {:>7} {:>10} {:>9} {:>7} {:>12}  largest at\n", "layers", "", "n", "outputs", "largest", "mean", "of |output|");
        for (const auto& [key, e] : of_)
            fmt::print("{:<24} {:<14} {:>7} {:>10} {:>9.2f} {:>7.3f} {:>12.2f}  {}\n", key.first, key.second, e.layers, e.outputs, e.largest,
                       e.sum / static_cast<double>(e.outputs), e.of_output, e.where);
    }

private:
    std::map<KernelSize, std::vector<Form>> forms_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<Kernels>> kernels_;
    std::map<std::pair<std::string, std::string>, Error> of_;
};

// Inputs of random layers: normal, the same after a ReLU, and adversarial ones.
const char* const kinds[] = {"normal", "after a ReLU", "of one sign", "alternating signs", "wide range of sizes"};

Layer random_layer(std::mt19937_64& random, int kind, KernelSize kernel, std::int64_t in, std::int64_t side) {
    std::normal_distribution<double> normal;
    const std::int64_t taps = kernel.height * kernel.width;
    Layer layer{kernel,
                channels,
                in,
                side,
                side,
                std::vector<float>(static_cast<std::size_t>(channels * in * taps)),
                std::vector<float>(static_cast<std::size_t>(in * side * side))};
    for (float& w : layer.weights) w = static_cast<float>(normal(random) * std::sqrt(2.0 / static_cast<double>(taps * in)));  // He's
    const double spread = std::exp(normal(random));
    const std::int64_t period = 1 + static_cast<std::int64_t>(random() % 2);  // with 2, the signs of the row 0 -4 -4 1 1 0 of F(4,3)
    for (std::size_t i = 0; i < layer.input.size(); ++i) {
        const double v = normal(random);
        const std::int64_t x = static_cast<std::int64_t>(i) % side, y = static_cast<std::int64_t>(i) / side % side;
        const double sign = (x / period + y / period) % 2 ? -1 : 1;
        const double value[] = {v, std::max(v, 0.0), std::fabs(v), sign * (1 + 1e-3 * v), v * std::exp(3 * normal(random))};
        layer.input[i] = static_cast<float>(spread * value[kind]);
    }
    return layer;
}

void random_layers(int layers, Errors& errors) {
    std::mt19937_64 random(1);
    std::vector<std::pair<std::int64_t, std::int64_t>> shapes;  // input channels, side
    const std::int64_t sides[] = {4, 7, 8, 14, 16, 28, 32, 56};
    while (shapes.size() < 24) {
        const std::pair drawn(std::int64_t{16} << random() % 6, sides[random() % 8]);
        if (drawn.first * drawn.second * drawn.second <= 256 * 28 * 28 && std::find(shapes.begin(), shapes.end(), drawn) == shapes.end())
            shapes.push_back(drawn);
    }
    for (const auto& [kernel, forms] : errors.forms())
        for (int i = 0; i < layers; ++i) {
            const auto [in, side] = shapes[static_cast<std::size_t>(i / 5) % shapes.size()];
            errors.add(random_layer(random, i % 5, kernel, in, side), kinds[i % 5], fmt::format("{} channels of {}x{}", in, side, side));
        }
}

Tensor image_of(const Batch& data, std::int64_t image) {
    const std::int64_t size = element_count(data.shape) / data.shape[0];
    Shape shape = data.shape;
    shape[0] = 1;
    return {shape, std::vector<float>(data.images.begin() + image * size, data.images.begin() + (image + 1) * size)};
}

// Each layer computes some of its output channels for one image, and others for the next image.
void real_layers(const Model& model, const Batch& data, int layers, Errors& errors) {
    Graph graph = model.graph;
    std::vector<const Node*> sites;
    graph.outputs.clear();
    for (const auto& [name, nest] : fused_nests(model.graph, {}, find_target("host"))) {
        const Node& n = *model.graph.find(name);
        const bool same_size = n.shape.size() == 4 && n.shape[2] == n.input_shapes[0][2] && n.shape[3] == n.input_shapes[0][3];
        const BilinearPair& first = *errors.forms().at({3, 3})[1].pair;
        if (!same_size || n.shape[1] % channels != 0 || !bilinear_nests(nest, first)) continue;
        sites.push_back(&n);
        graph.outputs.push_back(n.inputs[0]);
    }
    if (sites.empty()) return;
    std::vector<Tensor> inputs;
    for (int i = 0; i < layers; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) % sites.size();
        const std::int64_t image = i / static_cast<int>(sites.size());
        if (at == 0) inputs = torch_runtime().forward(graph, model.weights, std::vector{image_of(data, image)}, NormMode::running);
        const Node& site = *sites[at];
        const Tensor& w = model.weights.at(site.name + ".weight");
        const std::int64_t in = w.shape[1], from = image * channels % w.shape[0] * in * 9, to = from + channels * in * 9;
        errors.add({{3, 3}, channels, in, site.shape[2], site.shape[3], {w.values.begin() + from, w.values.begin() + to}, inputs[at].values},
                   fmt::format("{}x{}", site.shape[2], site.shape[3]), fmt::format("{} of image {}", site.name, image));
    }
    fmt::print("{} has {} such layers, which read activations of {} images\n", model.graph.name, sites.size(),
               (layers - 1) / static_cast<int>(sites.size()) + 1);
}

// The whole network with a form at each site that takes it.
int network(const Model& model, const Batch& data, const std::vector<Form>& forms, int images) {
    const Target host = find_target("host");
    const auto rules = schedule_rules(host);
    for (const Form& form : forms) {
        Schedules rows;
        for (const auto& [site, nest] : fused_nests(model.graph, {}, host)) {
            auto row = form.pair ? bilinear_nests(nest, *form.pair) : std::nullopt;
            if (!row) continue;
            for (Term* each : {&row->input, &row->products, &row->output}) *each = rules->schedules(*each, 1).front();
            rows.emplace(site, bilinear_row(*form.pair, *row));
        }
        const ScratchFile folder(".network");
        compile_network({model.graph, model.weights, rows}, host, folder.path());
        double worst = 0;
        LoadedNetwork loaded(folder.path());
        for (std::int64_t image = 0; image < images; ++image) {
            const std::vector<Tensor> input{image_of(data, image)};
            const std::vector<float> got = loaded.run(input)[0].values;
            const std::vector<float> wanted = torch_runtime().forward(model.graph, model.weights, input, NormMode::running)[0].values;
            double difference = 0, scale = 0;
            for (std::size_t i = 0; i < got.size(); ++i)
                difference = std::max(difference, std::fabs(static_cast<double>(got[i]) - wanted[i])),
                scale = std::max(scale, std::fabs(static_cast<double>(wanted[i])));
            worst = std::max(worst, difference / scale);
        }
        fmt::print("{} {}, {} sites: at most {:.1e} of the largest output from LibTorch's, over {} images\n", model.graph.name, form.name, rows.size(), worst,
                   images);
        std::fflush(stdout);
        std::filesystem::remove_all(folder.path());
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    const bool own = argc > 2 && std::string_view(argv[argc - 1]).ends_with(".rules");
    Errors errors(own ? std::filesystem::path(argv[--argc]) : shipped("rules/algorithms.rules"));
    if (what == "random" && argc == 3) {
        random_layers(std::atoi(argv[2]), errors);
    } else if ((what == "real" && argc == 5) || (what == "network" && argc == 4)) {
        const Model model = load_model(argv[argc - 2]);
        const Batch images = load_splits(argv[argc - 1], model.graph, 512, 0).test;
        if (what == "network") return network(model, images, errors.forms().at({3, 3}), 32);
        real_layers(model, images, std::atoi(argv[2]), errors);
    } else {
        fmt::print(stderr, "usage: bench_bilinear_error random LAYERS [RULES] | real LAYERS MODEL CIFAR [RULES] | network MODEL CIFAR [RULES]\n");
        return 2;
    }
    errors.print();
    return 0;
}
