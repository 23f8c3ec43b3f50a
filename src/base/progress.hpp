// Shows a waiting person what is happening: a bar on a terminal, plain lines otherwise, nothing with --quiet.
// Everything goes to standard error; standard output is for results.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace loopegg {

class Progress {
public:
    enum class Mode { quiet, lines, bar };
    explicit Progress(Mode mode) : mode_(mode) {}
    static Mode detect(bool quiet);  // bar when standard error is a terminal

    // Begins a stage; total 0 means unknown. A stage that begins inside another one is shown instead of the outer stage until the inner stage ends.
    void stage(std::string name, std::int64_t total = 0);
    void advance(std::int64_t done, std::string_view detail = {});  // how far the innermost stage is
    void finish(std::string_view summary = {});                     // ends the innermost stage with its time
    void note(std::string_view line);                               // one line that stays on the screen

    // A stage that ends with its scope, also when an error leaves the scope, so that the stage around it continues. With a null Progress nothing is shown.
    class Inner {
    public:
        Inner(Progress* progress, std::string name, std::int64_t total);
        ~Inner();
        Inner(const Inner&) = delete;
        void finish(std::string_view summary);

    private:
        Progress* progress_;
    };

private:
    struct Stage {
        std::string name;
        std::int64_t total, done;
        std::chrono::steady_clock::time_point began;
    };

    void draw(std::string_view detail);
    void clear_bar();

    Mode mode_;
    std::mutex mutex_;
    std::vector<Stage> stages_;  // the innermost is the last
    std::chrono::steady_clock::time_point drawn_{};
    bool bar_visible_ = false;
};

// "850 ms", "12.3 s", "4 min 05 s"
std::string human_seconds(double seconds);

}  // namespace loopegg
