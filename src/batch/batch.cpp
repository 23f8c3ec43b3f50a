#include "batch/batch.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "report/run.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

using Clock = std::chrono::steady_clock;

struct Slot {
    std::unique_ptr<RunningJob> process;
    Clock::time_point began;
};

double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// What the run itself must show before its job counts as done.
std::string missing_result(const fs::path& folder) { return fs::exists(folder / "result.json") ? "" : "the run ended well but wrote no result.json"; }

// What the table shows of a run that has succeeded.
json figures_of(const fs::path& folder) {
    try {
        const FinishedRun run = read_run(folder);
        return {{"returned", run.returned},
                {"speedup", run.speedup},
                {"original_ms", run.original.latency.median_ms},
                {"optimized_ms", run.optimized.latency.median_ms},
                {"measured", run.optimized.latency.measured},
                {"parameters", run.optimized.parameters},
                {"macs", run.optimized.macs},
                {"capacity", run.guard.ratio},
                {"allowed", run.guard.allowed},
                {"sites", run.sites.size()},
                {"changed", run.changed_sites()},
                {"seconds", run.total_seconds}};
    } catch (const UserError& e) {
        return {{"error", e.what()}};  // the job is done, its files are not as they should be
    }
}

json row_of(const Job& job, const JobRecord& record, const std::string& result, const fs::path& out) {
    json row{{"name", job.name}, {"model", job.model}, {"target", job.target}, {"rules", job.rules}, {"seed", job.seed}, {"state", to_string(record.state)}};
    if (record.state == JobState::failed) row["error"] = record.error;
    if (record.state != JobState::done) return row;
    row["folder"] = (fs::path("runs") / job.name).string();
    const json kept = json::parse(result, nullptr, false);
    row.update(kept.is_object() ? kept : figures_of(out / "runs" / job.name));  // queues of earlier programs keep no results
    return row;
}

}  // namespace

bool run_batch(const std::vector<Job>& jobs, JobQueue& queue, JobRunner& runner, const BatchOptions& options, const BatchWatcher& watcher) {
    std::map<std::string, const Job*> by_id;
    std::vector<std::string> ids;
    for (const Job& job : jobs) by_id[job.id] = &job, ids.push_back(job.id);
    queue.add(jobs);
    std::map<std::string, Slot> running;
    std::map<std::string, int> is_cancelled;
    Clock::time_point look_again = Clock::now();
    while (true) {
        for (auto it = running.begin(); it != running.end();) {
            std::optional<std::string> error = it->second.process->ended();
            const double seconds = since(it->second.began);
            if (!error && options.job_seconds > 0 && seconds > options.job_seconds) {
                it->second.process->stop();
                error = fmt::format("stopped after {:.0f} s, the limit for one job", options.job_seconds);
            }
            if (!error) {
                ++it;
                continue;
            }
            // A cluster that ends a task sends its signal to everything in it, in any order: the job waits again. A job that always ends so is a failed one.
            if (it->second.process->is_cancelled() && ++is_cancelled[it->first] <= 3) {
                queue.put_back(it->first);
                it = running.erase(it);
                continue;
            }
            const fs::path folder = options.out / "runs" / by_id.at(it->first)->name;
            if (error->empty()) *error = missing_result(folder);
            queue.finish(it->first, *error, seconds, error->empty() ? figures_of(folder).dump() : "");
            it = running.erase(it);
        }
        while (static_cast<int>(running.size()) < options.at_once) {
            std::optional<std::string> id = queue.take();
            if (!id) break;
            const Job& job = *by_id.at(*id);
            try {
                running[*id] = {runner.start(job, options.out / "runs" / job.name), Clock::now()};
            } catch (const std::exception& e) {
                running.erase(*id);
                queue.finish(*id, e.what(), 0);  // this job's misfortune, not the batch's
            }
        }
        queue.say_that_we_live();
        // Reading the whole table takes time where it is long or far away: a tenth of ours at most, unless there is nothing else to do.
        if (running.empty() || Clock::now() >= look_again) {
            const Clock::time_point began = Clock::now();
            const std::vector<JobRecord> records = queue.list(ids);
            look_again = Clock::now() + 9 * (Clock::now() - began);
            if (watcher(records)) {
                for (auto& [id, slot] : running) slot.process->stop(), queue.put_back(id);
                return false;
            }
            bool open = !running.empty();
            for (const JobRecord& r : records) open = open || r.state == JobState::waiting || r.state == JobState::running;
            if (!open || (options.leave && running.empty())) return !open;
        }
        std::this_thread::sleep_for(std::chrono::duration<double>(options.poll_seconds));
    }
}

json batch_result(const std::vector<Job>& jobs, JobQueue& queue, const fs::path& out) {
    std::vector<std::string> ids;
    for (const Job& job : jobs) ids.push_back(job.id);
    const std::vector<JobRecord> records = queue.list(ids);
    std::map<std::string, std::string> results = queue.results();
    require(records.size() == jobs.size(), "the queue lost a job of its batch");
    json rows = json::array();
    int done = 0, failed = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        done += records[i].state == JobState::done, failed += records[i].state == JobState::failed;
        rows.push_back(row_of(jobs[i], records[i], results[jobs[i].id], out));
    }
    return {{"jobs", rows}, {"done", done}, {"failed", failed}, {"open", static_cast<int>(jobs.size()) - done - failed}};
}

std::string batch_csv(const json& result) {
    const std::vector<std::string> columns{"name",    "model",       "target",       "rules",    "seed",       "state", "returned",
                                           "speedup", "original_ms", "optimized_ms", "measured", "parameters", "macs",  "capacity",
                                           "allowed", "sites",       "changed",      "seconds",  "error"};
    std::string out = join(columns, ",") + "\n";
    for (const json& row : result["jobs"]) {
        std::vector<std::string> cells;
        for (const std::string& c : columns) {
            std::string cell = !row.contains(c) ? "" : row[c].is_string() ? row[c].get<std::string>() : row[c].dump();
            std::replace(cell.begin(), cell.end(), '\n', ' ');  // one line a job, for tools that read lines
            cells.push_back(escape_csv(cell));
        }
        out += join(cells, ",") + "\n";
    }
    return out;
}

}  // namespace loopegg
