#include "starling/app/memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace starling::app {
namespace {

/// Of the control group that this process sees as its own, as in a container.
std::optional<double> group_limit() {
  std::ifstream file{"/sys/fs/cgroup/memory.max"};
  double bytes = 0;
  if (!(file >> bytes)) return std::nullopt;  // "max", or no such file
  return bytes;
}

/// What may be taken without anything else being pushed out.
double free_bytes() {
  std::ifstream file{"/proc/meminfo"};
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("MemAvailable:"))
      return std::min(std::stod(line.substr(line.find(':') + 1)) * 1024, memory_bytes());
  return memory_bytes();
}

struct Size {
  double all = 0;
  /// But for row-sparse parameters, of which only rows are on the way.
  double dense = 0;
};

Size bytes_of(const AnyModel& model) {
  const double width = model.element_type() == ElementType::float32 ? 4 : 8;
  Size size;
  for (const models::Parameter& parameter : model.parameters()) {
    const double bytes = width * static_cast<double>(parameter.size());
    size.all += bytes;
    if (!parameter.row_sparse) size.dense += bytes;
  }
  return size;
}

double computed(const Size& size, std::size_t threads) {
  return 2 * size.dense * static_cast<double>(threads);
}

double states(const Size& size, const live::TrainOptions& options) {
  return size.all * static_cast<double>(1 + models::slots(options.optimizer));
}

std::string parameters_of(const AnyModel& model) {
  return fmt::format("model: {} has {} parameters", model.print(),
                     models::total_size(model.parameters()));
}

}  // namespace

double memory_bytes() {
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return std::min(machine, group_limit().value_or(machine));
}

Result<void> check_memory(const AnyModel& model, const live::TrainOptions& options) {
  const Size size = bytes_of(model);
  const std::size_t threads = std::min(options.job.workers, live::compute_threads(options.job));
  const double bytes = states(size, options) + computed(size, threads);
  if (bytes <= memory_bytes()) return {};
  return Error{fmt::format(
      "{}; with the state of {} and what {} computing threads hold, training needs {:.1f} GB at "
      "least; this machine has {:.1f} GB of memory",
      parameters_of(model), models::print(options.optimizer), threads, bytes / 1e9,
      memory_bytes() / 1e9)};
}

Result<void> check_memory_of_node(const AnyModel& model, const live::TrainOptions& options,
                                  std::size_t nodes) {
  const Size size = bytes_of(model);
  const std::size_t workers = (options.job.workers + nodes - 1) / nodes;
  const std::size_t threads = std::min(workers, live::compute_threads(options.job));
  const std::size_t owners = std::min(nodes, live::owners_wanted(options.job));
  const double share =
      std::min(1.0, static_cast<double>(options.job.copies) / static_cast<double>(owners));
  const double bytes = size.all + share * states(size, options) + computed(size, threads);
  const double room = free_bytes();
  if (bytes <= room) return {};
  return Error{fmt::format(
      "{}; one of {} nodes needs {:.1f} GB at least, with {} copies of each range and {} computing "
      "threads here; {:.1f} GB of this machine's memory are free",
      parameters_of(model), nodes, bytes / 1e9, options.job.copies, threads, room / 1e9)};
}

}  // namespace starling::app
