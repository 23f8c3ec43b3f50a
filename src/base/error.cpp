#include "base/error.hpp"

#include <fmt/format.h>

namespace loopegg {

std::string describe(const Diagnostic& d) {
    std::string text;
    if (d.where.known()) {
        text = fmt::format("{}:{}:{}: error: {}\n", d.where.source->name, d.where.line(), d.where.column(), d.message);
        text += "  " + d.where.excerpt();
        // the caret line is the second of the two: indent it like the first
        if (auto nl = text.rfind('\n'); nl != std::string::npos) text.insert(nl + 1, "  ");
    } else {
        text = "error: " + d.message;
    }
    if (!d.hint.empty()) text += "\n  " + d.hint;
    return text;
}

UserError::UserError(std::vector<Diagnostic> all) : diagnostics_(std::move(all)) {
    for (const Diagnostic& d : diagnostics_) text_ += (text_.empty() ? "" : "\n") + describe(d);
}

InternalFault::InternalFault(std::string message, std::source_location at)
    : text_(fmt::format("internal fault at {}:{}: {}", at.file_name(), at.line(), message)) {}

}  // namespace loopegg
