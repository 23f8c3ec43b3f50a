#include "store/schema.hpp"

namespace loopegg {

const std::vector<Table>& store_tables() {
    using enum ColumnType;
    static const std::vector<Table> all{
        // state: claimed | measured | failed. `owner` names a process (base/owner.hpp) and one store inside it; `at` is when it last said that it lives,
        // or when the row was written.
        {"latency",
         {{"key", text, "NOT NULL"},
          {"target", text, "NOT NULL DEFAULT ''"},
          {"nest", text, "NOT NULL DEFAULT ''"},
          {"state", text, "NOT NULL DEFAULT ''"},
          {"median_ms", real},
          {"iqr_ms", real},
          {"n", integer},
          {"measured", integer},
          {"disturbed", integer},
          {"why", text},
          {"seconds", real},
          {"timing", text},
          {"owner", text},
          {"machine", text},
          {"at", integer, "NOT NULL DEFAULT 0"}},
         {"key"}},
        {"rule_counts",
         {{"class", text, "NOT NULL"},
          {"network", text, "NOT NULL"},
          {"rule", text, "NOT NULL"},
          {"fired", integer, "NOT NULL DEFAULT 0"},
          {"asked", integer, "NOT NULL DEFAULT 0"},
          {"paid", integer, "NOT NULL DEFAULT 0"}},
         {"class", "network", "rule"}},
        {"sequence_counts", {{"class", text, "NOT NULL"}, {"network", text, "NOT NULL"}, {"sequence", text, "NOT NULL"}}, {"class", "network", "sequence"}},
        {"evidence", {{"id", number}, {"key", text, "NOT NULL"}, {"body", text, "NOT NULL"}, {"at", integer, "NOT NULL DEFAULT 0"}}, {"id"}, {"key"}, true},
        // state: waiting | running | done | failed. `batch` is the folder of the batch where several share a store; `place` orders its jobs; `beat` is when the
        // owner last said that it lives; `result` is written once, with 'done'.
        {"jobs",
         {{"id", text, "NOT NULL"},
          {"name", text, "NOT NULL DEFAULT ''"},
          {"state", text, "NOT NULL DEFAULT 'waiting'"},
          {"owner", text, "NOT NULL DEFAULT ''"},
          {"began", real, "NOT NULL DEFAULT 0"},
          {"seconds", real, "NOT NULL DEFAULT 0"},
          {"error", text, "NOT NULL DEFAULT ''"},
          {"beat", real, "NOT NULL DEFAULT 0"},
          {"batch", text, "NOT NULL DEFAULT ''"},
          {"place", integer, "NOT NULL DEFAULT 0"},
          {"result", text, "NOT NULL DEFAULT ''"}},
         {"id"},
         {"batch", "state", "place"}},
        // Boards that ssh reaches, as they were last seen. state: up | away; `why` is of one that is away; `since` is when it came or went; `at` is when it
        // was last heard of.
        {"boards",
         {{"target", text, "NOT NULL"},
          {"address", text, "NOT NULL"},
          {"state", text, "NOT NULL DEFAULT ''"},
          {"why", text, "NOT NULL DEFAULT ''"},
          {"cpu", text, "NOT NULL DEFAULT ''"},
          {"conditions", text, "NOT NULL DEFAULT ''"},
          {"measured", integer, "NOT NULL DEFAULT 0"},
          {"lost", integer, "NOT NULL DEFAULT 0"},
          {"since", integer, "NOT NULL DEFAULT 0"},
          {"at", integer, "NOT NULL DEFAULT 0"}},
         {"target", "address"}},
    };
    return all;
}

std::string column_list(const std::vector<Column>& columns, const std::string& before) {
    std::string out;
    for (const Column& c : columns) out += (out.empty() ? "" : ", ") + before + c.name;
    return out;
}

}  // namespace loopegg
