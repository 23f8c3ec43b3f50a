#include "base/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace loopegg {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t terminal_width() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

}  // namespace

std::string human_seconds(double s) {
    if (s < 0.9995) return fmt::format("{:.0f} ms", s * 1e3);
    if (s < 59.95) return fmt::format("{:.1f} s", s);
    return fmt::format("{} min {:02} s", static_cast<int>(s + 0.5) / 60, static_cast<int>(s + 0.5) % 60);
}

Progress::Mode Progress::detect(bool quiet) {
    if (quiet) return Mode::quiet;
    return ::isatty(STDERR_FILENO) ? Mode::bar : Mode::lines;
}

void Progress::stage(std::string name, std::int64_t total) {
    std::lock_guard lock(mutex_);
    drawn_ = Clock::now();
    stages_.push_back({std::move(name), total, 0, drawn_});
    if (mode_ == Mode::bar) draw("");
}

void Progress::advance(std::int64_t done, std::string_view detail) {
    std::lock_guard lock(mutex_);
    if (stages_.empty()) return;
    stages_.back().done = done;
    // A terminal is redrawn a few times a second; a log gets a line every ten seconds.
    auto wait = mode_ == Mode::bar ? std::chrono::milliseconds(80) : std::chrono::milliseconds(10'000);
    if (mode_ == Mode::quiet || Clock::now() - drawn_ < wait) return;
    drawn_ = Clock::now();
    draw(detail);
}

void Progress::draw(std::string_view detail) {
    const Stage& stage = stages_.back();
    std::string line;
    if (stage.total > 0) {
        double share = std::clamp(static_cast<double>(stage.done) / static_cast<double>(stage.total), 0.0, 1.0);
        if (mode_ == Mode::bar) {
            int filled = static_cast<int>(share * 24 + 0.5);
            line = fmt::format("{:<12} [{:=<{}}{: <{}}] {}/{}", stage.name, "", filled, "", 24 - filled, stage.done, stage.total);
        } else {
            line = fmt::format("{}: {}/{} ({:.0f}%)", stage.name, stage.done, stage.total, share * 100);
        }
    } else {
        line = stage.done > 0 ? fmt::format("{}: {}", stage.name, stage.done) : stage.name + "...";
    }
    if (!detail.empty()) line += fmt::format("  {}", detail);
    line += fmt::format("  {}", human_seconds(seconds_since(stage.began)));
    if (mode_ == Mode::bar) {
        std::size_t width = terminal_width() - 1;
        if (line.size() > width) line.resize(width);
        fmt::print(stderr, "\r\033[K{}", line);
        bar_visible_ = true;
    } else {
        fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
}

void Progress::clear_bar() {
    if (bar_visible_) fmt::print(stderr, "\r\033[K");
    bar_visible_ = false;
}

void Progress::finish(std::string_view summary) {
    std::lock_guard lock(mutex_);
    if (stages_.empty()) return;
    const Stage ended = std::move(stages_.back());
    stages_.pop_back();
    if (mode_ == Mode::quiet) return;
    clear_bar();
    fmt::print(stderr, "{:<12} {}{}{}\n", ended.name, summary, summary.empty() ? "" : "  ", human_seconds(seconds_since(ended.began)));
    std::fflush(stderr);
}

Progress::Inner::Inner(Progress* progress, std::string name, std::int64_t total) : progress_(progress) {
    if (progress_) progress_->stage(std::move(name), total);
}

Progress::Inner::~Inner() { finish("not finished"); }

void Progress::Inner::finish(std::string_view summary) {
    if (progress_) progress_->finish(summary);
    progress_ = nullptr;
}

void Progress::note(std::string_view line) {
    std::lock_guard lock(mutex_);
    if (mode_ == Mode::quiet) return;
    clear_bar();
    fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
}

}  // namespace loopegg
