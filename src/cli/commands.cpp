#include "cli/commands.hpp"

namespace loopegg {

const std::vector<Command>& commands() {
    static const std::vector<Command> all{
        optimize_command, explain_command, choose_command, adopt_command,     zoo_command,        show_command,   import_command, export_command,
        targets_command,  compile_command, run_command,    measure_command,   bundle_command,     worker_command, apply_command,  rules_command,
        saturate_command, extract_command, batch_command,  dashboard_command, store_command,      report_command, study_command,  score_command,
        sample_command,   train_command,   term_command,   help_command,      completion_command, manual_command,
    };
    return all;
}

}  // namespace loopegg
