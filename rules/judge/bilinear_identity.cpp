#include "rules/judge/bilinear_identity.hpp"

#include <gmpxx.h>

#include <fmt/format.h>

namespace loopegg {
namespace {

using Exact = std::vector<std::vector<mpq_class>>;

Exact exact(const RationalMatrix& matrix) {
    Exact all;
    for (const auto& row : matrix.entries) {
        all.emplace_back();
        for (const Rational& r : row) {
            mpq_class entry{mpz_class(static_cast<long>(r.over)), mpz_class(static_cast<long>(r.under))};
            entry.canonicalize();
            all.back().push_back(entry);
        }
    }
    return all;
}

class Identity {
public:
    explicit Identity(const BilinearForm& form)
        : output_(exact(form.output)), weights_(exact(form.weights)), input_(exact(form.input)), products_(weights_.size()) {
        for (std::size_t i = 0; i < output_.size(); ++i)
            for (std::size_t k = 0; k < taps(); ++k)
                for (std::size_t l = 0; l < inputs(); ++l) {
                    mpq_class sum = 0;
                    for (std::size_t u = 0; u < products_; ++u) sum += output_[i][u] * weights_[u][k] * input_[u][l];
                    const mpq_class lacks = (l == i + k ? 1 : 0) - sum;
                    if (lacks != 0) wrong_.push_back({i, k, l, lacks});
                }
    }

    std::optional<BilinearFault> fault() const {
        if (wrong_.empty()) return {};
        const Wrong& first = wrong_.front();
        const int wanted = first.l == first.i + first.k ? 1 : 0;
        const mpq_class is = wanted - first.lacks;
        BilinearFault fault{
            fmt::format("the coefficient of tap {} * input {} in output {} is {}, but must be {}", first.k, first.l, first.i, is.get_str(), wanted), {}};
        using Matrix = BilinearRepair::Matrix;
        for (std::size_t u = 0; u < products_; ++u) {
            for (std::size_t i = 0; i < output_.size(); ++i)
                add(fault, {Matrix::output, i, u, {}}, output_[i][u],
                    [&](const Wrong& w) -> mpq_class { return w.i == i ? mpq_class(weights_[u][w.k] * input_[u][w.l]) : mpq_class(0); });
            for (std::size_t k = 0; k < taps(); ++k)
                add(fault, {Matrix::weights, u, k, {}}, weights_[u][k],
                    [&](const Wrong& w) -> mpq_class { return w.k == k ? mpq_class(output_[w.i][u] * input_[u][w.l]) : mpq_class(0); });
            for (std::size_t l = 0; l < inputs(); ++l)
                add(fault, {Matrix::input, u, l, {}}, input_[u][l],
                    [&](const Wrong& w) -> mpq_class { return w.l == l ? mpq_class(output_[w.i][u] * weights_[u][w.k]) : mpq_class(0); });
        }
        return fault;
    }

private:
    struct Wrong {
        std::size_t i, k, l;
        mpq_class lacks;
    };
    std::size_t taps() const { return weights_.front().size(); }
    std::size_t inputs() const { return input_.front().size(); }

    // Adds the repair if one step of the entry makes up for all that is wrong, and for nothing that is right.
    template <class PerStep>
    void add(BilinearFault& fault, BilinearRepair repair, const mpq_class& entry, const PerStep& per_step) const {
        const mpq_class first = per_step(wrong_.front());
        if (first == 0) return;
        const mpq_class step = wrong_.front().lacks / first;
        for (std::size_t i = 0; i < output_.size(); ++i)
            for (std::size_t k = 0; k < taps(); ++k)
                for (std::size_t l = 0; l < inputs(); ++l)
                    if (step * per_step({i, k, l, 0}) != lacks(i, k, l)) return;
        repair.entry = mpq_class(entry + step).get_str();
        fault.repairs.push_back(std::move(repair));
    }

    mpq_class lacks(std::size_t i, std::size_t k, std::size_t l) const {
        for (const Wrong& w : wrong_)
            if (w.i == i && w.k == k && w.l == l) return w.lacks;
        return 0;
    }

    Exact output_, weights_, input_;
    std::size_t products_;
    std::vector<Wrong> wrong_;
};

}  // namespace

std::optional<BilinearFault> bilinear_fault(const BilinearForm& form) { return Identity(form).fault(); }

}  // namespace loopegg
