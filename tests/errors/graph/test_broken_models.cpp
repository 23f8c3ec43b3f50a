// Every broken file of this folder is refused, in the words that stand beside it.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/files.hpp"
#include "graph/load.hpp"
#include "graph/npy.hpp"
#include "graph/safetensors.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

// What reading says; empty when nothing is wrong with it. Only a UserError is an answer: anything else fails the test.
std::string answer(const std::string& file) {
    try {
        if (file.ends_with(".npy"))
            read_npy(file);
        else
            load_model(file);
    } catch (const UserError& e) {
        return std::string(e.what()) + "\n";
    }
    return "";
}

// Messages name files as they were given, so the corpus is read from inside its folder.
struct Inside {
    fs::path before = fs::current_path();
    explicit Inside(const fs::path& folder) { fs::current_path(folder); }
    ~Inside() { fs::current_path(before); }
};

}  // namespace

TEST_CASE("every broken model is answered in its own words", "[errors][graph]") {
    Inside folder(fs::path(LOOPEGG_SOURCE) / "tests/errors/graph");
    std::vector<std::string> files{"no-such.json", "no-such.onnx", "no-such.npy", "expected", "no/such/folder/m.json", "zoo:resnet35", "zoo:|none~0|+|none~0|"};
    for (const auto& entry : fs::directory_iterator(".")) {
        std::string name = entry.path().filename().string(), kind = entry.path().extension().string();
        if (kind == ".json" || kind == ".onnx" || kind == ".npy") files.push_back(name);
    }
    CHECK(files.size() >= 60);
    bool regenerate = std::getenv("LOOPEGG_REGENERATE") != nullptr;
    for (const std::string& file : files) {
        INFO(file);
        std::string said = answer(file), name = file;
        for (char& c : name)
            if (std::string_view("/:|~+").find(c) != std::string_view::npos) c = '_';
        fs::path golden = fs::path("expected") / (name + ".txt");
        CHECK_FALSE(said.empty());
        if (regenerate)
            write_file(golden, said);
        else
            CHECK(said == (fs::exists(golden) ? read_file(golden) : "no golden message: LOOPEGG_REGENERATE=1 writes it"));
    }
}
