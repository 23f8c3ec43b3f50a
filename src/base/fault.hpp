// Faults at will, for tests: every place where the world outside can fail us asks here whether it should fail now.
//
// LOOPEGG_FAULTS=1 turns faults on. LOOPEGG_FAULT=COMMAND:N:HOW:FLAG lets the N-th place (from 1) that a process of 'loopegg COMMAND' comes to
// fail once. HOW is 'fail' (the call fails as a system call would) or 'cut' (the process ends there, as if it were killed). The fault makes the
// file FLAG, and no fault happens while that file exists. So one fault happens once over all processes.
// LOOPEGG_FAULT_LOG=FILE writes down the places, one line 'COMMAND KIND PID' for each.
#pragma once
#include <string>

namespace loopegg {

// The kinds of places.
enum class FaultPlace { write, store, worker, compile, measure, guard };

// Returns true where the caller is to fail as it would if its call failed. It does not return where the process is to be cut.
bool fault_here(FaultPlace place);

// The same in two halves, for a write that is to fail in its middle. Unless the answer is `none`, the caller does half of its work. Then the caller calls
// cut_now for `cut`, and fails as its call would for `fail`.
enum class FaultHow { none, fail, cut };
FaultHow ask_fault(FaultPlace place);
[[noreturn]] void cut_now();

// Says which command this process runs ("optimize", "worker"); until then no place counts.
void name_process_for_faults(const std::string& command);

}  // namespace loopegg
