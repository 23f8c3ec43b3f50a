// 'loopegg batch': many models, targets, rule files and seeds from one file.
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "batch/batch.hpp"
#include "batch/slurm.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "report/words.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace cmd_batch {

std::atomic<bool> interrupted{false};

struct Counts {
    int waiting = 0, running = 0, done = 0, failed = 0;
    explicit Counts(const std::vector<JobRecord>& records) {
        for (const JobRecord& r : records)
            (r.state == JobState::waiting ? waiting : r.state == JobState::running ? running : r.state == JobState::done ? done : failed)++;
    }
    std::string text() const { return fmt::format("{} done, {} failed, {} running, {} waiting", done, failed, running, waiting); }
};

// Mean time of the jobs that are finished: the only honest guess for those that are not.
double mean_seconds(const std::vector<JobRecord>& records) {
    double sum = 0;
    int n = 0;
    for (const JobRecord& r : records)
        if (r.state == JobState::done) sum += r.seconds, ++n;
    return n ? sum / n : 0;
}

std::string expected(const std::vector<JobRecord>& records, int at_once) {
    const double mean = mean_seconds(records);
    if (mean <= 0) return "not known before the first job is done";
    double left = 0;
    for (const JobRecord& r : records)
        if (r.state == JobState::waiting)
            left += mean;
        else if (r.state == JobState::running)
            left += std::max(0.0, mean - r.running_for);
    return "about " + human_seconds(left / at_once);
}

// The table is drawn over itself on a terminal; elsewhere a line per job that changed its state.
class LiveTable {
public:
    LiveTable(Session& session, bool terminal, int at_once) : session_(session), terminal_(terminal), at_once_(at_once) {}

    bool operator()(const std::vector<JobRecord>& records) {
        if (terminal_)
            draw(records);
        else
            tell(records);
        return interrupted;
    }

private:
    void tell(const std::vector<JobRecord>& records) {
        for (const JobRecord& r : records) {
            auto [it, added] = known_.emplace(r.id, JobState::waiting);
            if (it->second == r.state) continue;
            it->second = r.state;
            if (r.state == JobState::failed)
                session_.progress.note(fmt::format("{}: failed: {}", r.name, r.error));
            else if (r.state == JobState::done)
                session_.progress.note(fmt::format("{}: done in {} ({})", r.name, human_seconds(r.seconds), Counts(records).text()));
            else if (r.state == JobState::running)
                session_.progress.note(fmt::format("{}: running", r.name));
        }
    }

    void draw(const std::vector<JobRecord>& records) {
        constexpr std::size_t max_lines = 20;
        std::vector<std::string> lines{fmt::format("{}; time left {}", Counts(records).text(), expected(records, at_once_))};
        auto add = [&](JobState state, auto&& words) {
            for (const JobRecord& r : records)
                if (r.state == state && lines.size() < max_lines) lines.push_back(fmt::format("  {:<8} {:<52.52} {}", to_string(state), r.name, words(r)));
        };
        add(JobState::running, [](const JobRecord& r) { return human_seconds(r.running_for) + (r.ours ? "" : ", another process"); });
        add(JobState::failed, [](const JobRecord& r) { return r.error.substr(0, std::min<std::size_t>(r.error.find('\n'), 50)); });
        add(JobState::done, [](const JobRecord& r) { return human_seconds(r.seconds); });
        add(JobState::waiting, [](const JobRecord&) { return std::string(); });
        std::string text = drawn_ ? fmt::format("\033[{}A", drawn_) : "";
        for (const std::string& line : lines) text += "\r\033[K" + line + "\n";
        fmt::print(stderr, "{}\033[J", text);
        drawn_ = lines.size();
    }

    Session& session_;
    bool terminal_;
    int at_once_;
    std::size_t drawn_ = 0;
    std::map<std::string, JobState> known_;
};

void print_table(const nlohmann::json& result) {
    std::size_t width = 4;
    for (const auto& row : result["jobs"]) width = std::max(width, row["name"].get<std::string>().size());
    fmt::print("{:<{}}  {:<8} {:>9} {:>9} {:>9} {:>9}\n", "job", width, "state", "before", "after", "speed-up", "capacity");
    for (const auto& row : result["jobs"]) {
        const std::string name = row["name"], state = row["state"];
        if (row.contains("speedup"))
            fmt::print("{:<{}}  {:<8} {:>9} {:>9} {:>8.2f}x {:>9.3f}{}\n", name, width, state, human_ms(row["original_ms"].get<double>()),
                       human_ms(row["optimized_ms"].get<double>()), row["speedup"].get<double>(), row["capacity"].get<double>(),
                       row["measured"].get<bool>() ? "" : "  (estimated)");
        else
            fmt::print("{:<{}}  {:<8} {}\n", name, width, state, row.value("error", std::string()));
    }
}

int dry_run(Session& session, const std::vector<Job>& jobs, const fs::path& out, int at_once) {
    std::vector<JobRecord> records;
    std::vector<std::string> ids;
    for (const Job& job : jobs) ids.push_back(job.id), records.push_back({job.id, job.name, JobState::waiting, "", 0, 0, false});
    if (has_queue(out)) {
        std::map<std::string, JobRecord> known;
        for (JobRecord& r : open_queue(out)->list(ids)) known[r.id] = r;
        for (JobRecord& r : records)
            if (known.contains(r.id)) r = known[r.id];
    }
    if (session.json) {
        nlohmann::json list = nlohmann::json::array();
        for (std::size_t i = 0; i < jobs.size(); ++i)
            list.push_back({{"name", jobs[i].name}, {"state", to_string(records[i].state)}, {"arguments", jobs[i].arguments(out / "runs" / jobs[i].name)}});
        session.answer({{"dry_run", true}, {"jobs", list}, {"expected", expected(records, at_once)}});
        return 0;
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        std::string command = "loopegg";
        for (const std::string& a : jobs[i].arguments(out / "runs" / jobs[i].name)) command += " " + terminal_text(shell_word(a));
        fmt::print("{:<8} {}\n", to_string(records[i].state), command);
    }
    fmt::print("{}, {}; expected time: {}\n", plural(static_cast<std::int64_t>(jobs.size()), "job"), Counts(records).text(), expected(records, at_once));
    return 0;
}

std::vector<JobRecord> records_of(const std::vector<Job>& jobs, JobQueue& queue) {
    std::vector<std::string> ids;
    for (const Job& job : jobs) ids.push_back(job.id);
    return queue.list(ids);
}

// What is done, what runs where, what failed and why: from the queue alone, whoever works on it.
int tell_status(Session& session, const std::vector<Job>& jobs, const fs::path& out) {
    if (!has_queue(out)) throw UserError(Diagnostic{fmt::format("there is no batch at '{}'", out.string()), {}, "start one: loopegg batch JOBS --out DIR"});
    const std::vector<JobRecord> records = records_of(jobs, *open_queue(out));
    const Counts counts(records);
    const std::map<std::string, int> tasks = array_tasks(out);
    if (session.json) {
        nlohmann::json list = nlohmann::json::array();
        for (const JobRecord& r : records) {
            nlohmann::json row{{"name", r.name}, {"state", to_string(r.state)}};
            if (r.state == JobState::running) row["owner"] = r.owner, row["seconds"] = r.running_for;
            if (r.state == JobState::failed) row["error"] = r.error;
            if (r.state == JobState::done) row["seconds"] = r.seconds;
            list.push_back(std::move(row));
        }
        session.answer({{"done", counts.done},
                        {"failed", counts.failed},
                        {"running", counts.running},
                        {"waiting", static_cast<int>(jobs.size()) - counts.done - counts.failed - counts.running},
                        {"jobs", list},
                        {"slurm", tasks}});
        return 0;
    }
    fmt::print("{}\n", counts.text());
    for (const JobRecord& r : records)
        if (r.state == JobState::running) fmt::print("  running  {}  {}, {}\n", r.name, human_seconds(r.running_for), r.owner);
    for (const JobRecord& r : records)
        if (r.state == JobState::failed) fmt::print("  failed   {}  {}\n", r.name, r.error.substr(0, r.error.find('\n')));
    for (const auto& [state, n] : tasks) fmt::print("  Slurm has {} {}\n", plural(n, "task"), state);
    return 0;
}

int submit(Session& session, const std::vector<Job>& jobs, const std::string& file, const fs::path& out, const SlurmOptions& slurm) {
    auto queue = open_queue(out);
    queue->add(jobs);
    const Counts counts(records_of(jobs, *queue));
    const int open = counts.waiting + counts.running;
    const std::string array = open ? submit_array(file, out, open, slurm) : "";
    if (session.json)
        session.answer({{"array", array}, {"open", open}});
    else if (open == 0)
        fmt::print("nothing is to be done: {}\n", counts.text());
    else
        fmt::print("array job {}: {} ({} open); 'loopegg batch {} --out {} --status' shows its progress\n", array,
                   plural(static_cast<std::int64_t>(jobs.size()), "job"), open, file, out.string());
    return 0;
}

Action setup(CLI::App& app) {
    struct Options {
        std::string file, program;
        BatchOptions batch;
        bool dry = false, retry = false, slurm = false, status = false;
        SlurmOptions cluster;
    };
    auto o = std::make_shared<Options>();
    app.add_option("JOBS", o->file, "a batch file: {\"models\": [...], \"targets\": [...], \"rules\": [...], \"seeds\": [...], \"options\": {...}}")
        ->required();
    app.add_option("-o,--out", o->batch.out, "the folder of the batch; an existing batch is resumed")->required();
    app.add_option("-j,--jobs", o->batch.at_once, "number of parallel jobs in this process (they disturb each other's times)")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    app.add_option("--job-seconds", o->batch.job_seconds, "time limit of a job in seconds (0: none)")->check(CLI::NonNegativeNumber);
    add_store_option(app);
    CLI::Option* slurm = app.add_flag("--slurm", o->slurm, "submit an array job to Slurm, whose tasks run the jobs; requires a store on a server");
    app.add_option("--tasks", o->cluster.tasks, "number of tasks of the array (default: one per open job, at most 16)")
        ->check(CLI::Range(1, 100000))
        ->needs(slurm);
    app.add_option("--sbatch", o->cluster.words, "an option for sbatch, such as --sbatch=--time=2:00:00 (repeatable)")->needs(slurm);
    app.add_flag("--status", o->status, "show the progress of the batch without running anything")->excludes(slurm);
    app.add_flag("--leave", o->batch.leave, "end when no job is left to take")->group("");  // for the tasks of an array
    app.add_flag("--retry", o->retry, "run failed jobs again");
    app.add_flag("--dry-run", o->dry, "show the jobs and the expected time without running anything");
    app.add_option("--program", o->program, "run this instead of loopegg itself")->group("");  // for tests
    CLI::App* self = &app;
    return [o, self](Session& session) {
        const std::vector<Job> jobs = read_jobs(read_source(o->file));
        if (o->dry) return dry_run(session, jobs, o->batch.out, o->batch.at_once);
        if (o->status) return tell_status(session, jobs, o->batch.out);
        fs::create_directories(o->batch.out / "runs");
        auto queue = open_queue(o->batch.out);
        if (o->retry) {
            std::vector<std::string> ids;
            for (const Job& job : jobs) ids.push_back(job.id);
            queue->forget_failures(ids);
        }
        if (o->slurm) {
            o->cluster.job_seconds = o->batch.job_seconds, o->cluster.at_once = o->batch.at_once;
            if (!o->program.empty()) o->cluster.program = fs::absolute(o->program);
            return submit(session, jobs, o->file, o->batch.out, o->cluster);
        }
        auto runner = process_runner(o->program.empty() ? fs::read_symlink("/proc/self/exe") : fs::absolute(o->program));
        ::signal(SIGINT, [](int) { interrupted = true; });
        ::signal(SIGTERM, [](int) { interrupted = true; });
        LiveTable table(session, ::isatty(STDERR_FILENO) && self->count("--quiet") == 0, o->batch.at_once);
        const bool whole = run_batch(jobs, *queue, *runner, o->batch, std::ref(table));
        nlohmann::json result = batch_result(jobs, *queue, o->batch.out);
        write_file(o->batch.out / "result.json", result.dump(1) + "\n");
        write_file(o->batch.out / "result.csv", batch_csv(result));
        if (session.json)
            session.answer(result);
        else
            print_table(result);
        if (!whole && !(o->batch.leave && !interrupted)) {
            session.progress.note("stopped; the same command resumes from here");
            return 1;
        }
        const int failed = result["failed"];
        if (failed > 0)
            fmt::print(stderr, "error: {} of {} jobs failed; 'loopegg batch {} --out {} --status' shows why\n", failed, jobs.size(), o->file,
                       o->batch.out.string());
        return failed == 0 ? 0 : 1;
    };
}

}  // namespace cmd_batch

const Command batch_command{"batch", "optimize many networks: models x targets x rule files x seeds", "loopegg batch examples/batch.json --out batch/",
                            cmd_batch::setup};

}  // namespace loopegg
