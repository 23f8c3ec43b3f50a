// The commands, one file each: cmd_NAME.cpp defines NAME_command.
#pragma once
#include "cli/command.hpp"

namespace loopegg {

extern const Command apply_command;
extern const Command try_command;
extern const Command paper_command;
extern const Command sample_command;
extern const Command compile_command;
extern const Command bundle_command;
extern const Command measure_command;
extern const Command run_command;
extern const Command worker_command;
extern const Command targets_command;
extern const Command extract_command;
extern const Command rules_command;
extern const Command saturate_command;
extern const Command batch_command;
extern const Command dashboard_command;
extern const Command report_command;
extern const Command store_command;
extern const Command study_command;
extern const Command score_command;
extern const Command train_command;
extern const Command term_command;
extern const Command show_command;
extern const Command import_command;
extern const Command export_command;
extern const Command zoo_command;
extern const Command help_command;
extern const Command completion_command;
extern const Command manual_command;

extern const Command optimize_command;
extern const Command explain_command;
extern const Command adopt_command;
extern const Command choose_command;

}  // namespace loopegg
