// ONNX files as files: their names, sizes and opsets, the weights next to them, and the process that parses them.
#include <catch2/catch.hpp>

#include <random>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "graph/onnx/model_bytes.hpp"
#include "tests/made_onnx.hpp"

using namespace loopegg;
using namespace loopegg::test;
namespace fs = std::filesystem;

namespace {

struct Folder {
    fs::path path = fs::temp_directory_path() / ("loopegg-reading-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path / "sub"); }
    ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("open dimensions are said, and given by the user", "[unit][graph]") {
    Made m({-1, 3});
    m.model.inputs[0].symbols = {"batch", ""};
    m.node("Relu", {"x"}, {"y"}).output("y");
    const Model read = m.read();
    CHECK(read.graph.inputs[0].shape == Shape{1, 3});
    REQUIRE(read.notes.size() == 1);
    CHECK_THAT(read.notes[0], Catch::Contains("taken as 1") && Catch::Contains("'batch'"));
    OnnxReading four;
    four.batch = 4;
    CHECK(m.read(four).graph.inputs[0].shape == Shape{4, 3});
    CHECK(m.read(four).notes.empty());
    OnnxReading given;
    add_shape(given, "x=5x3");
    CHECK(m.read(given).graph.inputs[0].shape == Shape{5, 3});
    OnnxReading wrong;
    add_shape(wrong, "x=5x4");
    CHECK_THROWS_WITH(m.read(wrong), Catch::Contains("is 3 in the file, 4 was given"));
    OnnxReading other;
    add_shape(other, "z=1x3");
    CHECK_THROWS_WITH(m.read(other), Catch::Contains("no input 'z'"));
    for (const char* bad : {"x", "x=", "=1x3", "x=1x", "x=0x3", "x=1,3", "x=-1x3"}) CHECK_THROWS_AS(add_shape(given, bad), UsageError);
    Made open({1, -1});
    open.node("Relu", {"x"}, {"y"}).output("y");
    CHECK_THROWS_WITH(open.read(), Catch::Contains("has no fixed size"));
}

TEST_CASE("float16 is computed in float32 only where the user says so", "[unit][graph]") {
    Made m({1, 2});
    m.model.inputs[0].type = 10;
    m.node("Relu", {"x"}, {"y"}).output("y");
    CHECK_THROWS_WITH(m.read(), Catch::Contains("float16"));
    OnnxReading how;
    how.as_float32 = true;
    CHECK(m.read(how).graph.inputs[0].dtype == "float32");
}

TEST_CASE("an ONNX file is one whatever its name", "[unit][graph]") {
    Folder folder;
    Made m({1, 2});
    m.node("Relu", {"x"}, {"y"}).output("y");
    for (const char* name : {"m.ONNX", "m", "m.bin"}) {
        write_file(folder.path / name, serialize_onnx(m.model));
        CHECK(load_graph((folder.path / name).string()).outputs == std::vector<std::string>{"y"});
    }
}

TEST_CASE("weights next to the file are read, from its own folder alone", "[unit][graph][errors]") {
    Folder folder;
    Made m({1, 2});
    m.constant("w", floats({2, 2}, {1, 2, 3, 4})).node("MatMul", {"x", "w"}, {"y"}).output("y");
    const std::string bytes = serialize_onnx(m.model);
    // As a person would: the raw data of w moves to another file. Protobuf's fields are patched by hand: raw_data (9) becomes external_data (13).
    auto external = [&](const std::string& location, const std::string& offset, const std::string& length) {
        auto field = [](int number, const std::string& text) { return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size())} + text; };
        std::string entries;
        for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"location", location}, {"offset", offset}, {"length", length}})
            if (!value.empty()) entries += field(13, field(1, key) + field(2, value));
        const std::string tensor = std::string{0x08, 2, 0x08, 2, 0x10, 1} + field(8, "w") + entries + std::string{static_cast<char>(14 << 3), 1};
        const std::string node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "MatMul");
        const std::string type = field(1, std::string{0x08, 1} + field(2, field(1, std::string{0x08, 1}) + field(1, std::string{0x08, 2})));
        std::string graph = field(1, node) + field(2, "g");
        const auto put = [&](int number, const std::string& text) {  // lengths of two bytes
            graph += std::string{static_cast<char>(number << 3 | 2), static_cast<char>(text.size() % 128 | 128), static_cast<char>(text.size() / 128)} + text;
        };
        put(5, tensor), put(11, field(1, "x") + field(2, type)), put(12, field(1, "y"));
        const std::string opset = std::string{0x42, 2, 0x10, 18};
        return std::string{0x08, 8} + opset + std::string{0x3A, static_cast<char>(graph.size() % 128 | 128), static_cast<char>(graph.size() / 128)} + graph;
    };
    const float data[] = {9, 9, 1, 2, 3, 4};
    write_file(folder.path / "w.data", {reinterpret_cast<const char*>(data), sizeof data});
    write_file(folder.path / "sub/w.data", {reinterpret_cast<const char*>(data), sizeof data});
    auto read = [&](const std::string& location, const std::string& offset, const std::string& length, const std::string& where = "m.onnx") {
        write_file(folder.path / where, external(location, offset, length));
        return read_onnx(folder.path / where);
    };
    const Model good = read("w.data", "8", "16");
    CHECK(good.weights.begin()->second.values == std::vector<float>{1, 3, 2, 4});  // as a linear layer's: transposed
    CHECK(read("sub/w.data", "8", "").weights == good.weights);
    CHECK_THROWS_WITH(read("../w.data", "8", "16", "sub/m.onnx"), Catch::Contains("not in the model's folder"));
    CHECK_THROWS_WITH(read((folder.path / "w.data").string(), "8", "16"), Catch::Contains("not in the model's folder"));
    CHECK_THROWS_WITH(read("none.data", "8", "16"), Catch::Contains("no such file next to the model"));
    CHECK_THROWS_WITH(read("w.data", "16", "16"), Catch::Contains("which has 24"));
    CHECK_THROWS_WITH(read("w.data", "18446744073709551608", "16"), Catch::Contains("which has 24"));
    CHECK_THROWS_WITH(read("w.data", "8", "15"), Catch::Contains("needs 16 bytes by its dims"));
    CHECK_THROWS_WITH(read("w.data", "eight", "16"), Catch::Contains("no number"));
    CHECK_THROWS_WITH(read("sub", "0", "16"), Catch::Contains("no such file"));
    fs::create_symlink(fs::path("..") / fs::path(folder.path.filename()) / "w.data", folder.path / "inside.link");
    CHECK(read("inside.link", "8", "16").weights == good.weights);
    fs::create_symlink("/etc/passwd", folder.path / "outside.link");
    CHECK_THROWS_WITH(read("outside.link", "8", "16"), Catch::Contains("leads out of the model's folder"));
    CHECK_THROWS_WITH(import_onnx("m.onnx", external("w.data", "8", "16")), Catch::Contains("another file"));
}

TEST_CASE("tensors that would fill the memory are refused before any of them is read", "[unit][graph][errors]") {
    Folder folder;
    Made m({1, 2});
    m.constant("w", {OnnxTensor::Kind::float32, {std::int64_t{1} << 39}}).node("Add", {"x", "w"}, {"y"}).output("y");
    m.model.outside["w"] = 0, m.model.data_file = "w.data";
    write_file(folder.path / "m.onnx", serialize_onnx(m.model));
    write_file(folder.path / "w.data", "");
    fs::resize_file(folder.path / "w.data", std::uintmax_t{1} << 41);  // a hole: it takes no room on the disk
    CHECK_THROWS_WITH(read_onnx(folder.path / "m.onnx"), Catch::Contains("need 2199023255552 bytes, and half of this machine's memory is"));
}

TEST_CASE("models of old opsets are brought to a newer one by ONNX's own converter", "[unit][graph]") {
    // What these operators take as attributes later ones take as inputs, and softmax was over all dimensions from its axis on.
    Made m({2, 3, 4, 4}, 9);
    m.constant("scales", floats({4}, {1, 1, 2, 2}));
    m.constant("w", counted({5, 3, 3, 3}));
    m.node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}})
        .node("Upsample", {"c", "scales"}, {"u"}, {{"mode", std::string("nearest")}})
        .node("Slice", {"u"}, {"s"}, {{"axes", Ints{1, 2}}, {"starts", Ints{1, 0}}, {"ends", Ints{4, 6}}})
        .node("Clip", {"s"}, {"k"}, {{"min", -40.0f}, {"max", 50.0f}})
        .node("Pad", {"k"}, {"p"}, {{"pads", Ints{0, 0, 1, 0, 0, 0, 0, 2}}})
        .node("ReduceSum", {"p"}, {"r"}, {{"axes", Ints{3}}, {"keepdims", std::int64_t{0}}})
        .node("Softmax", {"r"}, {"y"}, {{"axis", std::int64_t{1}}})
        .output("y");
    m.model.outputs[0].shape = {2, 3, 7}, m.model.outputs[0].has_shape = true;  // the converter wants to know
    const Model read = m.read();
    CHECK(read.notes == std::vector<std::string>{});
    CHECK(read.graph.opset == 13);
    CHECK(read.graph.outputs == std::vector<std::string>{"y"});
    OnnxReading as_it_stands;
    as_it_stands.upgrade = false;
    CHECK(m.read(as_it_stands).graph.opset == 9);
    const Tensor y = m.run(), same = m.run("y", as_it_stands);
    REQUIRE(y.shape == Shape{2, 3, 7});
    CHECK(y.shape == same.shape);
    for (std::size_t i = 0; i < y.values.size(); ++i) CHECK(y.values[i] == Approx(same.values[i]).margin(1e-6));
}

TEST_CASE("what ONNX's checker refuses is read as it stands, and that is said", "[unit][graph]") {
    Made m({1, 2}, 9);
    m.node("Relu", {"x"}, {"y"}, {{"colour", std::int64_t{1}}}).output("y");
    const Model read = m.read();
    CHECK(read.graph.opset == 9);
    REQUIRE(read.notes.size() == 1);
    CHECK_THAT(read.notes[0], Catch::Contains("read unconverted in opset 9, not in 13") && Catch::Contains("colour"));
}

TEST_CASE("what a process of its own parses is what protobuf parses here", "[unit][onnx]") {
    for (const char* name : {"attention_dynamo_20", "basic_block_script_14", "inverted_dynamo_20"}) {
        const std::string bytes = exported_onnx().at(name);
        const OnnxModel there = parse_onnx(name, bytes), here = parse_onnx(name, bytes, {}, false);
        CHECK(there.nodes == here.nodes);
        CHECK(there.initializers == here.initializers);
        CHECK(serialize_onnx(there) == serialize_onnx(here));
    }
}

TEST_CASE("nothing that such a process answers is believed", "[errors][onnx]") {
    std::ostringstream out;
    write_model_bytes(parse_onnx("m", exported_onnx().at("dense_script_14")), out);
    const std::string good = out.str();
    CHECK_NOTHROW(read_model_bytes("m", good));
    CHECK_THROWS_WITH(read_model_bytes("m", good + "x"), Catch::Contains("answered garbage"));
    std::mt19937 random(3);
    for (int i = 0; i < 3000; ++i) {
        std::string bad = good.substr(0, i % 3 ? good.size() : random() % good.size());
        for (int n = i % 3; n > 0; --n) bad[random() % bad.size()] = static_cast<char>(random());
        try {
            read_model_bytes("m", bad);
        } catch (const UserError&) {
        }
    }
}

TEST_CASE("a small ONNX file that unfolds to much is refused", "[errors][onnx]") {
    std::string nodes;  // empty messages: two bytes each in the file, hundreds in memory
    for (int i = 0; i < 2'000'000; ++i) nodes += std::string("\x0a\x00", 2);
    std::string length;
    for (std::size_t n = nodes.size(); n > 0; n >>= 7) length += static_cast<char>((n & 127) | (n > 127 ? 128 : 0));
    CHECK_THROWS_WITH(import_onnx("m.onnx", "\x08\x08\x3a" + length + nodes), Catch::Contains("MB of memory"));
}

TEST_CASE("a short ONNX file whose constants unfold to much is refused before they do", "[errors][onnx]") {
    const auto expanded = [](std::int64_t elements) {
        Made m({1, 2});
        m.constant("one", floats({}, {1})).constant("to", whole({elements})).node("Expand", {"one", "to"}, {"wide"});
        m.node("ReduceSum", {"wide"}, {"sum"}).node("Add", {"x", "sum"}, {"y"}).output("y");
        return m;
    };
    CHECK_THROWS_WITH(expanded(std::int64_t{1} << 25).read(), Catch::Contains("Expand 'n0'") && Catch::Contains("a file of this size"));
    CHECK_THROWS_WITH(expanded(std::int64_t{1} << 28).read(), Catch::Contains("Expand 'n0'") && Catch::Contains("a file of this size"));
    CHECK_NOTHROW(expanded(1 << 20).read());
    Made again({1, 2});  // many constants, none of them large
    again.constant("one", floats({}, {1})).constant("to", whole({1 << 20}));
    for (int i = 0; i < 20; ++i) again.node("Expand", {"one", "to"}, {"wide" + std::to_string(i)});
    again.node("Add", {"x", "one"}, {"y"}).output("y");
    CHECK_THROWS_WITH(again.read(), Catch::Contains("a file of this size"));
}

TEST_CASE("what a long file holds may be computed with", "[unit][onnx]") {
    Made m({1, 2});
    m.constant("w", counted({1 << 20, 6})).node("Transpose", {"w"}, {"t"}, {{"perm", Ints{1, 0}}}).node("Neg", {"t"}, {"n"}).node("Abs", {"n"}, {"a"});
    m.constant("axes", whole({0, 1})).node("ReduceSum", {"a", "axes"}, {"sum"}, {{"keepdims", std::int64_t{0}}}).node("Add", {"x", "sum"}, {"y"}).output("y");
    CHECK_NOTHROW(m.read());
}

TEST_CASE("weights that a short file names again and again are refused", "[errors][onnx]") {
    Made m({1, 4096});
    m.constant("one", floats({}, {1})).constant("to", whole({4096, 4096})).node("Expand", {"one", "to"}, {"w"});
    std::string at = "x";
    for (int i = 0; i < 10; ++i) m.node("MatMul", {at, "w"}, {"y" + std::to_string(i)}), at = "y" + std::to_string(i);
    m.output(at);
    CHECK_THROWS_WITH(m.read(), Catch::Contains("too many elements for a file of its size"));
}
