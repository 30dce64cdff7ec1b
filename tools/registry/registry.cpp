#include "starling/tools/registry/registry.hpp"

#include <algorithm>
#include <tuple>

#include "starling/base/text.hpp"

namespace starling {
namespace {

/// Returns true if `text` can be a flag or a command: lower-case letters, digits and '-', but no
/// '-' at the beginning.
bool is_word(const std::string& text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, is_allowed);
}

Result<void> check_flow(const program::FlowEntry& flow) {
  const std::string valid = "; valid: a word of small letters, digits and '-'";
  if (!is_word(flow.name))
    return Error{"the name " + quote(flow.name) + " of your own flow cannot be written" + valid};
  // The options of `run` and of `submit --flow`.
  std::vector<std::string> taken{
      "help",     "input",  "output",         "workers", "memory",  "parts",
      "lines",    "spill",  "json",           "quiet",   "to",      "keys",
      "insecure", "detach", "name",           "flow",    "threads", "wait-for-nodes",
      "token",    "trace",  "skip-unreadable"};
  for (const program::FlowOption& option : flow.options) {
    const std::string what = "the option " + quote(option.name) + " of your own flow " + flow.name;
    if (!is_word(option.name)) return Error{what + " cannot be written" + valid};
    if (std::ranges::find(taken, option.name) != taken.end())
      return Error{what + " has the name of another option; valid: each name once"};
    taken.push_back(option.name);
  }
  return {};
}

}  // namespace

Registry& Registry::add_models_of(const Registry& other) {
  const std::vector<program::ModelEntry> own = models_;
  for (const auto& entry : other.models_) {
    const auto hides = [&](const program::ModelEntry& mine) {
      return mine.name == entry.name && mine.data_type == entry.data_type;
    };
    if (std::ranges::none_of(own, hides)) models_.push_back(entry);
  }
  return *this;
}

Result<void> Registry::check() const {
  for (const auto& entry : barriers_) {
    const std::string& label = entry.rule.label;
    if (auto valid = barrier::check(entry.rule); !valid) return valid;
    const auto is_taken = [&](const auto& other) {
      return &other != &entry && (other.rule.label == label || other.rule.label == "p" + label);
    };
    if (std::ranges::any_of(barriers_, is_taken))
      return Error{"the label '" + label + "' of your predicate, or 'p" + label +
                   "' of its sampled form, is also the label of another predicate; valid: each "
                   "label once"};
  }
  const auto is_refused = [](unsigned char c) { return c <= ' ' || c > '~' || c == ','; };
  for (const auto& entry : actors_) {
    const auto refuse = [&](const std::string& why) {
      return Error{"the name '" + printable(entry.name) + "' of your own actors " + why};
    };
    if (entry.name.empty() || std::ranges::any_of(entry.name, is_refused))
      return refuse("cannot be written in a job; valid: one word of ASCII characters without ','");
    if (std::ranges::count(actors_, entry.name, &program::ActorsEntry::name) > 1)
      return refuse("is given twice; valid: each name once");
    if (!entry.spawn) return refuse("has no function; valid: a function that spawns them");
  }
  const auto key_of = [](const program::ModelEntry& entry) {
    return std::tie(entry.name, entry.element_type, entry.data_type);
  };
  for (const auto& entry : models_)
    if (std::ranges::count(models_, key_of(entry), key_of) > 1)
      return Error{"the name " + quote(entry.name) + " of your own model, or algorithm, with " +
                   print(entry.element_type) +
                   " elements is given twice; valid: each name once for a type of elements and a "
                   "type of data"};
  for (const auto& entry : data_)
    if (std::ranges::count(data_, entry.name, &program::DataEntry::name) > 1)
      return Error{"the name " + quote(entry.name) +
                   " of your own data source, or flow of samples, is given twice; valid: each name "
                   "once"};
  for (const auto& entry : flows_) {
    if (auto valid = check_flow(entry); !valid) return valid;
    if (std::ranges::count(flows_, entry.name, &program::FlowEntry::name) > 1)
      return Error{"the name " + quote(entry.name) +
                   " of your own flow is given twice; valid: each name once"};
  }
  return {};
}

}  // namespace starling

namespace starling::program {

std::string print(const Spec& spec) {
  std::string text = spec.name;
  for (const auto& [key, value] : spec.options) {
    text += text.size() == spec.name.size() ? ':' : ',';
    if (!key.empty()) text.append(key).append("=");
    text += value;
  }
  return text;
}

}  // namespace starling::program
