#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "starling/base/text.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {

Result<int> write_stdout(const std::string& text, int code) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return code;
  print_error(std::string{"the results cannot be written: "} + std::strerror(errno));
  return code == done ? job_failed : code;
}

std::string barriers_list(const Registry& registry) {
  std::string text;
  const auto add_line = [&](const std::string& example, const std::string& summary,
                            bool needs_central_mode) {
    text += fmt::format("  {:<26} {:<12} {}\n", example,
                        needs_central_mode ? "central mode" : "every mode", summary);
  };
  for (const auto& built_in : barrier::descriptions())
    add_line(built_in.example, built_in.summary, built_in.central_only);
  for (const auto& [rule, summary] : registry.barriers()) {
    add_line(rule.label, summary, true);
    add_line("p" + rule.label + ":beta=2", summary, false);
  }
  text +=
      "dssp:low=3,high=15,cap lets nobody pass more than 15 steps ahead. tuned:staleness=3 meets a "
      "mean lag,\ntuned:progress makes the loss fall fast.\n"
      "With beta, in modes hybrid and peer, draw=availability or draw=speed, as "
      "pssp:s=4,beta=2,draw=speed:\n"
      "workers that have answered more questions in time, or made more steps a second, are drawn "
      "more often.\n";
  return text;
}

std::string models_list(const Registry& registry) {
  std::string text;
  std::set<std::string> seen;
  for (const auto& entry : registry.models())
    if (seen.insert(entry.name).second)
      text += fmt::format("  {:<13} {}\n", entry.name, entry.summary);
  return text;
}

Result<int> barriers_command(const Registry& registry) {
  return write_stdout(
      "When may a worker take its next step? Written --barrier BARRIER.\n\n" +
          barriers_list(registry) +
          "\nbeta: how many random other workers are asked (beta = workers - 1: all, beta = 0: "
          "none).\n"
          "s: how many steps behind is tolerated (s=0 equals bsp, s=inf equals asp).\n"
          "A barrier over all workers needs central mode, where the coordinator sees every step.\n",
      done);
}

Result<int> models_command(const Registry& registry) {
  return write_stdout(
      "The models that can be trained. Written --model MODEL.\n\n" + models_list(registry) +
          "\nModels are computed on the CPU; nets, which end the list, also on a CUDA device in "
          "float32:\n--device cuda:0 or auto.\n",
      done);
}

}  // namespace starling::program
