/// One command of the command line with its options. Flags that it does not know are refused with
/// the nearest.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "starling/base/result.hpp"
#include "starling/base/text.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {

class Command {
 public:
  /// `parent` is the program, or a command that has commands of its own.
  Command(CLI::App& parent, const std::string& name, const std::string& summary)
      : app_(*parent.add_subcommand(name, summary)) {
    app_.allow_extras();
    app_.get_formatter()->column_width(32);
  }

  CLI::App& app() { return app_; }
  [[nodiscard]] const CLI::App& app() const { return app_; }
  [[nodiscard]] bool is_chosen() const { return app_.parsed(); }
  [[nodiscard]] const std::string& name() const { return app_.get_name(); }
  /// Returns the words that call it: `starling keys node`.
  [[nodiscard]] std::string call() const {
    const CLI::App* parent = app_.get_parent();
    const bool is_nested = parent != nullptr && parent->get_parent() != nullptr;
    return program_name() + " " + (is_nested ? parent->get_name() + " " : "") + name();
  }

  [[nodiscard]] bool knows(const std::string& flag) const {
    return flag.starts_with("--") && app_.get_option_no_throw(flag) != nullptr;
  }

  [[nodiscard]] Result<void> refuse_extras() const {
    const auto extras = app_.remaining();
    if (extras.empty()) return {};
    const std::string flag = extras[0].substr(0, extras[0].find('='));
    const std::string help = "`" + call() + " --help` lists what is valid";
    if (!flag.starts_with('-'))
      return Error{"'" + extras[0] + "' is one argument too many; " + help};
    std::vector<std::string> known;
    for (const CLI::Option* option : app_.get_options())
      if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames()[0]);
    const std::string meant = nearest(flag, known);
    return Error{"unknown flag '" + flag + "'; " +
                 (meant.empty() ? "" : "did you mean '" + meant + "'? ") + help};
  }

  /// Returns the error of a command that only has commands, none of which was chosen. `missing`
  /// leads where no word was given, and `hint` ends it; `wrong` leads where an unknown word was
  /// given, with that word for "{}".
  [[nodiscard]] Error without_command(const std::string& missing, const std::string& hint,
                                      const std::string& wrong) const {
    std::vector<std::string> names;
    for (const CLI::App* command : app_.get_subcommands({})) names.push_back(command->get_name());
    const auto extras = app_.remaining();
    if (extras.empty()) return Error{missing + "; " + valid_names(names) + hint};
    if (extras[0].starts_with('-')) return refuse_extras().error();
    const auto place = wrong.find("{}");
    return Error{std::string{wrong}.replace(place, 2, extras[0]) + "; " +
                 suggest(extras[0], names)};
  }

 private:
  CLI::App& app_;
};

}  // namespace starling::program
