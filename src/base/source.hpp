// Texts that came from a user and places inside them, so that every complaint can point at its cause.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace loopegg {

// One text as read. All positions inside the text share it.
struct Source {
    std::string name;  // the path as the user typed it, or "<command line>"
    std::string text;
};
using SourcePtr = std::shared_ptr<const Source>;

SourcePtr make_source(std::string name, std::string text);

// A byte offset into a source; line and column are worked out only when somebody asks.
struct Position {
    SourcePtr source;
    std::size_t offset = 0;

    bool known() const { return source != nullptr; }
    int line() const;             // 1-based
    int column() const;           // 1-based, counted in code points
    std::string excerpt() const;  // the line, and below it a caret
};

}  // namespace loopegg
