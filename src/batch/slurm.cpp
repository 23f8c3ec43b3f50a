#include "batch/slurm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"
#include "store/address.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

// Array jobs that were submitted for this batch, one number a line.
std::vector<std::string> arrays_of(const fs::path& out) {
    std::vector<std::string> all;
    const fs::path file = out / "slurm" / "arrays";
    std::error_code ignored;
    if (!fs::exists(file, ignored)) return all;
    for (std::string& line : split(read_file(file), '\n'))
        if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos) all.push_back(std::move(line));
    return all;
}

}  // namespace

std::string slurm_script(const fs::path& loopegg, const fs::path& jobs, const fs::path& out, const SlurmOptions& options) {
    std::string program = shell_word(loopegg.string());
    std::string further = fmt::format(" --jobs {}", options.at_once);
    if (options.job_seconds > 0) further += fmt::format(" --job-seconds {}", options.job_seconds);
    if (!options.program.empty()) further += " --program " + shell_word(options.program.string());
    // 'exec': Slurm's signal before a time limit or a requeue then reaches loopegg itself, which puts its jobs back.
    return fmt::format(
        "#!/bin/sh\n"
        "[ -x {0} ] || {{ printf 'error: node %s has no %s: loopegg must be on a file system that all nodes share\\n' \"$(hostname)\" {0} >&2; exit 1; }}\n"
        "[ -r {1} ] || {{ printf 'error: node %s cannot read %s: the batch file and its folder must be on such a file system too\\n' \"$(hostname)\" {1} >&2; "
        "exit 1; }}\n"
        "exec {0} batch {1} --out {2} --leave --quiet{3}\n",
        program, shell_word(jobs.string()), shell_word(out.string()), further);
}

std::string submit_array(const fs::path& jobs, const fs::path& out, int open_jobs, const SlurmOptions& options) {
    if (!program_exists("sbatch"))
        throw UserError(Diagnostic{"there is no sbatch on this machine, so no batch can be given to Slurm",
                                   {},
                                   "Debian's package slurm-client has it; type the command where you submit other jobs"});
    const StoreAddress store = default_store();
    if (!store.on_server())
        throw UserError(Diagnostic{fmt::format("the tasks of an array run on many nodes, and '{}' is a file of one", store.words()),
                                   {},
                                   "name a store that all nodes reach: --store postgresql://[USER@]HOST[:PORT]/DATABASE"});
    const fs::path folder = fs::absolute(out) / "slurm", script = folder / "array.sh";
    fs::create_directories(folder);
    write_file(script, slurm_script(fs::read_symlink("/proc/self/exe"), fs::absolute(jobs), fs::absolute(out), options));
    const int tasks = options.tasks > 0 ? options.tasks : std::clamp(open_jobs, 1, 16);
    // A task that is requeued begins again with what the queue has then. The signal comes a minute before a time limit.
    std::vector<std::string> words{"sbatch",
                                   "--parsable",
                                   "--job-name=loopegg",
                                   fmt::format("--array=0-{}", tasks - 1),
                                   "--requeue",
                                   "--open-mode=append",
                                   "--signal=B:TERM@60",
                                   fmt::format("--cpus-per-task={}", options.at_once),
                                   fmt::format("--output={}/%A_%a.log", folder.string())};
    words.insert(words.end(), options.words.begin(), options.words.end());
    words.push_back(script.string());
    const std::string said = run_or_throw(words, "submitting the batch to Slurm");
    const std::string id = said.substr(0, said.find_first_not_of("0123456789"));  // "NUMBER" or "NUMBER;CLUSTER"
    if (id.empty()) throw UserError("sbatch answered '" + said.substr(0, 200) + "', expected the number of a job");
    try {
        std::string known;
        if (fs::exists(folder / "arrays")) known = read_file(folder / "arrays");
        write_file(folder / "arrays", known + id + "\n");
    } catch (const UserError& e) {
        throw UserError(Diagnostic{fmt::format("array job {} was submitted, and its number could not be kept: {}", id, e.diagnostics()[0].message),
                                   {},
                                   fmt::format("'scancel {}' takes it back", id)});
    }
    return id;
}

std::map<std::string, int> array_tasks(const fs::path& out) {
    std::map<std::string, int> states;
    const std::vector<std::string> ids = arrays_of(out);
    if (ids.empty() || !program_exists("squeue")) return states;
    try {
        // Asked by name, not by number: squeue fails for a number that the controller has forgotten.
        for (const std::string& line : split(run_or_throw({"squeue", "-h", "-r", "--name=loopegg", "-o", "%A %F %T"}, "asking Slurm"), '\n')) {
            const std::vector<std::string> words = split(line, ' ');
            if (words.size() == 3 && std::find(ids.begin(), ids.end(), words[1]) != ids.end()) ++states[words[2]];
        }
    } catch (const UserError&) {  // a controller that is away says nothing about the queue
    }
    return states;
}

}  // namespace loopegg
