// A file of many small cases, in place of a file for each of them: '=== NAME', what is read, a line '---', and what is said about it. A case without '---'
// has only what is said. Lines before the first case are a comment.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "base/files.hpp"

namespace loopegg {

struct TableCase {
    std::string name, input, expected;
    bool has_input = false;
};

class CaseTable {
public:
    explicit CaseTable(std::filesystem::path file) : file_(std::move(file)) {
        const std::string text = std::filesystem::exists(file_) ? read_file(file_) : "";
        for (std::size_t at = 0, end; at < text.size(); at = end) {
            end = std::min(text.find('\n', at), text.size() - 1) + 1;
            add(text.substr(at, end - at));
        }
    }

    std::vector<TableCase>& cases() { return cases_; }

    // Compares what is said with the table, or notes it for the table that is written anew.
    void check(TableCase& c, const std::string& said) {
        INFO(file_.filename().string() << ", case " << c.name);
        CHECK_FALSE(said.empty());
        if (regenerates())
            c.expected = said;
        else
            CHECK(c.expected == said);
    }
    void check(const std::string& name, const std::string& said) {
        for (TableCase& c : cases_)
            if (c.name == name) return check(c, said);
        check(cases_.emplace_back(TableCase{name, "", "no message is known: LOOPEGG_REGENERATE=1 writes it\n"}), said);
    }

    void finish() const {
        if (!regenerates()) return;
        std::string text = comment_;
        for (const TableCase& c : cases_) text += "=== " + c.name + "\n" + (c.has_input ? c.input + "---\n" : "") + c.expected;
        write_file(file_, text);
    }

private:
    static bool regenerates() { return std::getenv("LOOPEGG_REGENERATE") != nullptr; }

    void add(const std::string& line) {
        if (line.starts_with("=== ")) {
            cases_.push_back({line.substr(4, line.size() - 5), "", ""});
        } else if (cases_.empty()) {
            comment_ += line;
        } else if (TableCase& c = cases_.back(); line == "---\n" && !c.has_input) {
            c.has_input = true, c.input = std::exchange(c.expected, "");
        } else {
            c.expected += line;
        }
    }

    std::filesystem::path file_;
    std::string comment_;
    std::vector<TableCase> cases_;
};

}  // namespace loopegg
