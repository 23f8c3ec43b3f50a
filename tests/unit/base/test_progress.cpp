// What a waiting person is told.
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

#include "base/progress.hpp"

using namespace loopegg;

namespace {

// What is written to standard error while this lives.
class Captured {
public:
    Captured() : file_(std::tmpfile()), before_(::dup(STDERR_FILENO)) { ::dup2(::fileno(file_), STDERR_FILENO); }
    ~Captured() { ::dup2(before_, STDERR_FILENO), ::close(before_), std::fclose(file_); }
    std::string text() const {
        std::string all(4096, '\0');
        all.resize(static_cast<std::size_t>(::pread(::fileno(file_), all.data(), all.size(), 0)));
        return all;
    }

private:
    std::FILE* file_;
    int before_;
};

std::size_t at(const std::string& text, const std::string& part) {
    const std::size_t found = text.find(part);
    INFO(text);
    REQUIRE(found != std::string::npos);
    return found;
}

}  // namespace

TEST_CASE("a stage inside another ends first, and the outer one still has its line", "[unit][base]") {
    std::string text;
    {
        Captured captured;
        Progress progress(Progress::Mode::lines);
        progress.stage("confirm");
        {
            Progress::Inner inner(&progress, "compile", 3);
            inner.finish("3 kernels");
        }
        try {
            Progress::Inner inner(&progress, "again", 3);
            throw std::runtime_error("a kernel that cannot be compiled");
        } catch (const std::runtime_error&) {
        }
        progress.finish("both measured");
        text = captured.text();
    }
    CHECK(at(text, "compile      3 kernels") < at(text, "again        not finished"));
    CHECK(at(text, "again        not finished") < at(text, "confirm      both measured"));
}

TEST_CASE("nobody need be told", "[unit][base]") {
    Progress::Inner inner(nullptr, "compile", 3);
    inner.finish("3 kernels");
}
