// Keeps the program's output free of control characters, so that no stranger's name moves a terminal's cursor, hides a line or forges one.
#pragma once

namespace loopegg {

// From now on everything that is printed to `stdout` has its control characters (but line breaks and tabs) spelt out.
void make_output_plain();

}  // namespace loopegg
