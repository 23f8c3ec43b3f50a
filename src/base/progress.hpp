// Tells a waiting person what is going on: a bar on a terminal, plain lines otherwise, nothing with --quiet.
// Everything goes to standard error; standard output is for results.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace loopegg {

class Progress {
public:
    enum class Mode { quiet, lines, bar };
    explicit Progress(Mode mode) : mode_(mode) {}
    static Mode detect(bool quiet);   // bar when standard error is a terminal

    void stage(std::string name, std::int64_t total = 0);   // begins a stage; total 0 means unknown
    void advance(std::int64_t done, std::string_view detail = {});   // how far the stage is
    void finish(std::string_view summary = {});             // ends the stage with its time
    void note(std::string_view line);                       // one line that stays on the screen

    // Seconds since the current stage began.
    double elapsed() const;

private:
    void draw(std::string_view detail);
    void clear_bar();

    Mode mode_;
    std::mutex mutex_;
    std::string name_;
    std::int64_t total_ = 0, done_ = 0;
    std::chrono::steady_clock::time_point began_{}, drawn_{};
    bool bar_visible_ = false, active_ = false;
};

// "850 ms", "12.3 s", "4 min 05 s"
std::string human_seconds(double seconds);

}  // namespace loopegg
