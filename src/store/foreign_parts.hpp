// An SQLite file may be a stranger's, and SQLite runs what its schema says: triggers, views and virtual tables that no loopegg wrote are not used.
#pragma once
#include <string>

struct sqlite3;

namespace loopegg {

// Views are off, a schema may call no function that does more than compute, and no value is larger than any of ours.
void distrust_schema(sqlite3* db);

// The first part of the schema that can run something and is none of ours, in words ("the trigger 'x'"); "" for none.
std::string foreign_part(sqlite3* db);

}  // namespace loopegg
