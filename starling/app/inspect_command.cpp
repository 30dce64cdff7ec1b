#include <fmt/format.h>

#include <filesystem>

#include "starling/app/advice.hpp"
#include "starling/app/commands.hpp"
#include "starling/app/data.hpp"
#include "starling/app/safetensors.hpp"
#include "starling/base/text.hpp"
#include "starling/models/data/describe.hpp"

namespace starling::app {
namespace {

constexpr std::string_view extension = ".safetensors";

std::string row(const char* name, const std::string& value) {
  return fmt::format("  {:<10}{}\n", name, value);
}

std::string bytes_text(std::size_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// Each class by its label as the file writes it, with its rows.
std::string classes_text(const std::vector<std::size_t>& counts,
                         const models::Labelling& labelling) {
  constexpr std::size_t shown = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(counts.size(), shown); ++i)
    text += fmt::format("{}{:g}: {}", i == 0 ? "" : ", ", labelling.written(static_cast<float>(i)),
                        counts[i]);
  return text + (counts.size() > shown ? fmt::format(", ... {} classes", counts.size()) : "");
}

std::string describe_table(const models::Table& table) {
  const auto d = models::describe(table);
  std::string text;
  text +=
      row("values", fmt::format("{} held, {:.1f} % of all are not 0", d.entries, 100 * d.density));
  text += row("", fmt::format("min {:.4g}, mean {:.4g}, max {:.4g}", d.value_min, d.value_mean,
                              d.value_max));
  text += d.class_counts.empty()
              ? row("labels", fmt::format("min {:.4g}, mean {:.4g}, max {:.4g}", d.label_min,
                                          d.label_mean, d.label_max))
              : row("classes", classes_text(d.class_counts, table.labelling));
  return text + row("memory", bytes_text(d.bytes));
}

Result<int> inspect_model(const std::string& path) {
  const auto file = safetensors::read(path);
  if (!file && !path.ends_with(extension) && !safetensors::begins_well(path))
    return Error{path + ": is no model that train --save wrote; data is named with its format: " +
                 forms_of_data(path)};
  if (!file) return file.error();
  std::string text = path + "\n";
  std::size_t bytes = 0;
  for (const auto& tensor : file->tensors) {
    text += fmt::format("  {:<24} {}\n", printable(tensor.name), tensor.describe());
    bytes += tensor.bytes.size();
  }
  text += fmt::format("  {} tensors, {}, {}\n", file->tensors.size(), bytes_text(bytes),
                      file->is_checked ? "checksum right" : "no checksum");
  for (const auto& [key, value] : file->metadata)
    text += fmt::format("  {} = {}\n", printable(key), printable(value));
  return put_out(text, done);
}

}  // namespace

Result<int> inspect_command(const Contents& contents, const std::string& what, std::uint64_t seed) {
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(what, ignored);
  if (is_file || (what.ends_with(extension) && !check_data(contents, what)))
    return inspect_model(what);
  const auto data = load_whole(contents, what, seed);
  if (!data) return data.error();
  std::string text = what + " (" + describe(*data) + ")\n";
  if (data->table() != nullptr) text += describe_table(*data->table());
  if (const std::string other = other_reading(what, *data); !other.empty())
    text += row("note", other);
  return put_out(text, done);
}

}  // namespace starling::app
