// A batch on a Slurm cluster: one array job whose tasks take jobs from the queue that all nodes reach.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace loopegg {

struct SlurmOptions {
    int tasks = 0;                   // of the array; 0: one for each open job, sixteen at most
    std::vector<std::string> words;  // passed to sbatch as they are: "--time=2:00:00", "--partition=long"
    double job_seconds = 0;
    int at_once = 1;
    std::filesystem::path program{};  // what a task runs in place of 'optimize' of this program; for tests
};

// The script of the array job. It holds no address of a store, because the address goes through the environment, where nobody sees a password.
std::string slurm_script(const std::filesystem::path& loopegg, const std::filesystem::path& jobs, const std::filesystem::path& out,
                         const SlurmOptions& options);

// Submits the array job, writes its number into OUT/slurm/arrays, and returns the number. Throws UserError with the cause: no sbatch, no controller
// that answers, or a queue that other nodes cannot reach.
std::string submit_array(const std::filesystem::path& jobs, const std::filesystem::path& out, int open_jobs, const SlurmOptions& options);

// How many tasks of the batch's arrays Slurm has in each state ("RUNNING", "PENDING"); empty where there is no Slurm here.
std::map<std::string, int> array_tasks(const std::filesystem::path& out);

}  // namespace loopegg
