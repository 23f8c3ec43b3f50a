#include "cli/commands.hpp"

namespace loopegg {

const std::vector<CommandGroup>& command_groups() {
    static const std::vector<CommandGroup> all{
        {"Start", true, {optimize_command, report_command, train_command, choose_command, adopt_command, run_command}},
        {"Model", true, {import_command, export_command, show_command, zoo_command}},
        {"Deploy", true, {compile_command, measure_command, targets_command}},
        {"Inspect", true, {explain_command, apply_command, score_command}},
        {"Rules", false, {rules_command, saturate_command, extract_command, try_command, sample_command, study_command, paper_command}},
        {"Scale", false, {batch_command, dashboard_command, store_command, bundle_command, worker_command}},
        {"Tools", false, {term_command, help_command, completion_command, manual_command}},
    };
    return all;
}

}  // namespace loopegg
