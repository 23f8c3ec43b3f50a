// Every broken model that make.py writes is refused, in the words of messages.txt.
#include <catch2/catch.hpp>

#include <filesystem>

#include "base/error.hpp"
#include "case_table.hpp"
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
    Inside folder(LOOPEGG_BROKEN_MODELS);
    std::vector<std::string> files{"no-such.json", "no-such.onnx", "no-such.npy", "folder", "no/such/folder/m.json", "zoo:resnet35", "zoo:|none~0|+|none~0|"};
    for (const auto& entry : fs::directory_iterator(".")) {
        std::string name = entry.path().filename().string(), kind = entry.path().extension().string();
        if (kind == ".json" || kind == ".onnx" || kind == ".npy") files.push_back(name);
    }
    CaseTable messages(fs::path(LOOPEGG_SOURCE) / "tests/errors/graph/messages.txt");
    CHECK(files.size() == messages.cases().size());
    for (const std::string& file : files) messages.check(file, answer(file));
    messages.finish();
}
