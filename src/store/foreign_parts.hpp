// An SQLite file may be a stranger's, and SQLite runs what its schema says: triggers, views and virtual tables that no loopegg wrote are not used.
#pragma once
#include <string>

struct sqlite3;

namespace loopegg {

// Turns views off, lets a schema call only functions that compute and do nothing else, and limits the size of a value to what our stores need.
void distrust_schema(sqlite3* db);

// The first part of the schema that can run something and that loopegg did not write, in words ("the trigger 'x'"); "" for none.
std::string foreign_part(sqlite3* db);

}  // namespace loopegg
