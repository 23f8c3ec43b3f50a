// SQLite files that several processes open at once.
#pragma once
#include <sqlite3.h>

namespace loopegg {

// Runs a statement and gives SQLite's code, waiting up to a minute while others hold the file: switching to WAL does not wait by itself, as
// everything else does (sqlite3_busy_timeout).
inline int exec_waiting(sqlite3* db, const char* sql) {
    int code = SQLITE_BUSY;
    for (int tries = 0; tries < 600 && (code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr)) == SQLITE_BUSY; ++tries) sqlite3_sleep(100);
    return code;
}

}  // namespace loopegg
