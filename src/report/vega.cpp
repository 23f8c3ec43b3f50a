#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "report/assets.hpp"

namespace loopegg {

std::string inside_script(std::string text) {
    // Only these three mean anything to an HTML reader there; '</' alone may be the end of a regular expression.
    for (std::string_view word : {"</script", "<script", "<!--"})
        for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) text.insert(at + 1, "\\");
    return text;
}

std::string vega_script() {
    const char* named = std::getenv("LOOPEGG_VEGA");
    const bool chosen = named && *named;  // a copy that a user names is not replaced by another one
    std::filesystem::path path = chosen ? std::filesystem::path(named) : shipped("report/vega.js");
    if (!chosen && !std::filesystem::exists(path)) path = LOOPEGG_VEGA_FILE;
    if (!std::filesystem::exists(path))
        throw UserError(Diagnostic{fmt::format("the plotting library is not at '{}'", path.string()),
                                   {},
                                   "run ./loopegg once, it sets up what is missing; or name a copy of the 'vega' wheel's static/index.js in LOOPEGG_VEGA"});
    std::string code = read_file(path);
    // A browser's inspector would ask for the map over the network.
    if (std::size_t at = code.rfind("//# sourceMappingURL"); at != std::string::npos) code.erase(at);
    // The wheel ships an AMD module made for notebooks: hand it the two widget classes it extends and keep its vegaEmbed.
    return "window.define=(_,make)=>{window.vegaEmbed=make({DOMWidgetModel:class{},DOMWidgetView:class{}}).vegaEmbed};\n" + inside_script(std::move(code)) +
           "\ndelete window.define;\n";
}

}  // namespace loopegg
