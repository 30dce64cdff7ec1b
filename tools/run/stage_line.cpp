#include "starling/tools/run/stage_line.hpp"

#include <fmt/format.h>

#include "starling/tools/program/byte_amount.hpp"
#include "starling/tools/program/time_text.hpp"

namespace starling::program {

std::string stage_line(const flow::StageDescription& stage, flow::Part parts_done,
                       const flow::TaskCounts& counts, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(counts.records_read) / seconds : 0;
  std::string line = fmt::format("{}: {}/{} parts, {:.3g} records/s", stage.operations, parts_done,
                                 stage.parts, rate);
  if (counts.bytes_written > 0)
    line +=
        ", " + print_bytes(counts.bytes_written) + (stage.is_shuffle() ? " shuffled" : " cached");
  if (counts.bytes_spilled > 0) line += ", " + print_bytes(counts.bytes_spilled) + " spilled";
  if (parts_done > 0 && parts_done < stage.parts) {
    const double parts_left = static_cast<double>(stage.parts - parts_done);
    const double seconds_left = seconds * parts_left / static_cast<double>(parts_done);
    if (seconds_left >= 1) line += ", stage ends in " + time_text(seconds_left);
  }
  return line;
}

}  // namespace starling::program
