// The parts of a run's page, each a function from the run to HTML; page.cpp puts them in order.
#pragma once
#include <string>

#include "report/run.hpp"

namespace loopegg {

std::string answers_part(const FinishedRun& run);  // the result in one sentence and the four questions
std::string sites_part(const FinishedRun& run);    // the layer list: sequences as steps, nests before and after

// A figure that report.js fills: the caption, the place of the chart, and its numbers as a table for those who cannot see it.
std::string figure(const std::string& name, const std::string& caption, const std::string& table);

// A self-contained page: style, script, the charts' specifications and, where there are charts, the plotting library are inside. `body` is in <main>. A
// browser loads the page again after `refresh_seconds`, unless that is 0.
std::string whole_page(const std::string& title, const std::string& facts, bool sample, const std::string& body, const nlohmann::json& charts,
                       double refresh_seconds = 0);

// A table from rows of cells; numeric columns are the ones whose head starts with '#'.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

}  // namespace loopegg
