// Looking after stores: what is in one, what is wrong with it, saving what can be read of a damaged one, and forgetting rows.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace loopegg {

struct StoreReport {
    std::filesystem::path file;
    std::string kind;                       // "latencies", "evidence", or "" for a file that is neither
    bool there = false;
    std::int64_t rows = 0, failed = 0, claimed = 0, stale = 0;   // stale: claims of processes that are gone
    std::vector<std::string> faults;        // empty: nothing is wrong
    std::int64_t saved = 0;                 // by repair
};

// Reads and changes nothing.
StoreReport check_store(const std::filesystem::path& file);

// A store with all rows that can be read and mean something takes the place of the file, which stays beside it as FILE.damaged. A store with nothing
// wrong is left alone. Throws UserError where that cannot be done.
StoreReport repair_store(const std::filesystem::path& file);

// Deletes rows of latencies and gives their number: failures, claims, or those of a target or whose nest matches a glob; all kinds where no kind is
// named. Evidence is append-only: nothing of it is forgotten.
struct Forgotten {
    bool failures = false, claims = false, times = false;
    std::string target, nest = "*";
};
std::int64_t forget(const std::filesystem::path& file, const Forgotten& what);

}  // namespace loopegg
