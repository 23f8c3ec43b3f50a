#include <fmt/format.h>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "batch/batch.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

class JobProcess final : public RunningJob {
public:
    JobProcess(const CommandLine& command, const fs::path& log) : process_(command, log, log) {}

    std::optional<std::string> ended() override {
        const std::optional<CommandEnd> end = process_.ended();
        if (!end) return {};
        is_cancelled_ = end->is_cancelled;
        return end->words;
    }
    bool is_cancelled() const override { return is_cancelled_; }
    void stop() override { process_.stop(); }  // it keeps what it measured

private:
    ChildProcess process_;
    bool is_cancelled_ = false;
};

class ProcessRunner final : public JobRunner {
public:
    explicit ProcessRunner(fs::path program) : program_(std::move(program)) {}

    std::unique_ptr<RunningJob> start(const Job& job, const fs::path& folder) override {
        std::error_code ignored;
        fs::remove_all(folder, ignored);  // what a killed attempt left; measured times are in the store, not here
        fs::create_directories(folder);
        CommandLine command{job.arguments(folder)};
        command.words.insert(command.words.begin(), program_.string());
        return std::make_unique<JobProcess>(command, folder / "log.txt");
    }

private:
    fs::path program_;
};

}  // namespace

std::unique_ptr<JobRunner> process_runner(fs::path program) { return std::make_unique<ProcessRunner>(std::move(program)); }

}  // namespace loopegg
