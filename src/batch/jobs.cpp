#include "batch/jobs.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t max_jobs = 100'000;

std::vector<std::string> list(const JsonView& file, const char* key, std::vector<std::string> otherwise) {
    auto member = file.find(key);
    if (!member) return otherwise;
    std::vector<std::string> out = member->value().is_string() ? std::vector{member->text()} : member->texts();
    if (out.empty()) member->fail(fmt::format("'{}' is empty, expected at least one", key));
    return out;
}

std::vector<std::int64_t> seeds_of(const JsonView& file) {
    auto member = file.find("seeds");
    if (!member) return {1};
    std::vector<std::int64_t> out = member->value().is_number() ? std::vector{member->integer()} : member->integers();
    if (out.empty()) member->fail("'seeds' is empty, expected at least one");
    return out;
}

// A file next to the batch file is found from anywhere; names ("zoo:resnet34", "default") stay names.
std::string resolved(const std::string& name, const fs::path& folder) {
    if (name.find(':') != std::string::npos || fs::path(name).is_absolute()) return name;
    fs::path adjacent = folder / name;
    std::error_code too_long;  // what cannot be a file's name is no file next to this one
    return fs::exists(adjacent, too_long) ? fs::absolute(adjacent).lexically_normal().string() : name;
}

// A batch file may be a stranger's: a word of it is the value of an option or the name of one, never both at once ("out=/elsewhere"), and it names no
// command to run and no store to write.
void check_option(const std::string& name, const JsonView& value) {
    for (const char* own : {"target", "rules", "seed", "out", "store", "json", "quiet"})
        if (name == own) value.fail(fmt::format("'{}' may not be in 'options': the batch sets it itself", name));
    if (name == "runner")
        value.fail("'runner' may not be in 'options': a batch file runs no commands", "type 'loopegg optimize --runner COMMAND' for each model");
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
    if (!plain || name.size() < 2 || name[0] == '-')
        value.fail(fmt::format("'{}' is not the name of an option", name), "options are those of 'loopegg optimize --help', without '--'");
}

std::vector<std::string> options_of(const JsonView& file) {
    std::vector<std::string> out;
    auto member = file.find("options");
    if (!member) return out;
    for (const auto& [key, value] : member->members()) {
        check_option(key, value);
        if (value.value().is_boolean()) {
            if (value.boolean()) out.push_back("--" + key);
            continue;
        }
        if (!value.value().is_string() && !value.value().is_number())
            value.fail(fmt::format("an option must be a string, a number or true, not {}", value.kind()));
        out.push_back("--" + key);
        out.push_back(value.value().is_string() ? value.text() : value.value().dump());
    }
    return out;
}

// What may be in a folder's name on every file system.
std::string plain(const std::string& text) {
    std::string name = text.starts_with("zoo:") ? text.substr(4) : fs::path(text).stem().string(), out;
    for (char c : name) out += (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') ? c : '-';
    return out.empty() ? "x" : out.substr(0, 60);
}

}  // namespace

std::vector<std::string> Job::arguments(const fs::path& folder) const {
    std::vector<std::string> out{"optimize", model, "--target", target, "--seed", std::to_string(seed), "--out", folder.string()};
    if (rules != "default") out.insert(out.end(), {"--rules", rules});
    out.insert(out.end(), options.begin(), options.end());
    return out;
}

std::vector<Job> read_jobs(const SourcePtr& source) {
    JsonView file = read_json(source);
    if (const auto guards = file.find("guards"))
        guards->fail("rule files say what networks must keep, so a batch has no guards",
                     "list rule files in 'rules': \"paper\", or one with a :when of its own");
    file.only({"models", "targets", "rules", "seeds", "options"});
    file.at("models");
    const fs::path folder = fs::path(source->name).parent_path();
    const auto models = list(file, "models", {}), targets = list(file, "targets", {"host"}), rules = list(file, "rules", {"default"});
    for (const std::string& model : models)
        if (model.empty() || model[0] == '-')
            file.at("models").fail(fmt::format("'{}' is no model's name: it would be read as an option", model), "write './-NAME' for a file of such a name");
    const auto seeds = seeds_of(file);
    const auto options = options_of(file);
    if (models.size() * targets.size() * rules.size() * seeds.size() > max_jobs) file.fail(fmt::format("these lists make more than {} jobs", max_jobs));
    std::vector<Job> jobs;
    std::set<std::string> ids, names;
    for (const std::string& model : models)
        for (const std::string& target : targets)
            for (const std::string& rule : rules)
                for (std::int64_t seed : seeds) {
                    Job job{"", "", resolved(model, folder), target, resolved(rule, folder), seed, options};
                    Hasher hash;
                    for (const std::string& a : job.arguments("")) hash.add(a);
                    job.id = hash.finish().hex();
                    if (!ids.insert(job.id).second) continue;  // written twice
                    job.name = fmt::format("{}.{}.{}.{}", plain(model), plain(target), plain(rule), seed);
                    if (!names.insert(job.name).second) names.insert(job.name += "." + job.id.substr(0, 8));
                    jobs.push_back(std::move(job));
                }
    return jobs;
}

}  // namespace loopegg
