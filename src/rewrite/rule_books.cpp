#include "rewrite/rule_books.hpp"

#include <map>
#include <mutex>

#include "rules/load.hpp"

namespace loopegg {

std::shared_ptr<const RuleBook> read_book(const std::filesystem::path& file) {
    static std::mutex mutex;
    static std::map<std::filesystem::path, std::shared_ptr<const RuleBook>> all;
    const std::lock_guard lock(mutex);
    auto& found = all[file];
    if (!found) found = std::make_shared<const RuleBook>(load_rules(file));
    return found;
}

std::shared_ptr<const RuleBook> book_with_phase(const std::string& phase, const std::filesystem::path& own, const std::filesystem::path& shipped) {
    if (!own.empty())
        if (auto book = read_book(own); book->find_phase(phase)) return book;
    return read_book(shipped);
}

}  // namespace loopegg
