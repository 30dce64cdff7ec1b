/// The commands whose flags, and job file if they read one, are settings (settings.hpp). Internal
/// to the command line.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/program/command.hpp"

namespace starling::program {

/// The flags of a command, one for each key, and the values that the user gave.
class CommandFlags {
 public:
  /// Declares a flag for each key. Requires: `keys` outlives this object.
  template <class Keys>
  CommandFlags(Command& command, const Keys& keys) {
    for (const auto& key : keys) add(command, key);
  }

  /// Returns the settings of a job file, overridden by the flags that the user gave. `--key=false`
  /// removes the key's setting.
  [[nodiscard]] Settings override_file(Settings file) const;

 private:
  void add(Command& command, const KeyDescription& key);

  std::vector<const KeyDescription*> keys_;
  /// For each key that is true or false: "true", "false", or empty if its flag was not given.
  std::map<std::string, std::string> switches_;
  /// For each other key: the values that were given.
  std::map<std::string, std::vector<std::string>> texts_;
};

/// A command that reads a job file, and flags that override it.
class JobFileCommand {
 public:
  /// Reads the settings of a job file.
  using ReadFile = Result<Settings> (*)(const std::string& path);

  template <class Keys>
  JobFileCommand(CLI::App& program, const std::string& name, const std::string& summary,
                 const Keys& keys, ReadFile read, const std::string& footer)
      : command_(program, name, summary), read_(read), flags_(command_, keys) {
    command_.add_argument("JOB", file_, "a job file: TOML lines `key = value`, each key as below");
    command_.set_footer(footer);
  }

  [[nodiscard]] const Command& command() const { return command_; }
  /// The job file, empty if none was named.
  [[nodiscard]] const std::string& file() const { return file_; }

  /// Reads the job file, and returns its settings overridden by those of the flags.
  [[nodiscard]] Result<Settings> settings() const;

 private:
  Command command_;
  ReadFile read_;
  std::string file_;
  CommandFlags flags_;
};

/// A command that takes flags and no job file. Refuses an empty value, and a flag that is given
/// twice unless it may be repeated.
class FlagsCommand {
 public:
  FlagsCommand(CLI::App& program, const std::string& name, const std::string& summary,
               const std::vector<KeyDescription>& keys);

  [[nodiscard]] Command& command() { return command_; }
  [[nodiscard]] const Command& command() const { return command_; }

  /// Accepts the value of `--job` as a positional argument too.
  void accept_job_argument();

  [[nodiscard]] Result<Settings> settings() const;

 private:
  Command command_;
  CommandFlags flags_;
  /// The positional argument JOB; empty if it was not given.
  std::string job_;
  /// The names of the keys whose flag may be repeated.
  std::set<std::string> repeatable_;
};

}  // namespace starling::program
