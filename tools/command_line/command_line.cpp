#include "starling/tools/command_line/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "starling/base/text.hpp"
#include "starling/tools/bench/bench_arguments.hpp"
#include "starling/tools/chaos/chaos_arguments.hpp"
#include "starling/tools/cluster/cluster_commands.hpp"
#include "starling/tools/cluster/keys/keys_arguments.hpp"
#include "starling/tools/collective/collective_arguments.hpp"
#include "starling/tools/command_line/advise_arguments.hpp"
#include "starling/tools/command_line/footers.hpp"
#include "starling/tools/command_line/job_file.hpp"
#include "starling/tools/command_line/submit_flow_arguments.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings_commands.hpp"
#include "starling/tools/program/program_name.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/registry/device.hpp"
#include "starling/tools/repro/repro_arguments.hpp"
#include "starling/tools/run/run_arguments.hpp"
#include "starling/tools/scale/scale_arguments.hpp"
#include "starling/tools/sim/sim_keys.hpp"
#include "starling/tools/train/commands.hpp"
#include "starling/tools/twin/twin_keys.hpp"

namespace starling::program {
namespace {

Result<std::uint64_t> seed_of(const std::string& text) {
  auto seed = parse_count(text);
  if (!seed) return std::move(seed).error().within("--seed");
  return seed;
}

/// The arguments of `evaluate` or of `predict`.
class EvaluateArguments {
 public:
  EvaluateArguments(CLI::App& program, const std::string& name, const std::string& summary,
                    const Registry& registry)
      : command_(program, name, summary) {
    command_.add_argument("FILE", file_, "a model that train --save wrote");
    command_.add_value("--model-file", model_file_flag_, "the same, as a flag", "FILE");
    command_.add_flag("--trust-file", trusts_file_,
                      "accept a file without a checksum, which another program wrote");
    command_.add_value("--data", options_.data,
                       "the data that the model is used on [the data that it was tested on]",
                       "SOURCE");
    command_.add_value("--seed", seed_, "the seed of generated --data [the model's own]", "N");
    command_.add_value("--device", device_, device_help, "DEVICE");
    command_.set_footer(
        "\n" + sources_help(registry) +
        "\nGenerated data gives samples that are not in the training data of that seed.");
  }
  void add_json() { command_.add_flag("--json", options_.json, "one JSON object"); }
  void add_out() {
    command_.add_value(
        "--out", options_.out,
        "CSV: index or id, prediction, label if there is one; one row a sample [stdout]",
        "FILE.csv");
    command_.add_flag("--probabilities", options_.probabilities,
                      "add a column probability_LABEL for each class");
    command_.add_flag("--scores", options_.scores,
                      "add a column score_N for each output by which the model decides");
  }

  [[nodiscard]] const Command& command() const { return command_; }
  template <class Run>
  [[nodiscard]] Result<int> run(Run run_command, const Registry& registry) const {
    const std::string call = program_name() + " " + command_.name() + " FILE";
    if (file_.empty() && model_file_flag_.empty())
      return Error{"the saved model's file is missing; valid: " + call};
    if (!file_.empty() && !model_file_flag_.empty())
      return Error{"'" + file_ + "' and --model-file " + model_file_flag_ +
                   " exclude each other; valid: one of them, as in " + call};
    EvaluateOptions options = options_;
    options.model_file = file_.empty() ? model_file_flag_ : file_;
    options.accepts_missing_checksum = trusts_file_;
    auto device = models::parse_device(device_);
    if (!device) return std::move(device).error().within("--device");
    options.device = *device;
    if (!seed_.empty()) {
      const auto seed = seed_of(seed_);
      if (!seed) return seed.error();
      if (options.data.empty())
        return Error{"--seed: has no effect without --data: the data that " + options.model_file +
                     " was tested on has a seed of its own"};
      options.seed = *seed;
    }
    return run_command(registry, options);
  }

 private:
  Command command_;
  EvaluateOptions options_;
  /// The model's file: by the argument FILE, or by --model-file.
  std::string file_;
  std::string model_file_flag_;
  bool trusts_file_ = false;
  std::string seed_;
  std::string device_ = "cpu";
};

class InspectArguments {
 public:
  InspectArguments(CLI::App& program, const Registry& registry)
      : command_(program, "inspect", "show what is in a data source or a saved model") {
    command_.add_required_argument("WHAT", options_.what,
                                   "a source of data, or a file that train --save wrote");
    command_.add_value("--seed", seed_, "the seed of generated data [1]", "N");
    command_.add_flag("--json", options_.json, "one JSON object");
    command_.set_footer("\n" + sources_help(registry));
  }
  [[nodiscard]] const Command& command() const { return command_; }
  [[nodiscard]] Result<int> run(const Registry& registry) const {
    const auto seed = seed_of(seed_);
    if (!seed) return seed.error();
    InspectOptions options = options_;
    options.seed = *seed;
    return inspect_command(registry, options);
  }

 private:
  Command command_;
  InspectOptions options_;
  std::string seed_ = "1";
};

constexpr const char* needs_value_text = "needs a value";

/// Returns an error text if `text`, which stands where a flag's value is expected, is a flag
/// itself; else an empty text.
std::string check_is_no_flag(const std::string& text) {
  return text.starts_with("--") || text == "-h" ? needs_value_text : std::string{};
}

/// Returns CLI11's error; replaces its text if a flag is given twice, lacks its value, or has a
/// value that it does not take.
Error usage_error(const CLI::ParseError& fault) {
  const std::string message = fault.what();
  if (fault.get_name() != "ArgumentMismatch") return Error{message};
  if (message.find("flag override") != std::string::npos)
    return Error{"--" + message.substr(0, message.find(' ')) +
                 ": takes no value; valid: the flag alone"};
  const bool is_repeated = message.find("received ") != std::string::npos &&
                           message.find("received 0") == std::string::npos;
  return Error{message.substr(0, message.find(':')) + ": " +
               (is_repeated ? "is given twice; valid: once" : needs_value_text)};
}

/// Makes all commands of `app`, and their subcommands, refuse a flag that stands where a value is
/// expected.
void refuse_flags_as_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options())
      if (!option->get_lnames().empty() && option->get_items_expected_max() > 0)
        option->check(check_is_no_flag, "");
    refuse_flags_as_values(*command);
  }
}

/// Declares the whole command line, and runs the command that was chosen.
class CommandLine {
 public:
  explicit CommandLine(const Registry& registry) : registry_(registry) {
    program_.set_version_flag("--version", "starling " + version(), "the version");
    program_.set_help_flag("-h,--help", "this help");
    program_.allow_extras();
    program_.require_subcommand(0, 1);
    for (FlagsCommand* command : {&attach_, &stop_, &status_, &jobs_, &logs_})
      command->accept_job_argument();
    predict_.add_out();
    evaluate_.add_json();
    attach_.command().set_footer(
        "\nReplaces a `submit` that has ended, by --detach or by accident. Ctrl-C ends this "
        "command, and the\njob goes on. Nodes drop the model of a job that has ended once it is "
        "saved.\nExit codes: 0 done, 1 the job failed, 2 bad input, 130 interrupted.");
    program_.footer(
        fmt::format("\nTry: {0} train\n"
                    "     {0} train --workers 8 --straggler 1:4x --mode central --barrier bsp\n"
                    "     {0} help COMMAND",
                    program_name()));
    refuse_flags_as_values(program_);
  }

  Result<int> run(int argc, const char* const* argv) {
    std::vector<std::string> arguments{argv + std::min(argc, 1), argv + argc};
    if (std::ranges::find(arguments, "--") != arguments.end())
      return Error{
          "'--' does not end the flags; valid: ./NAME for a file NAME that begins with '-'"};
    SubmitFlowArguments::rewrite(arguments);
    if (!arguments.empty() && arguments.front() == "help")
      if (auto turned = turn_help_into_flag(arguments); !turned) return std::move(turned).error();
    try {
      std::ranges::reverse(arguments);  // CLI11 expects the last argument first
      program_.parse(std::move(arguments));
    } catch (const CLI::Success& request) {
      return print_help_or_version(request);
    } catch (const CLI::ParseError& fault) {
      return usage_error(fault);
    }
    return run_chosen_command();
  }

 private:
  /// Turns `help keys node` into `keys node --help`. Returns an Error if there is no such command.
  Result<void> turn_help_into_flag(std::vector<std::string>& words) const {
    words.erase(words.begin());
    const CLI::App* parent = &program_;
    for (const std::string& word : words) {
      std::vector<std::string> names;
      const CLI::App* next = nullptr;
      for (const CLI::App* command :
           parent->get_subcommands([](const CLI::App*) { return true; })) {
        if (!command->get_group().empty()) names.push_back(command->get_name());
        if (command->get_name() == word) next = command;
      }
      if (word == "--help" || word == "-h") break;
      if (next == nullptr && names.empty())
        return Error{"'" + word + "' is one argument too many; valid: " + program_name() +
                     " help " + parent->get_name()};
      if (next == nullptr) return Error{"unknown command '" + word + "'; " + suggest(word, names)};
      parent = next;
    }
    words.emplace_back("--help");
    return {};
  }

  Result<int> print_help_or_version(const CLI::Success& request) {
    std::ostringstream out;
    program_.exit(request, out, out);
    return write_stdout(out.str(), done);
  }

  static Result<int> run_without_registry(const FlagsCommand& command,
                                          Result<int> (*run_command)(const Settings&)) {
    const auto settings = command.settings();
    return settings ? run_command(*settings) : Result<int>{settings.error()};
  }

  template <class Run>
  Result<int> run_with_registry(const FlagsCommand& command, Run run_command) const {
    const auto settings = command.settings();
    return settings ? run_command(registry_, *settings) : Result<int>{settings.error()};
  }

  Result<int> run_chosen_command() {
    if (program_.get_subcommands().empty()) return run_without_command();
    const CLI::App& chosen = *program_.get_subcommands()[0];
    if (const auto extras = program_.remaining(); !extras.empty())
      return Error{"'" + extras[0] + "' before '" + chosen.get_name() +
                   "' is not a command; valid: " + program_name() + " " + chosen.get_name() +
                   " ..., `" + program_name() + " help` lists the commands"};
    for (const Command* command : std::initializer_list<const Command*>{
             &train_.command(),   &node_.command(),     &submit_.command(),
             &attach_.command(),  &status_.command(),   &jobs_.command(),
             &stop_.command(),    &logs_.command(),     &leave_.command(),
             &launch_.command(),  &sim_.command(),      &twin_.command(),
             &chaos_.command(),   &evaluate_.command(), &predict_.command(),
             &inspect_.command(), &advise_.command(),   &collective_.command(),
             &scale_.command(),   &barriers_,           &models_})
      if (command->is_chosen())
        if (auto known = command->refuse_extras(); !known) return std::move(known).error();
    const std::string& name = chosen.get_name();
    if (name == "evaluate") return evaluate_.run(evaluate_command, registry_);
    if (name == "predict") return predict_.run(predict_command, registry_);
    if (name == "inspect") return inspect_.run(registry_);
    if (name == "submit") return run_job(submit_, submit_command);
    if (submit_flow_.has_name(name)) return submit_flow_.run(registry_);
    if (name == "node") return run_with_registry(node_, node_command);
    if (name == "attach") return run_with_registry(attach_, attach_command);
    if (name == "status") return run_without_registry(status_, status_command);
    if (name == "jobs") return run_without_registry(jobs_, jobs_command);
    if (name == "stop") return run_without_registry(stop_, stop_command);
    if (name == "logs") return run_without_registry(logs_, logs_command);
    if (name == "leave") return run_without_registry(leave_, leave_command);
    if (name == "launch") return run_without_registry(launch_, launch_command);
    if (name == "repro") return repro_.run(registry_);
    if (name == "run") return run_.run();
    if (name == "advise") return advise_.run(registry_);
    if (name == "collective") return collective_.run();
    if (name == "scale") return scale_.run();
    if (name == "chaos") return chaos_.run();
    if (name == "bench") return bench_.run(registry_);
    if (name == "keys") return keys_.run();
    if (name == "barriers") return barriers_command(registry_);
    if (name == "models") return models_command(registry_);
    if (name == "sim") return run_job(sim_, sim_command);
    if (name == "twin") return run_job(twin_, twin_command);
    return run_job(train_, train_command);
  }

  template <class Run>
  Result<int> run_job(const JobFileCommand& command, Run run_command) {
    const auto settings = command.settings();
    if (!settings) return settings.error();
    return run_command(registry_, *settings, command.file());
  }

  /// Prints the help, or returns an error about a word that is not a command.
  Result<int> run_without_command() {
    const auto extras = program_.remaining();
    if (extras.empty()) return write_stdout(program_.help(), done);
    const std::string word = extras[0].substr(0, extras[0].find('='));
    if (train_.command().has_flag(word))
      return Error{"'" + word + "' is a flag of train; valid: " + program_name() + " train " +
                   extras[0] + " ..."};
    if (word.starts_with('-'))
      return Error{"unknown flag '" + word + "'; valid: --help, --version, or a command first"};
    std::vector<std::string> names;
    for (const CLI::App* each : program_.get_subcommands({}))
      if (!each->get_group().empty()) names.push_back(each->get_name());
    const std::string as_flag = program_.get_option_no_throw("--" + word) != nullptr
                                    ? "did you mean '--" + word + "'? "
                                    : std::string{};
    return Error{"unknown command '" + word + "'; " + as_flag + suggest(word, names)};
  }

  const Registry& registry_;
  CLI::App program_{
      "Starling: actor-model distributed learning with probabilistic synchronous "
      "parallel barriers",
      program_name()};
  JobFileCommand train_{program_,   "train",       "train a model with many workers",
                        job_keys(), read_job_file, train_footer(registry_)};
  FlagsCommand node_{program_, "node", "be one of the nodes of a cluster", node_options()};
  JobFileCommand submit_{program_,         "submit",      "train on the nodes of a cluster",
                         submit_options(), read_job_file, submit_footer(registry_)};
  SubmitFlowArguments submit_flow_{program_, registry_};
  FlagsCommand attach_{program_, "attach", "follow a job that runs, and save its model",
                       attach_options()};
  FlagsCommand stop_{program_, "stop", "end a job at the end of its workers' steps",
                     stop_options()};
  FlagsCommand status_{program_, "status", "show the nodes and the jobs of a cluster",
                       status_options()};
  FlagsCommand jobs_{program_, "jobs", "list the jobs of a day: those that run and that ended",
                     jobs_options()};
  FlagsCommand logs_{program_, "logs", "show the log lines of the nodes of a cluster",
                     logs_options()};
  FlagsCommand leave_{program_, "leave", "have a node hand over and leave its cluster",
                      leave_options()};
  FlagsCommand launch_{program_, "launch", "start nodes on other machines over ssh",
                       launch_options()};
  JobFileCommand sim_{program_,   "sim",         "simulate barriers on very many workers",
                      sim_keys(), read_sim_file, sim_footer(registry_)};
  JobFileCommand twin_{program_,    "twin",        "run a job and its simulation, and compare",
                       twin_keys(), read_job_file, twin_footer(registry_)};
  AdviseArguments advise_{program_};
  CollectiveArguments collective_{program_};
  ScaleArguments scale_{program_};
  RunArguments run_{program_, registry_};
  ReproArguments repro_{program_};
  EvaluateArguments evaluate_{program_, "evaluate", "measure a saved model on data", registry_};
  EvaluateArguments predict_{program_, "predict",
                             "write the predictions of a saved model for each sample", registry_};
  InspectArguments inspect_{program_, registry_};
  ChaosArguments chaos_{program_};
  BenchArguments bench_{program_, data_and_models_help(registry_)};
  KeysArguments keys_{program_};
  Command barriers_{program_, "barriers", "list the barriers"};
  Command models_{program_, "models", "list the models"};
};

}  // namespace

Result<int> run_command_line(int argc, const char* const* argv, const Registry& registry) {
  return CommandLine{registry}.run(argc, argv);
}

}  // namespace starling::program
