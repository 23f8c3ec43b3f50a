// Names as plan.json writes them: sites are globs there.
#pragma once
#include <string>

namespace loopegg {

// A glob that matches this name alone.
inline std::string exact_glob(const std::string& name) {
    std::string out;
    for (char c : name) out += c == '*' || c == '?' || c == '[' ? std::string{'[', c, ']'} : std::string(1, c);
    return out;
}

}  // namespace loopegg
