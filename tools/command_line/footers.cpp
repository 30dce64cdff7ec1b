#include "starling/tools/command_line/footers.hpp"

#include "starling/models/data/source/source.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/train/commands.hpp"

namespace starling::program {

std::string sources_help(const Registry& registry) {
  std::string text = "Sources of data:\n";
  const auto add_line = [&](const std::string& name, const std::string& summary) {
    text +=
        "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + summary + "\n";
  };
  for (const auto& entry : registry.data()) add_line(entry.name, entry.summary);
  for (const auto& [name, summary] : models::source_names()) add_line(name, summary);
  return text;
}

std::string bench_footer(const Registry& registry) {
  return "\n" + sources_help(registry) + "\nModels:\n" + models_list(registry);
}

std::string train_footer(const Registry& registry) {
  return bench_footer(registry) + "\nBarriers:\n" + barriers_list(registry) +
         "\nFlags override the job file. Ctrl-C, SIGTERM and SIGHUP stop in order and save; "
         "Ctrl-C\nagain stops at once.\nExit codes: 0 done, 1 the job failed, 2 bad input, "
         "130 interrupted.";
}

std::string submit_footer(const Registry& registry) {
  return train_footer(registry) + " A job that\n`" + program_name() + " stop` ends is done.";
}

std::string sim_footer(const Registry& registry) {
  return "\nBarriers:\n" + barriers_list(registry) +
         "\nWith a job file, the job is simulated: its workers, mode, barrier, recheck, stragglers "
         "and limits\ncount, and its delay is the step time; its keys of data and models count at\n"
         "--level protocol only. Keys that only a simulation has stand below [sim] in the file. "
         "Flags\noverride the file.\n"
         "Without one: the published simulation, five barriers side by side. The same seed prints "
         "the\nsame bytes, on any number of threads.";
}

std::string twin_footer(const Registry& registry) {
  return bench_footer(registry) + "\nBarriers:\n" + barriers_list(registry) +
         "\nRuns the job, then simulates it with its delay as the time of a step, and compares.\n"
         "If a time limit ended the job, the simulation runs for the same time; if the job made\n"
         "all its steps, until they are made. Each figure of the live run must lie between the\n"
         "0.5 % and the 99.5 % quantile of the simulated ones, with 5 % of tolerance to either\n"
         "side. Flags override the job file; no files are written.\n"
         "Exit codes: 0 as simulated, 1 not as simulated, or the job failed, 2 bad input, "
         "130 interrupted.";
}

}  // namespace starling::program
