// What a store is made of, said once for every kind of database: its tables, and the version of all of them together.
#pragma once
#include <string>
#include <vector>

struct sqlite3;

namespace loopegg {

// Versions 1 and 2 are those of earlier files, which held one table each. A file of an earlier version gets the tables and columns that it lacks.
constexpr int schema_version = 4;

enum class ColumnType { text, integer, real, number };  // number: counts rows as they come

struct Column {
    const char* name;
    ColumnType type;
    const char* rest = "";  // "NOT NULL DEFAULT 0"
};

struct Table {
    const char* name;
    std::vector<Column> columns;
    std::vector<const char*> key;
    std::vector<const char*> index{};  // columns besides the key by which rows are looked for
    bool append_only = false;          // the database refuses a change of a row, whoever asks for it
};

const std::vector<Table>& store_tables();

// "name, state, owner": the columns of a table, with something before each.
std::string column_list(const std::vector<Column>& columns, const std::string& before = "");

// An SQLite file may be a stranger's, and SQLite runs what its schema says: triggers, views and virtual tables that no loopegg wrote are not used.

// Turns views off, lets a schema call only functions that compute and do nothing else, and limits the size of a value to what our stores need.
void distrust_schema(sqlite3* db);

// The first part of the schema that can run something and that loopegg did not write, in words ("the trigger 'x'"); "" for none.
std::string foreign_part(sqlite3* db);

}  // namespace loopegg
