// Names that strangers chose, in text that is read by a compiler, an interpreter, a shell or a terminal: no name can be anything but a name.
#pragma once
#include <string>
#include <string_view>

namespace loopegg {

// For comments and descriptions in any language. Letters, digits, spaces and _.-/:,()[]+= stay, everything else becomes '?', and a long name
// is cut. The result is one line, and it ends no comment or string of C, Python, shell or Slurm.
std::string comment_text(std::string_view name);

std::string python_string(std::string_view text);  // with its quotes; bytes that are not UTF-8 become U+FFFD
std::string dot_string(std::string_view text);     // with its quotes; a line break is shown as one
std::string shell_word(std::string_view text);     // one word of sh, quoted where it must be

// A name of C, and a part of longer ones: letters and digits stay, everything else becomes '_'; at most 60 of them, and at least one.
std::string c_name(std::string_view name);

// One line for a terminal. It has no control character, because an escape sequence could hide or forge what is shown.
std::string terminal_text(std::string_view text);

// Whether a text may be the name of a file in a folder of ours: letters, digits, '_', '-', '+' and, not at the beginning, '.'; at most 100 of them.
bool is_file_name(std::string_view name);

}  // namespace loopegg
