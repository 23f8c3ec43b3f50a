#include "backends/target/target.hpp"

#include <algorithm>
#include <cstdlib>

#include <tvm/ffi/reflection/accessor.h>

#include "backends/lower/tvm_adapter.hpp"
#include "backends/target/machine_facts.hpp"
#include "backends/target/parse_target.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "base/text.hpp"
#include "nest/term/rounding.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;

// With the CPU's name alone, LLVM would use features that a virtual machine hides. So every feature is named, on or off.
nlohmann::json native_features() {
    const auto features = tv::call(tv::Fn::host_features).cast<tv::ffi::Map<tv::ffi::String, tv::Any>>();
    tv::ffi::reflection::FieldGetter value("ir.IntImm", "value");
    std::vector<std::string> all;
    for (auto [name, on] : features) {
        const bool has = value(on.cast<tv::Obj>()).cast<std::int64_t>() != 0;
        all.push_back((has ? "+" : "-") + std::string(name));
    }
    std::sort(all.begin(), all.end());
    return all;
}

bool has_feature(const nlohmann::json& features, const char* name) {
    return std::find(features.begin(), features.end(), std::string("+") + name) != features.end();
}

HostFacts host_facts() {
    HostFacts host;
    const MachineFacts facts = machine_facts();
    const nlohmann::json features = native_features();
    const bool wide = has_feature(features, "avx512f");
    host.tvm = {{"mtriple", std::string(tv::call(tv::Fn::host_triple).cast<tv::ffi::String>())},
                {"mcpu", std::string(tv::call(tv::Fn::host_cpu).cast<tv::ffi::String>())},
                {"mattr", features},
                {"num-cores", facts.cores}};
    if (wide) host.tvm["vector-width"] = 512;
    Machine& m = host.machine;
    m.cores = facts.cores;
    m.ghz = facts.ghz > 0 ? facts.ghz : 2.5;
    m.lanes = wide ? 16 : has_feature(features, "avx2") ? 8 : 4;
    m.fma_per_cycle = 2;
    if (facts.l1_kb > 0) m.l1_kb = facts.l1_kb;
    if (facts.l2_kb > 0) m.l2_kb = facts.l2_kb;
    m.l3_kb = facts.l3_kb;
    return host;
}

std::vector<fs::path> target_files() {
    std::vector<fs::path> all;
    for (const fs::path& folder : {shipped("backends/targets"), user_targets_folder()}) {
        std::vector<fs::path> here;
        std::error_code none;
        for (const auto& entry : fs::directory_iterator(folder, none))
            if (entry.path().extension() == ".json") here.push_back(entry.path());
        std::sort(here.begin(), here.end());
        all.insert(all.end(), here.begin(), here.end());
    }
    return all;
}

}  // namespace

fs::path user_targets_folder() {
    if (const char* folder = std::getenv("LOOPEGG_TARGETS")) return folder;
    return in_config_folder("targets");
}

Target read_target(const fs::path& file) {
    Target target = parse_target(make_source(file.string(), loopegg::read_file(file, 1 << 20)), host_facts);
    if (target.name != file.stem()) throw UserError("the target file '" + file.string() + "' names another target: '" + target.name + "'");
    target.file = file;
    return target;
}

void check_target(const std::string& name, const std::string& text) { parse_target(make_source(name, text), host_facts); }

std::vector<Target> all_targets(std::vector<std::string>* broken) {
    std::vector<Target> all;
    for (const fs::path& file : target_files()) try {
            all.push_back(read_target(file));
        } catch (const UserError& e) {  // a bad file does not affect the other targets
            if (broken) broken->push_back(e.what());
        }
    return all;
}

std::vector<MatrixUnit> allowed_units(const Target& target) {
    std::vector<MatrixUnit> all = target.machine.units;
    std::erase_if(all, [&](const MatrixUnit& u) { return !target.allowed.contains(u.operands); });
    return all;
}

Target allowing(Target target, const std::vector<std::string>& roundings) {
    for (const std::string& word : roundings) {
        if (std::find(rounding_names().begin(), rounding_names().end(), word) == rounding_names().end())
            throw UserError(
                Diagnostic{"--allow: unknown rounding '" + word + "'; known are " + join(rounding_names(), ", "), {}, did_you_mean(word, rounding_names())});
        if (std::none_of(target.machine.units.begin(), target.machine.units.end(), [&](const MatrixUnit& u) { return u.operands == word; }))
            throw UserError(Diagnostic{"--allow " + word + ": '" + target.name + "' has no unit that multiplies such numbers",
                                       {},
                                       "leave --allow out, or choose a target whose file lists such a unit; 'loopegg targets' lists them"});
        target.allowed.insert(word);
    }
    return target;
}

Target find_target(const std::string& name) {
    std::vector<std::string> names;
    for (const fs::path& file : target_files()) {
        if (file.stem() == name) return read_target(file);
        names.push_back(file.stem().string());
    }
    std::string hint = did_you_mean(name, names);
    throw UserError(Diagnostic{"unknown target '" + name + "'; known are " + join(names, ", "), {}, hint});
}

}  // namespace loopegg
