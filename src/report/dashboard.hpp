// One page about what is going on: the jobs of a batch, the boards, and the best result so far. 'loopegg dashboard' rewrites the page as often as asked.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/board_health.hpp"

namespace loopegg {

struct DashboardJob {
    std::string name, state;                                               // waiting, running, done, failed
    std::string where{};                                                   // of a running job: "process 4711 on node7"
    std::string error{};                                                   // of a failed job
    double seconds = 0;                                                    // how long the job took, or has run
    std::optional<double> speedup{}, before_ms{}, after_ms{}, capacity{};  // of a job that is done
    bool measured = false;
};

struct Dashboard {
    std::string batch;  // the folder of the batch; "" where the page is about boards alone
    std::vector<DashboardJob> jobs;
    std::vector<BoardHealth> boards;
    std::map<std::string, int> slurm;  // tasks by state
    std::string date;                  // when the page was asked for
    double refresh_seconds = 0;        // after which the browser loads the page again; 0: never

    int count(const std::string& state) const;
    const DashboardJob* best() const;  // the largest speed-up; measured ones before estimated ones
};

// "12 of 20 jobs are done, and 1 failed", without markup.
std::string dashboard_headline(const Dashboard& d);
// The whole page. The page loads nothing from the network.
std::string dashboard_page(const Dashboard& d);

}  // namespace loopegg
