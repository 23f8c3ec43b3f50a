// Every heavy library in one process, each used for real, before and after all the others are loaded.
#include <dlfcn.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <highs_c_api.h>
#include <isl/set.h>
#include <onnx/onnx_pb.h>
#include <sqlite3.h>
#include <xgboost/c_api.h>
#include <catch2/catch.hpp>

// In tvm_part.cpp: compiles 'out[i] = in[i] * 2 + 1' for this machine, in parallel over i, and runs it.
std::vector<float> joints_tvm_double_plus_one(const std::vector<float>& in);

namespace {

void torch_differentiates() {
    static auto backward = [] {
        void* library = dlopen(LOOPEGG_JOINTS_TORCH, RTLD_NOW | RTLD_LOCAL);
        if (!library) FAIL(dlerror());
        return reinterpret_cast<double (*)()>(dlsym(library, "joints_torch_backward"));
    }();
    REQUIRE(backward);
    CHECK(backward() < 1e-12);
}

void tvm_compiles_and_runs() {
    std::vector<float> in(1000);
    std::iota(in.begin(), in.end(), 0.0f);
    std::vector<float> out = joints_tvm_double_plus_one(in);
    for (size_t i = 0; i < in.size(); ++i) REQUIRE(out[i] == 2 * in[i] + 1);
}

void isl_intersects() {
    isl_ctx* context = isl_ctx_alloc();
    {
        isl_set* triangle = isl_set_read_from_str(context, "{ [i, j] : 0 <= j <= i < 8 }");
        isl_set* even = isl_set_read_from_str(context, "{ [i, j] : i % 2 = 0 and j % 2 = 0 }");
        isl_set* expected = isl_set_read_from_str(context, "{ [i, j] : exists a, b: i = 2a and j = 2b and 0 <= b <= a <= 3 }");
        isl_set* both = isl_set_intersect(triangle, even);
        CHECK(isl_set_is_equal(both, expected) == isl_bool_true);
        isl_set_free(both);
        isl_set_free(expected);
    }
    isl_ctx_free(context);
}

void sqlite_keeps_and_finds() {
    sqlite3* database = nullptr;
    REQUIRE(sqlite3_open(":memory:", &database) == SQLITE_OK);
    REQUIRE(sqlite3_exec(database, "create table t (nest text primary key, ms real); insert into t values ('a', 1.5), ('b', 2.5)", nullptr, nullptr, nullptr) ==
            SQLITE_OK);
    sqlite3_stmt* query = nullptr;
    REQUIRE(sqlite3_prepare_v2(database, "select sum(ms) from t where nest >= 'a'", -1, &query, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(query) == SQLITE_ROW);
    CHECK(sqlite3_column_double(query, 0) == 4.0);
    sqlite3_finalize(query);
    sqlite3_close(database);
}

// Trees over x learn y = x > 50; OpenMP is at work here, from the library that LibTorch may have brought.
void xgboost_learns() {
    constexpr int rows = 100;
    std::vector<float> x(rows), y(rows);
    for (int i = 0; i < rows; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i), y[static_cast<size_t>(i)] = i > 50;
    DMatrixHandle data = nullptr;
    BoosterHandle model = nullptr;
    REQUIRE(XGDMatrixCreateFromMat(x.data(), rows, 1, NAN, &data) == 0);
    REQUIRE(XGDMatrixSetFloatInfo(data, "label", y.data(), rows) == 0);
    REQUIRE(XGBoosterCreate(&data, 1, &model) == 0);
    for (auto [name, value] : {std::pair{"nthread", "2"}, {"eta", "1"}, {"max_depth", "2"}, {"verbosity", "0"}})
        REQUIRE(XGBoosterSetParam(model, name, value) == 0);
    for (int round = 0; round < 5; ++round) REQUIRE(XGBoosterUpdateOneIter(model, round, data) == 0);
    bst_ulong n = 0;
    const float* predicted = nullptr;
    REQUIRE(XGBoosterPredict(model, data, 0, 0, 0, &n, &predicted) == 0);
    REQUIRE(n == rows);
    for (size_t i = 0; i < rows; ++i) CHECK(std::abs(predicted[i] - y[i]) < 0.1);
    XGBoosterFree(model);
    XGDMatrixFree(data);
}

// A knapsack: values 10, 7, 6 with weights 5, 4, 3 and room for 7 is best with the last two.
void highs_chooses() {
    void* highs = Highs_create();
    Highs_setBoolOptionValue(highs, "output_flag", 0);
    const double cost[] = {10, 7, 6}, lower[] = {0, 0, 0}, upper[] = {1, 1, 1}, weight[] = {5, 4, 3}, row_lower[] = {-INFINITY}, row_upper[] = {7};
    const HighsInt start[] = {0}, index[] = {0, 1, 2}, integer[] = {1, 1, 1};
    REQUIRE(Highs_passMip(highs, 3, 1, 3, kHighsMatrixFormatRowwise, kHighsObjSenseMaximize, 0, cost, lower, upper, row_lower, row_upper, start, index, weight,
                          integer) == kHighsStatusOk);
    REQUIRE(Highs_run(highs) == kHighsStatusOk);
    CHECK(Highs_getModelStatus(highs) == kHighsModelStatusOptimal);
    CHECK(Highs_getObjectiveValue(highs) == Approx(13));
    double chosen[3] = {};
    REQUIRE(Highs_getSolution(highs, chosen, nullptr, nullptr, nullptr) == kHighsStatusOk);
    CHECK(chosen[0] == Approx(0));
    Highs_destroy(highs);
}

// LibTorch carries ONNX and protobuf of its own; Debian's must still read back what they wrote.
void onnx_round_trips() {
    onnx::ModelProto model;
    model.set_ir_version(8);
    auto* node = model.mutable_graph()->add_node();
    node->set_op_type("Conv");
    node->add_input("x");
    auto* strides = node->add_attribute();
    strides->set_name("strides");
    strides->set_type(onnx::AttributeProto::INTS);
    strides->add_ints(2);
    onnx::ModelProto back;
    REQUIRE(back.ParseFromString(model.SerializeAsString()));
    REQUIRE(back.graph().node_size() == 1);
    CHECK(back.graph().node(0).op_type() == "Conv");
    CHECK(back.graph().node(0).attribute(0).ints(0) == 2);
    CHECK_FALSE(back.ParseFromString("\xff\xff not a model"));
}

struct Part {
    const char* name;
    void (*use)();
};
const Part parts[] = {{"torch", torch_differentiates}, {"tvm", tvm_compiles_and_runs}, {"isl", isl_intersects},   {"sqlite", sqlite_keeps_and_finds},
                      {"xgboost", xgboost_learns},     {"highs", highs_chooses},       {"onnx", onnx_round_trips}};

void use_all() {
    for (const Part& p : parts) {
        INFO(p.name);
        p.use();
    }
}

}  // namespace

TEST_CASE("every heavy library works in one process", "[flow]") { use_all(); }
TEST_CASE("every heavy library still works once all are loaded", "[flow]") {
    for (int i = 0; i < 3; ++i) use_all();
}
