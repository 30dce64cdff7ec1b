#include "starling/tools/program/command.hpp"

#include <CLI/CLI.hpp>

#include "starling/base/text.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {

Command::Command(CLI::App& parent, const std::string& name, const std::string& summary)
    : app_(*parent.add_subcommand(name, summary)) {
  app_.allow_extras();
  app_.get_formatter()->column_width(32);
}

bool Command::is_chosen() const { return app_.parsed(); }

const std::string& Command::name() const { return app_.get_name(); }

std::string Command::call() const {
  const CLI::App* parent = app_.get_parent();
  const bool is_nested = parent != nullptr && parent->get_parent() != nullptr;
  return program_name() + " " + (is_nested ? parent->get_name() + " " : "") + name();
}

std::string Command::help_hint() const { return "`" + call() + " --help` lists what is valid"; }

bool Command::has_flag(const std::string& flag) const {
  return flag.starts_with("--") && app_.get_option_no_throw(flag) != nullptr;
}

void Command::allow_one_subcommand() { app_.require_subcommand(0, 1); }

bool Command::has_chosen_subcommand() const { return !app_.get_subcommands().empty(); }

void Command::hide_as(const std::string& name) { app_.name(name)->group(""); }

void Command::set_footer(const std::string& text) { app_.footer(text); }

void Command::add_flag(const std::string& flag, bool& is_given, const std::string& help,
                       const std::string& group) {
  app_.add_flag(flag, is_given, help)->group(group)->disable_flag_override();
}

void Command::add_switch(const std::string& flag, std::string& value, const std::string& help,
                         const std::string& group) {
  app_.add_flag(flag, value, help)
      ->group(group)
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->check(
          [](const std::string& text) {
            return text == "true" || text == "false"
                       ? std::string{}
                       : "'" + text + "' must be true or false; the flag alone means true";
          },
          "");
}

void Command::add_value(const std::string& flag, std::string& value, const std::string& help,
                        const std::string& value_name) {
  app_.add_option(flag, value, help)->type_name(value_name)->check(refuse_empty(), "");
}

void Command::add_values(const std::string& flag, std::vector<std::string>& values,
                         const std::string& help, const std::string& value_name,
                         const std::string& group) {
  app_.add_option(flag, values, help)
      ->type_name(value_name)
      ->group(group)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

std::function<std::string(const std::string&)> Command::refuse_empty() const {
  return [error = "is empty; " + help_hint()](const std::string& value) {
    return value.empty() ? error : std::string{};
  };
}

void Command::add_argument(const std::string& name, std::string& value, const std::string& help) {
  app_.add_option(name, value, help)->type_name("")->check(refuse_empty(), "");
}

void Command::add_required_argument(const std::string& name, std::string& value,
                                    const std::string& help) {
  app_.add_option(name, value, help)->type_name("")->required()->check(refuse_empty(), "");
}

void Command::add_arguments(const std::string& name, std::vector<std::string>& values,
                            const std::string& help) {
  app_.add_option(name, values, help)->type_name("")->check(refuse_empty(), "");
}

Result<void> Command::refuse_extras() const {
  const auto extras = app_.remaining();
  if (extras.empty()) return {};
  const std::string flag = extras[0].substr(0, extras[0].find('='));
  const std::string help = help_hint();
  if (!flag.starts_with('-')) return Error{"'" + extras[0] + "' is one argument too many; " + help};
  std::vector<std::string> known;
  for (const CLI::Option* option : app_.get_options())
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames()[0]);
  const std::string suggested = nearest(flag, known);
  return Error{"unknown flag '" + flag + "'; " +
               (suggested.empty() ? "" : "did you mean '" + suggested + "'? ") + help};
}

Error Command::missing_command_error(const std::string& missing, const std::string& hint,
                                     const std::string& wrong) const {
  std::vector<std::string> names;
  for (const CLI::App* command : app_.get_subcommands({})) names.push_back(command->get_name());
  const auto extras = app_.remaining();
  if (extras.empty()) return Error{missing + "; " + valid_names(names) + hint};
  if (extras[0].starts_with('-')) return refuse_extras().error();
  const auto offset = wrong.find("{}");
  return Error{std::string{wrong}.replace(offset, 2, extras[0]) + "; " + suggest(extras[0], names)};
}

}  // namespace starling::program
