// A batch as a user writes it (JOBS.json), and the jobs that the batch represents.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/source.hpp"

namespace loopegg {

// One call of 'optimize'. Two jobs with the same arguments are the same job, whichever file they are in.
struct Job {
    std::string id;    // hash of everything below but the name
    std::string name;  // also the name of its folder: "resnet34-cifar10.host.default.1"
    std::string model, target, rules;
    std::int64_t seed = 1;
    std::vector<std::string> options;  // further arguments: {"--trials", "12"}

    // The arguments of the child, without the program: optimize MODEL --target ... --out folder
    std::vector<std::string> arguments(const std::filesystem::path& folder) const;
};

// {"models": [...], "targets": ["host"], "rules": ["default"], "seeds": [1], "options": {"trials": 12}}:
// represents every combination. Only "models" must be there. Paths of models and rule files are relative to the file's own folder.
// Throws UserError with the place of what is wrong.
std::vector<Job> read_jobs(const SourcePtr& source);

}  // namespace loopegg
