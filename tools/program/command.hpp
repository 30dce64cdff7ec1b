/// One command of the command line with its flags and arguments.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "starling/base/result.hpp"

// CLI11's headers take seconds to compile, so only two source files include them.
namespace CLI {
class App;
}  // namespace CLI

namespace starling::program {

class Command {
 public:
  /// `parent` is the program, or a command that has commands of its own.
  Command(CLI::App& parent, const std::string& name, const std::string& summary);

  CLI::App& app() { return app_; }
  [[nodiscard]] bool is_chosen() const;
  [[nodiscard]] const std::string& name() const;
  /// Returns the words by which a user calls the command: `starling keys node`.
  [[nodiscard]] std::string call() const;
  [[nodiscard]] bool has_flag(const std::string& flag) const;

  /// Allows at most one subcommand on the command line.
  void allow_one_subcommand();
  [[nodiscard]] bool has_chosen_subcommand() const;

  /// Gives the command another name, which may have spaces, and leaves it out of the help of its
  /// parent.
  void hide_as(const std::string& name);

  /// Sets the text that stands below the flags in the help.
  void set_footer(const std::string& text);

  // `flag` is "--name"; `value_name` stands for the value in the help, like FILE. Parsing writes
  // the value to the reference, which must outlive the command.
  void add_flag(const std::string& flag, bool& is_given, const std::string& help,
                const std::string& group = "Options");
  /// Adds a flag that may have a value: "true", as without one, or "false".
  void add_switch(const std::string& flag, std::string& value, const std::string& help,
                  const std::string& group);
  void add_value(const std::string& flag, std::string& value, const std::string& help,
                 const std::string& value_name);
  /// Adds a flag that may be repeated, with one value each time.
  void add_values(const std::string& flag, std::vector<std::string>& values,
                  const std::string& help, const std::string& value_name, const std::string& group);
  // Arguments without a flag: `name` stands for the argument in the help. Parsing refuses an empty
  // argument.
  void add_argument(const std::string& name, std::string& value, const std::string& help);
  void add_required_argument(const std::string& name, std::string& value, const std::string& help);
  void add_arguments(const std::string& name, std::vector<std::string>& values,
                     const std::string& help);

  /// Returns an Error if the user gave a flag or an argument that the command does not have. The
  /// Error suggests the flag with the most similar name.
  [[nodiscard]] Result<void> refuse_extras() const;
  /// Returns the error for a command that needs a subcommand and got no valid one. If the user gave
  /// no subcommand, the error begins with `missing` and ends with `hint`. If the user gave an
  /// unknown one, the error begins with `wrong`, in which the unknown word replaces "{}".
  [[nodiscard]] Error missing_command_error(const std::string& missing, const std::string& hint,
                                            const std::string& wrong) const;

 private:
  [[nodiscard]] std::string help_hint() const;
  /// Returns a check whose result is an error text if a value is empty, and else an empty text.
  [[nodiscard]] std::function<std::string(const std::string&)> refuse_empty() const;

  CLI::App& app_;
};

}  // namespace starling::program
