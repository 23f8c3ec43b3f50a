// A batch as 'loopegg batch' runs it, with another program in place of loopegg: what tests kill and start again.
//   batch_driver JOBS.json OUT PROGRAM [AT_ONCE]
#include <cstdio>

#include "base/files.hpp"
#include "batch/batch.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    BatchOptions options;
    options.out = argv[2], options.poll_seconds = 0.01, options.at_once = argc > 4 ? std::atoi(argv[4]) : 1;
    const std::vector<Job> jobs = read_jobs(read_source(argv[1]));
    std::filesystem::create_directories(options.out / "runs");
    auto queue = open_queue(options.out);
    auto runner = process_runner(argv[3]);
    run_batch(jobs, *queue, *runner, options, [](const std::vector<JobRecord>&) { return false; });
    const nlohmann::json result = batch_result(jobs, *queue, options.out);
    write_file(options.out / "result.json", result.dump(1) + "\n");
    write_file(options.out / "result.csv", batch_csv(result));
    return 0;
}
