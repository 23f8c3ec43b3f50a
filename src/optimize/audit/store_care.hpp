// Looking after stores: what a store holds, what is wrong with it, saving what can be read of a damaged store, and forgetting rows.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/address.hpp"

namespace loopegg {

struct StoreReport {
    StoreAddress address;
    std::string kind;  // "latencies", "evidence", "jobs", several of them, or "" for no rows or no store
    bool there = false;
    std::int64_t rows = 0, failed = 0, claimed = 0, stale = 0;  // stale: claims of processes that are gone
    std::vector<std::string> faults;                            // empty: nothing is wrong
    std::int64_t saved = 0;                                     // rows that a repair saved
};

// Only reads the store.
StoreReport check_store(const StoreAddress& address);

// Replaces the file by a store with all rows that can be read and are valid. The old file stays next to the new one as FILE.damaged. A server looks after
// its own files, so only invalid rows are deleted there. A store with nothing wrong is left alone. Throws UserError where the repair fails.
StoreReport repair_store(const StoreAddress& address);

// Deletes rows of latencies and gives their number: failures, claims, or those of a target or whose nest matches a glob; all kinds where no kind is
// named. Evidence is append-only: nothing of it is forgotten.
struct Forgotten {
    bool failures = false, claims = false, times = false;
    std::string target, nest = "*";
};
std::int64_t forget(const StoreAddress& address, const Forgotten& what);

// Copies all rows that `from` has and `to` lacks, between stores of any kind. Rows of `to` stay, except claims. Claims are not copied, and a running job
// is copied as a waiting one. Gives the number of rows by table.
std::map<std::string, std::int64_t> copy_store(const StoreAddress& from, const StoreAddress& to);

}  // namespace loopegg
