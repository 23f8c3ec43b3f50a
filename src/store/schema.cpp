#include <string_view>

#include "store/schema.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

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

namespace {

std::string_view text(sqlite3_stmt* s, int column) {
    const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
    return t ? t : "";
}

// What keeps a table of ours append-only: it says no, and nothing else.
bool only_refuses(std::string_view sql) {
    constexpr std::string_view begin = " BEGIN SELECT RAISE(ABORT, '", end = "'); END";
    const std::size_t at = sql.find(begin), words = at + begin.size();
    if (at == sql.npos || sql.size() < words + end.size() || !sql.ends_with(end)) return false;
    return sql.substr(words, sql.size() - end.size() - words).find('\'') == sql.npos && sql.substr(0, at).find_first_of("(\"'`[") == sql.npos;
}

}  // namespace

void distrust_schema(sqlite3* db) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
}

std::string foreign_part(sqlite3* db) {
    sqlite3_stmt* s = nullptr;
    std::string found;
    if (sqlite3_prepare_v2(db, "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'", -1, &s, nullptr) ==
        SQLITE_OK)
        while (found.empty() && sqlite3_step(s) == SQLITE_ROW) {
            if (text(s, 0) == "trigger" && only_refuses(text(s, 2))) continue;
            found = fmt::format("the {} '{}'", text(s, 0) == "table" ? "virtual table" : text(s, 0), text(s, 1).substr(0, 100));
        }
    sqlite3_finalize(s);
    return found;
}

}  // namespace loopegg
