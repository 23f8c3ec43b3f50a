// What a kind of database must be able to do for a store: run statements with values, read rows, be all or nothing, and know its version.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "store/address.hpp"
#include "store/schema.hpp"

namespace loopegg {

using StoreValue = std::variant<std::monostate, std::int64_t, double, std::string>;

class StoreRows {
public:
    virtual ~StoreRows() = default;
    virtual bool next() = 0;
    virtual std::string text(int column) const = 0;  // "" for nothing
    virtual double real(int column) const = 0;
    virtual std::int64_t integer(int column) const = 0;
    virtual bool null(int column) const = 0;
};

// A transaction failed through nobody's fault: the server went away, or two transactions waited for each other. The transaction is done again from its
// beginning.
struct TryTransactionAgain : std::exception {};

class StoreBackend {
public:
    virtual ~StoreBackend() = default;
    // Statements are written for both kinds of database. '?' represents a value, and unixepoch() is the database's own clock in whole seconds.
    virtual std::unique_ptr<StoreRows> execute(const std::string& sql, const std::vector<StoreValue>& values) = 0;
    virtual std::int64_t changes() const = 0;  // rows that the last statement wrote
    virtual void begin() = 0;
    virtual void commit() = 0;
    virtual void roll_back() noexcept = 0;
    virtual const char* skip_locked() const = 0;      // the end of a SELECT that takes a row which nobody else is taking
    [[noreturn]] virtual void fail_for_a_test() = 0;  // fails as it would on a full disk

    virtual int version() = 0;  // 0: none yet
    virtual void set_version(int version) = 0;
    virtual void lock_for_upgrade() = 0;                               // inside a transaction: others wait
    virtual std::set<std::string> columns_of(const Table& table) = 0;  // empty: there is no such table
    virtual void create(const Table& table) = 0;
    virtual void add_column(const Table& table, const Column& column) = 0;
    virtual void protect(const Table& table) = 0;  // refuses changes to rows of an append-only table
};

std::unique_ptr<StoreBackend> open_sqlite(const StoreAddress& address, const std::string& name);
std::unique_ptr<StoreBackend> open_postgresql(const StoreAddress& address, const std::string& name);

}  // namespace loopegg
