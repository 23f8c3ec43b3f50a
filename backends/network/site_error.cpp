#include "backends/network/site_error.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "backends/kernel/loaded_kernel.hpp"
#include "backends/network/network_source.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/value.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;
using NamedOperands = std::map<std::string, std::vector<float>>;

constexpr int sampled_outputs = 192;

// Sums and maxima with constants do not enlarge an error.
bool keeps_errors(const Term& finish) {
    if (!finish || finish.size() == 0) return true;
    const std::string& op = finish.op().text();
    return (op == "+" || op == "relu" || op == "relu6") && std::all_of(finish.children().begin(), finish.children().end(), keeps_errors);
}

std::optional<std::size_t> place_of(const Shape& shape, const std::vector<Affine>& index, std::span<const std::int64_t> iterators) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::int64_t i = index[d].at(iterators);
        if (i < 0 || i >= shape[d]) return {};
        at = at * shape[d] + i;
    }
    return static_cast<std::size_t>(at);
}

struct Sum {
    double value = 0, left = 0;  // left: the sum of absolute values of the first operand, whether the second one is padding or not
};

// One output in double precision. Products of float32 numbers are exact there, and sums are a billion times as exact as in float32.
Sum sum_at(const Statement& s, const std::vector<float>& left, const std::vector<float>& right, std::vector<std::int64_t> iterators) {
    std::vector<std::size_t> reductions;
    for (std::size_t a = 0; a < s.axes.size(); ++a)
        if (s.axes[a].role == AxisRole::reduction) reductions.push_back(a), iterators[a] = 0;
    Sum sum;
    for (;;) {
        const auto l = place_of(s.buffers[static_cast<std::size_t>(s.reads[0].buffer)].shape, s.reads[0].index, iterators),
                   r = place_of(s.buffers[static_cast<std::size_t>(s.reads[1].buffer)].shape, s.reads[1].index, iterators);
        if (l) sum.left += std::fabs(static_cast<double>(left[*l]));
        if (l && r) sum.value += static_cast<double>(left[*l]) * static_cast<double>(right[*r]);
        std::size_t at = 0;
        while (at < reductions.size() && ++iterators[reductions[at]] == s.axes[reductions[at]].extent) iterators[reductions[at++]] = 0;
        if (at == reductions.size()) return sum;
    }
}

double value_finished(const Term& t, const std::function<double(const std::string&)>& leaf) {
    if (t.size() == 0) return leaf(t.op().text());
    std::vector<double> operands;
    for (const Term& c : t.children()) operands.push_back(value_finished(c, leaf));
    return apply_scalar(t.op().text(), operands);
}

std::size_t place_of_read(const Statement& s, const FinishRead& read, std::size_t output) {
    const Shape& shape = s.buffers[0].shape;
    std::vector<std::size_t> element(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) element[d] = output % static_cast<std::size_t>(shape[d]), output /= static_cast<std::size_t>(shape[d]);
    std::size_t at = 0;
    const Shape& own = s.buffers[static_cast<std::size_t>(read.buffer)].shape;
    for (std::size_t d = 0; d < own.size(); ++d) at = at * static_cast<std::size_t>(own[d]) + element[static_cast<std::size_t>(read.dimensions[d])];
    return at;
}

std::vector<float> normal(std::int64_t count, std::mt19937_64& random) {
    std::normal_distribution<double> draw;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = static_cast<float>(draw(random));
    return values;
}

// Normal numbers; sizes over many powers of ten; alternating signs, which the transforms of bilinear algorithms add up.
std::vector<float> adverse(const Shape& shape, int kind, std::mt19937_64& random) {
    std::vector<float> values = normal(element_count(shape), random);
    std::normal_distribution<double> draw;
    const std::size_t width = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (kind == 1) values[i] *= static_cast<float>(std::exp(3 * draw(random)));
        if (kind == 2) values[i] = (i % width / 2 + i / width / 2) % 2 == 0 ? 1 + values[i] / 1024 : -1 - values[i] / 1024;
    }
    return values;
}

std::vector<Term> nests_that_run(const Term& value) { return value.is("prepare", 2) ? nests_of(value[1]) : std::vector{value}; }

Shape shape_of(const Statement& s, std::string_view buffer) {
    const int b = s.buffer(buffer);
    return b < 0 ? Shape{} : s.buffers[static_cast<std::size_t>(b)].shape;
}

bool runs_here(const Target& target) { return !target.gpu() && target.reach == Reach::here; }

}  // namespace

std::optional<SiteKernels> SiteKernels::of(const Term& direct, const Term& value, const Target& target, KernelCache& kernels) {
    SiteKernels made;
    made.direct_ = statement_of(direct);
    const std::vector<Term> nests = nests_that_run(value);
    if (value.is("prepare", 2)) made.pair_ = bilinear_pair(value[0]);
    for (const Term& nest : nests)
        if (!nest.is("nest", 2) || !domain_of(nest).whole() || roundings_of(nest).contains("int8")) return {};
    made.last_ = statement_in(nests.back());
    const Statement first = statement_in(nests.front());
    const std::string right = made.direct_.buffers[static_cast<std::size_t>(made.direct_.reads[1].buffer)].name;
    if (!keeps_errors(made.last_.finish) || made.last_.buffers[0].shape != made.direct_.buffers[0].shape ||
        shape_of(first, right) != shape_of(made.direct_, right))
        return {};
    for (const Term& nest : nests) made.kernels_.push_back(kernels.compile(nest, target).kernel);
    return made;
}

double SiteKernels::error(const NamedOperands& given, std::uint64_t seed) const {
    NamedOperands operands = given;
    const std::string left = direct_.buffers[static_cast<std::size_t>(direct_.reads[0].buffer)].name,
                      right = direct_.buffers[static_cast<std::size_t>(direct_.reads[1].buffer)].name;
    if (pair_) operands["W"] = bilinear_weights(*pair_, given.at("W"));
    std::vector<float> got;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
        std::vector<std::vector<float>> in;
        for (const KernelBuffer& b : kernels_[k].parameters)
            in.push_back(b.kind == BufferKind::output ? std::vector<float>() : k > 0 && b.name == "I" ? std::move(got) : operands.at(b.name));
        const LoadedKernel loaded(kernels_[k]);
        got = kernel_output(kernels_[k], in, std::cref(loaded));
    }
    double largest = 0, worst = 0;
    for (float x : given.at(right)) largest = std::max(largest, std::fabs(static_cast<double>(x)));
    std::mt19937_64 random(seed);
    for (int i = 0; i < sampled_outputs; ++i) {
        std::vector<std::int64_t> iterators;
        for (const Iterator& axis : direct_.axes) iterators.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(axis.extent)));
        const Sum sum = sum_at(direct_, given.at(left), given.at(right), iterators);
        const std::size_t output = *place_of(direct_.buffers[0].shape, direct_.write.index, iterators);
        double size = largest * sum.left;
        const double wanted = !last_.finish ? sum.value : value_finished(last_.finish, [&](const std::string& name) {
            if (name == "acc") return sum.value;
            for (const FinishRead& read : last_.finish_reads)
                if (last_.buffers[static_cast<std::size_t>(read.buffer)].name == name) {
                    const double operand = given.at(name)[place_of_read(last_, read, output)];
                    size += std::fabs(operand);
                    return operand;
                }
            throw InternalFault("the last step of a statement names an unknown buffer");
        });
        if (size > 0) worst = std::max(worst, std::fabs(static_cast<double>(got[output]) - wanted) / size);
    }
    return worst;
}

double SiteKernels::largest_error() const {
    std::mt19937_64 random(1);
    double worst = 0;
    for (int kind = 0; kind < 3; ++kind) {
        NamedOperands operands;
        for (const Statement* s : {&direct_, &last_})
            for (const Buffer& b : s->buffers) {
                if (b.kind == BufferKind::output || operands.contains(b.name)) continue;
                operands[b.name] = b.kind == BufferKind::input ? adverse(b.shape, kind, random) : normal(element_count(b.shape), random);
            }
        worst = std::max(worst, error(operands, 1));
    }
    return worst;
}

std::map<std::string, ErrorBound> site_bounds(const Graph& graph, const std::map<std::string, Term>& nests) {
    std::map<std::string, ErrorBound> all;
    for (const auto& [site, value] : nests)
        if (const Node* node = graph.find(site); node && (node->op == "conv2d" || node->op == "linear" || node->op == "matmul"))
            if (const auto bound = error_bound(value)) all[site] = *bound;
    return all;
}

std::map<std::string, SiteError> site_errors(const fs::path& folder, const Graph& graph) {
    const JsonView manifest = read_json(read_source(folder / "network.json", 1 << 30));
    const Target target = find_target(manifest.at("target").text());
    Schedules schedules;
    for (const auto& [site, schedule] : manifest.at("schedules").members()) schedules[site] = parse_term(schedule.text());
    const ScratchFile name(".kernels");
    const ScratchFolder pool(name.path());
    fs::create_directories(pool.path());
    const KernelPool known(pool.path());
    std::size_t index = 0;
    for (const JsonView& kernel : manifest.at("kernels").items())
        if (const fs::path code = folder / kernel_file(index++, target); fs::exists(code))
            known.put(parse_term(kernel.at("nest").text()), target, read_file(code));
    KernelCache cache(known);
    const std::map<std::string, Term> nests = fused_nests(graph, schedules, target);
    std::map<std::string, SiteError> all;
    std::map<std::string, std::optional<double>> measured;  // by what runs: sites of one kind have the same kernels
    for (const auto& [site, bound] : site_bounds(graph, nests)) {
        const auto [error, fresh] = measured.try_emplace(to_string(nests.at(site)));
        if (fresh && runs_here(target)) {
            const Term direct = plain_statement(nest_parts(nest_of(*graph.find(site))).statement);
            const auto kernels = SiteKernels::of(direct, nests.at(site), target, cache);
            const double largest = kernels ? kernels->largest_error() : NAN;
            if (std::isfinite(largest)) error->second = largest;  // numbers of few bits may overflow, which no bound covers
        }
        all[site] = {bound, error->second};
    }
    return all;
}

}  // namespace loopegg
