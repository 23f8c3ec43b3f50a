#include "store/foreign_parts.hpp"

#include <sqlite3.h>

#include <string_view>

#include <fmt/format.h>

namespace loopegg {
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
