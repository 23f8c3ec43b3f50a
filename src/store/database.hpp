// Stores that several processes use at once, wherever they are: opened, upgraded, waited for and complained about in one place.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "store/address.hpp"
#include "store/backend.hpp"

namespace loopegg {

// What stores cost this process: how often it called them, and how long it waited for them.

// The seconds are summed over threads, so they may be more than the time that passed.
struct StoreCost {
    std::int64_t calls = 0;
    double seconds = 0;
};
StoreCost operator-(const StoreCost& now, const StoreCost& before);

// The cost since the process began. Work between the statements of a transaction is not work of the store, and does not count.
StoreCost store_cost();

// Counts one call, from here to the end of the scope. A call inside another call of the same thread counts as a part of the outer call.
class StoreCall {
public:
    StoreCall();
    ~StoreCall();
    StoreCall(const StoreCall&) = delete;
    StoreCall& operator=(const StoreCall&) = delete;

private:
    double start_ = 0;
};

class Database {
public:
    // `name` is for words ("the latency store"). The store is made where there is none. A store of an earlier version gets what it lacks. A store of a later
    // version is refused, because we cannot know what its rows mean. Throws UserError with the address, the cause and what to do.
    Database(StoreAddress address, std::string name);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // Does all of `work` or nothing, also when an exception, a kill or a server's restart comes in between. `work` may be called again from its
    // beginning, so it changes nothing but the store and what it assigns again.
    template <class Work>
    auto atomically(Work&& work) {
        for (;;) {
            try {
                Transaction all(*backend_);
                if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
                    work();
                    all.commit();
                    return;
                } else {
                    auto answer = work();
                    all.commit();
                    return answer;
                }
            } catch (const TryTransactionAgain&) {
            }
        }
    }

    std::int64_t changes() const { return backend_->changes(); }
    const char* skip_locked() const { return backend_->skip_locked(); }
    const StoreAddress& address() const { return address_; }
    StoreBackend& backend() const { return *backend_; }

private:
    // A transaction takes the right to write first, or locks row by row. So nobody writes between its reads and its writes of the same rows.
    class Transaction {
    public:
        explicit Transaction(StoreBackend& backend) : backend_(backend) {
            StoreCall call;
            backend_.begin();
        }
        ~Transaction() {
            if (committed_) return;
            StoreCall call;
            backend_.roll_back();
        }
        Transaction(const Transaction&) = delete;
        Transaction& operator=(const Transaction&) = delete;
        void commit() {
            StoreCall call;
            backend_.commit(), committed_ = true;
        }

    private:
        StoreBackend& backend_;
        bool committed_ = false;
    };
    void upgrade(const std::string& name);

    StoreAddress address_;
    std::unique_ptr<StoreBackend> backend_;
};

// One statement, its values bound from left to right, and its rows.
class StoreQuery {
public:
    StoreQuery(Database& db, std::string sql);
    StoreQuery(StoreQuery&&) = default;
    StoreQuery& bind(StoreValue v) { return values_.push_back(std::move(v)), *this; }
    bool row();  // the next one; false at the end
    void done() {
        while (row()) {
        }
    }
    std::string text(int column) const { return rows_->text(column); }
    double real(int column) const { return rows_->real(column); }
    std::int64_t integer(int column) const { return rows_->integer(column); }
    bool null(int column) const { return rows_->null(column); }
    StoreValue value(int column, ColumnType type) const;

private:
    Database& db_;
    std::string sql_;
    std::vector<StoreValue> values_;
    std::unique_ptr<StoreRows> rows_;
};

}  // namespace loopegg
