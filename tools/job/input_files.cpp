#include "starling/tools/job/input_files.hpp"

#include <variant>

#include "starling/tools/job/topology_file.hpp"
#include "starling/tools/registry/data.hpp"
#include "starling/tools/registry/net_file.hpp"

namespace starling::program {

std::vector<FileUse> input_files(const Registry& registry, const Job& job, const Settings& settings,
                                 const std::string& job_file) {
  std::vector<FileUse> files{{"the job", job_file}};
  const auto add = [&](const char* key, const std::string& file) {
    files.push_back({location_of(settings, key), file});
  };
  for (const std::string& file : files_in(registry, job.data.data)) add("data", file);
  for (const std::string& file : files_in(registry, job.data.test.value_or(""))) add("test", file);
  if (const auto model = Spec::parse(job.model)) add("model", net_file_in(*model));
  add("init", job.init);
  add("exchange", topology_file_in(text_of(settings, "exchange")));
  if (const auto* trace = std::get_if<laws::Trace>(&job.train.job.delay.law()))
    add("delay", trace->file);
  return files;
}

}  // namespace starling::program
