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

std::string data_and_models_help(const Registry& registry) {
  return "\n" + sources_help(registry) + "\nModels:\n" + models_list(registry);
}

std::string train_footer(const Registry& registry) {
  return data_and_models_help(registry) + "\nBarriers:\n" + barriers_list(registry) +
         "\nFlags override the job file. Ctrl-C, SIGTERM or SIGHUP ends the job after the steps in "
         "progress\nand saves the model; a second Ctrl-C ends the program at once.\n"
         "Exit codes: 0 done, 1 the job failed, 2 bad input, 130 interrupted.";
}

std::string submit_footer(const Registry& registry) {
  return train_footer(registry) + "\nThe exit code is 0 also if `" + program_name() +
         " stop` ended the job.";
}

std::string sim_footer(const Registry& registry) {
  return data_and_models_help(registry) + "\nBarriers:\n" + barriers_list(registry) +
         "\nWith a job file, that job is simulated, with its delay as the time of a step. At the "
         "step level,\nits data only tells how many steps its epochs have, and its model is not "
         "used. "
         "Settings that\nonly a simulation has belong to the section [sim] of the file. Flags "
         "override the file.\n"
         "Without a job file, the simulation of the PSP paper (arXiv 1709.07772) runs: 1000 "
         "workers, five\nbarriers side by side. The same seed prints the same bytes, on any number "
         "of threads.";
}

std::string twin_footer(const Registry& registry) {
  return data_and_models_help(registry) + "\nBarriers:\n" + barriers_list(registry) +
         "\nRuns the job, then simulates it with its delay as the time of a step, and compares.\n"
         "The simulation ends as the job did: after all steps, or after the same time. Each "
         "number\nmeasured in the job must lie between the 0.5 % and the 99.5 % quantile of the\n"
         "simulations, widened by 5 % (the share of waiting: by at least 1 percentage point).\n"
         "Flags override the job file; no files are written.\n"
         "Exit codes: 0 as simulated, 1 not as simulated, or the job failed, 2 bad input, "
         "130 interrupted.";
}

}  // namespace starling::program
