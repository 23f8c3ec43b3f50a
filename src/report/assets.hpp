// The texts that a page carries inside itself: our style and script (built in) and the plotting library (read at run time).
#pragma once
#include <string>
#include <string_view>

namespace loopegg {

extern const std::string_view report_css, report_js;

// Vega, Vega-Lite and vega-embed as one script that defines `vegaEmbed`, ready to be in a page.
// The text comes from the PyPI wheel 'vega', and LOOPEGG_VEGA names another copy. Throws UserError with the way to get it when it is absent.
std::string vega_script();

// Makes a script safe inside <script>: the words that would end it are written with a backslash.
std::string inside_script(std::string text);

}  // namespace loopegg
