// A statement computed without any schedule, and buffers to try it on.
#include <cmath>
#include <random>

#include "nest/run/instance_kernel.hpp"

namespace loopegg {

std::vector<float> reference(const Statement& s, const Domain& domain, const Buffers& buffers) {
    InstanceKernel kernel(s, buffers);
    DomainTest test(domain, graph_axes(s));
    const Shape& shape = s.buffers[0].shape;
    bool assign = s.combine == Combine::assign;
    if (!assign) kernel.data[0].assign(kernel.data[0].size(), static_cast<float>(s.identity()));
    std::vector<char> touched(kernel.data[0].size(), 0);
    std::vector<std::int64_t> it(s.axes.size(), 0);
    for (bool more = true; more;) {
        std::vector<std::int64_t> element;
        for (const Affine& d : s.write.index) element.push_back(d.at(it));
        if ((domain.whole() || test.contains(it.data())) && (!s.write.padded || inside(shape, element))) {
            std::vector<float> operands;
            for (const Access& a : s.reads) {
                std::vector<std::int64_t> index;
                for (const Affine& d : a.index) index.push_back(d.at(it));
                operands.push_back(kernel.read(a, index));
            }
            kernel.add_coefficients(operands, it);
            float& target = kernel.data[0][flat(shape, element)];
            touched[flat(shape, element)] = 1;
            target = assign ? kernel.finish(kernel.value(operands), element) : kernel.combine(target, kernel.value(operands));
        }
        more = false;
        for (std::size_t a = s.axes.size(); a-- > 0 && !more;) more = ++it[a] < s.axes[a].extent ? true : (it[a] = 0, false);
    }
    if (assign) return kernel.data[0];
    if (auto sources = restored_sources(s, domain); !sources.empty()) {
        std::vector<float> computed = kernel.data[0];
        for (std::size_t i = 0; i < sources.size(); ++i) {
            kernel.data[0][i] = sources[i] < 0 ? 0 : computed[static_cast<std::size_t>(sources[i])];
            touched[i] = 1;
        }
    }
    std::vector<std::int64_t> element(shape.size(), 0);
    for (std::size_t i = 0; i < touched.size(); ++i) {
        std::size_t rest = i;
        for (std::size_t d = shape.size(); d-- > 0;)
            element[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[d])), rest /= static_cast<std::size_t>(shape[d]);
        kernel.data[0][i] = touched[i] ? kernel.finish(kernel.data[0][i], element) : 0;
    }
    return kernel.data[0];
}

Buffers whole_number_buffers(const Statement& statement, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Buffers out;
    for (const Buffer& b : statement.buffers) {
        if (b.kind == BufferKind::output) continue;
        std::vector<float> values(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 7) - 3);
        if (b.name == "K" || b.name == "C")
            for (float& v : values) v = static_cast<float>(1 << random() % 3);
        out[b.name] = std::move(values);
    }
    return out;
}

Buffers random_buffers(const Statement& statement, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    Buffers out;
    for (const Buffer& b : statement.buffers) {
        if (b.kind == BufferKind::output) continue;
        std::vector<float> values(static_cast<std::size_t>(element_count(b.shape)));
        for (float& v : values) v = b.name == "K" || b.name == "C" ? 1 + std::abs(normal(random)) : normal(random);
        out[b.name] = std::move(values);
    }
    return out;
}

}  // namespace loopegg
