#include "extract/cost_model.hpp"

#include <xgboost/c_api.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

void check(int status) {
    if (status != 0) throw InternalFault(std::string("XGBoost: ") + XGBGetLastError());
}

struct Matrix {
    DMatrixHandle handle = nullptr;
    explicit Matrix(std::span<const std::vector<float>> rows) {
        const std::size_t columns = rows.empty() ? 0 : rows[0].size();
        std::vector<float> flat;
        flat.reserve(rows.size() * columns);
        for (const auto& r : rows) flat.insert(flat.end(), r.begin(), r.end());
        check(XGDMatrixCreateFromMat(flat.data(), rows.size(), columns, -1e30f, &handle));
    }
    ~Matrix() { XGDMatrixFree(handle); }
    Matrix(const Matrix&) = delete;
};

}  // namespace

struct CostModel::Impl {
    std::vector<std::vector<float>> rows;
    std::vector<float> speeds;
    BoosterHandle booster = nullptr;
    ~Impl() {
        if (booster) XGBoosterFree(booster);
    }
};

CostModel::CostModel() : impl_(std::make_unique<Impl>()) {}
CostModel::~CostModel() = default;
std::size_t CostModel::rows() const { return impl_->rows.size(); }
bool CostModel::ready() const { return impl_->booster != nullptr; }

void CostModel::add(std::vector<float> features, double speed) {
    impl_->rows.push_back(std::move(features));
    impl_->speeds.push_back(static_cast<float>(speed));
}

void CostModel::fit() {
    if (impl_->rows.size() < 8) return;  // fewer rows teach nothing
    Matrix data(impl_->rows);
    check(XGDMatrixSetFloatInfo(data.handle, "label", impl_->speeds.data(), impl_->speeds.size()));
    if (impl_->booster) XGBoosterFree(impl_->booster);
    impl_->booster = nullptr;
    BoosterHandle booster = nullptr;
    check(XGBoosterCreate(&data.handle, 1, &booster));
    impl_->booster = booster;
    const std::pair<const char*, const char*> settings[] = {
        {"objective", "reg:squarederror"}, {"max_depth", "6"}, {"eta", "0.2"}, {"min_child_weight", "1"}, {"nthread", "1"}, {"seed", "1"}, {"verbosity", "0"}};
    for (auto [name, value] : settings) check(XGBoosterSetParam(booster, name, value));
    for (int round = 0; round < 60; ++round) check(XGBoosterUpdateOneIter(booster, round, data.handle));
}

std::vector<double> CostModel::predict(std::span<const std::vector<float>> rows) const {
    if (!ready() || rows.empty()) return std::vector<double>(rows.size(), 0.0);
    Matrix data(rows);
    bst_ulong length = 0;
    const float* out = nullptr;
    check(XGBoosterPredict(impl_->booster, data.handle, 0, 0, 0, &length, &out));
    return {out, out + length};
}

}  // namespace loopegg
