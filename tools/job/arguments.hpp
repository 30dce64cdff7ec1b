/// The parts that declare the command line: commands, keys as flags, job files. Internal to it.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/base/text.hpp"
#include "starling/tools/job/keys.hpp"
#include "starling/tools/job/settings.hpp"
#include "starling/tools/program/command.hpp"
#include "starling/tools/program/program_name.hpp"

namespace starling::program {

inline constexpr const char* needs_value = "needs a value";

/// Refuses a flag that stands where a value should.
inline std::string refuse_flag(const std::string& text) {
  return text.starts_with("--") || text == "-h" ? needs_value : std::string{};
}

/// Returns CLI11's error, in our words where its own are too short.
inline Error usage_error(const CLI::ParseError& fault) {
  const std::string what = fault.what();
  if (fault.get_name() != "ArgumentMismatch") return Error{what};
  const bool many =
      what.find("received ") != std::string::npos && what.find("received 0") == std::string::npos;
  return Error{what.substr(0, what.find(':')) + ": " + (many ? "is given twice" : needs_value)};
}

/// Longer lines are broken, so that the help stays readable on a narrow terminal.
inline std::string wrapped(const std::string& text) {
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

/// Keys as flags, and the values that were given for them.
class KeyFlags {
 public:
  template <class Keys>
  KeyFlags(CLI::App& app, const Keys& keys) {
    for (const auto& key : keys) add(app, key);
  }

  [[nodiscard]] Settings settings() const {
    Settings flags;
    for (const KeyForm* key : keys_) {
      const std::string place = "--" + key->name;
      if (key->kind == KeyKind::flag) {
        if (set_.at(key->name)) flags.push_back({key->name, "true", place});
      } else {
        for (const auto& text : texts_.at(key->name)) flags.push_back({key->name, text, place});
      }
    }
    return flags;
  }

 private:
  void add(CLI::App& app, const KeyForm& key) {
    keys_.push_back(&key);
    const std::string flag = "--" + key.name;
    if (key.kind == KeyKind::flag) {
      app.add_flag(flag, set_[key.name], wrapped(key.help))->group(key.group);
      return;
    }
    app.add_option(flag, texts_[key.name], wrapped(key.help))
        ->type_name(key.form)
        ->group(key.group)
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
  }

  std::vector<const KeyForm*> keys_;
  std::map<std::string, bool> set_;
  std::map<std::string, std::vector<std::string>> texts_;
};

/// A command that takes a job file and flags that override it.
class JobArguments {
 public:
  using ReadFile = Result<Settings> (*)(const std::string& path);

  template <class Keys>
  JobArguments(CLI::App& program, const std::string& name, const std::string& summary,
               const Keys& keys, ReadFile read, const std::string& footer)
      : command_(program, name, summary), read_(read), flags_(command_.app(), keys) {
    command_.app()
        .add_option("JOB", file_, "a job file: TOML lines `key = value`, each key as below")
        ->type_name("");
    command_.app().footer(footer);
  }

  [[nodiscard]] const Command& command() const { return command_; }
  /// The job file, empty where none was named.
  [[nodiscard]] const std::string& file() const { return file_; }

  [[nodiscard]] Result<Settings> settings() const {
    if (file_.empty()) return flags_.settings();
    auto file = read_(file_);
    if (!file) return file;
    return overridden(*std::move(file), flags_.settings());
  }

 private:
  Command command_;
  ReadFile read_;
  std::string file_;
  KeyFlags flags_;
};

/// A command whose flags are all that it takes: each once at most unless it may be repeated, none
/// of them empty.
class FlagArguments {
 public:
  FlagArguments(CLI::App& program, const std::string& name, const std::string& summary,
                const std::vector<KeyForm>& keys)
      : command_(program, name, summary), flags_(command_.app(), keys) {
    for (const KeyForm& key : keys)
      if (key.kind == KeyKind::texts) repeatable_.insert(key.name);
  }

  [[nodiscard]] Command& command() { return command_; }
  [[nodiscard]] const Command& command() const { return command_; }

  /// The key `job` may stand as a word without its flag.
  void take_job() {
    command_.app()
        .add_option("JOB", job_, "its name, or its number, or the beginning of either")
        ->type_name("");
  }

  [[nodiscard]] Result<Settings> settings() const {
    auto settings = flags_.settings();
    if (!job_.empty()) settings.push_back({"job", job_, "JOB"});
    std::set<std::string> seen;
    for (const Setting& setting : settings) {
      if (!repeatable_.contains(setting.key) && !seen.insert(setting.key).second)
        return Error{setting.place + ": is given twice"};
      if (setting.text.empty()) return Error{setting.place + ": is empty"};
    }
    return settings;
  }

 private:
  Command command_;
  KeyFlags flags_;
  std::string job_;
  std::set<std::string> repeatable_;
};

}  // namespace starling::program
