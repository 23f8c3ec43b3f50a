// The extractors, as one table: shared tests run every row, and `loopegg extract --method` names one.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "extract/extraction.hpp"

namespace loopegg {

struct ExtractOptions {
    double seconds = 10;  // an extractor that searches stops here with the best it has; the others are done long before
};

struct Extractor {
    const char* name;
    const char* summary;
    Extraction (*run)(const SerializedEGraph& egraph, const ExtractOptions& options);
};

std::span<const Extractor> extractors();
std::vector<std::string> extractor_names();

// The row of that name. Throws UsageError with 'did you mean' when there is none.
const Extractor& find_extractor(std::string_view name);

// Runs a row, times it and checks what it answered. Throws UserError when some root has no finite term at all.
Extraction extract(const SerializedEGraph& egraph, std::string_view method, const ExtractOptions& options = {});

}  // namespace loopegg
