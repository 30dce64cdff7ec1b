/// The files that a training job reads.
#pragma once

#include <string>
#include <vector>

#include "starling/tools/files/file_use.hpp"
#include "starling/tools/job/job.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling::program {

/// Returns the files that the job reads, except the checkpoint that it resumes from. `job_file` is
/// the file from which the settings were read; empty if there was none.
[[nodiscard]] std::vector<FileUse> input_files(const Registry& registry, const Job& job,
                                               const Settings& settings,
                                               const std::string& job_file);

}  // namespace starling::program
