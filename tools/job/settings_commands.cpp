#include "starling/tools/job/settings_commands.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

#include "starling/base/text.hpp"

namespace starling::program {
namespace {

/// Breaks a text into lines of at most 64 characters, so that the help is readable on a narrow
/// terminal.
std::string wrap_lines(const std::string& text) {
  constexpr std::size_t width = 64;
  std::string out;
  std::size_t column = 0;
  for (const std::string_view word : split(text, ' ')) {
    if (column > 0) {
      const bool breaks = column + 1 + word.size() > width;
      out += breaks ? '\n' : ' ';
      column = breaks ? 0 : column + 1;
    }
    out += word;
    column += word.size();
  }
  return out;
}

}  // namespace

void CommandFlags::add(Command& command, const KeyDescription& key) {
  keys_.push_back(&key);
  const std::string flag = "--" + key.name;
  if (key.type == ValueType::flag)
    command.add_switch(flag, switches_[key.name], wrap_lines(key.help), key.group);
  else
    command.add_values(flag, texts_[key.name], wrap_lines(key.help), key.value_name, key.group);
}

Settings CommandFlags::override_file(Settings file) const {
  Settings flags;
  for (const KeyDescription* key : keys_) {
    const std::string location = "--" + key->name;
    if (key->type == ValueType::flag) {
      const std::string& text = switches_.at(key->name);
      if (!text.empty()) flags.push_back({key->name, text, location});
    } else {
      for (const auto& text : texts_.at(key->name)) flags.push_back({key->name, text, location});
    }
  }
  Settings settings = override_settings(std::move(file), flags);
  std::erase_if(settings, [this](const Setting& setting) {
    const auto found = switches_.find(setting.key);
    return found != switches_.end() && found->second == "false";
  });
  return settings;
}

Result<Settings> JobFileCommand::settings() const {
  if (file_.empty()) return flags_.override_file({});
  auto file = read_(file_);
  if (!file) return file;
  return flags_.override_file(*std::move(file));
}

FlagsCommand::FlagsCommand(CLI::App& program, const std::string& name, const std::string& summary,
                           const std::vector<KeyDescription>& keys)
    : command_(program, name, summary), flags_(command_, keys) {
  for (const KeyDescription& key : keys)
    if (key.type == ValueType::texts) repeatable_.insert(key.name);
}

void FlagsCommand::accept_job_argument() {
  command_.add_argument("JOB", job_, "the job's name or number, or the beginning of either");
}

Result<Settings> FlagsCommand::settings() const {
  auto settings = flags_.override_file({});
  if (!job_.empty()) settings.push_back({"job", job_, "JOB"});
  std::set<std::string> seen;
  for (const Setting& setting : settings) {
    if (!repeatable_.contains(setting.key) && !seen.insert(setting.key).second)
      return Error{setting.location + ": is given twice; valid: once"};
    if (setting.text.empty()) return Error{setting.location + ": is empty; valid: a value"};
  }
  return settings;
}

}  // namespace starling::program
