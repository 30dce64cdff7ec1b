/// Saves a data set as text.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "starling/actor/flow/output_folder.hpp"
#include "starling/base/fields.hpp"
#include "starling/base/text.hpp"
#include "starling/engine/flow/set.hpp"

namespace starling::flow {

/// Returns a record as a line: print(record) if the namespace of a struct has that function, text
/// and numbers as they are, and the elements of pairs, tuples and vectors and the fields of structs
/// with tabs between them.
template <class T>
[[nodiscard]] std::string line_of(const T& record) {
  if constexpr (Text<T>) {
    return record;
  } else if constexpr (std::is_same_v<T, float>) {
    return print_float(record);
  } else if constexpr (std::floating_point<T>) {
    return print_number(static_cast<double>(record));
  } else if constexpr (Arithmetic<T>) {
    return std::to_string(record);
  } else if constexpr (Fielded<T> && requires {
                         { print(record) } -> std::same_as<std::string>;
                       }) {
    return print(record);
  } else {
    static_assert(Tuple<T> || Vector<T> || Fielded<T>,
                  "save_text(): records must be text, numbers, structs, or tuples or vectors of "
                  "these; map() makes text of others");
    std::string line;
    const auto add = [&line](const auto&... parts) { ((line += line_of(parts) + '\t'), ...); };
    if constexpr (Vector<T>)
      std::ranges::for_each(record, add);
    else if constexpr (Fielded<T>)
      std::apply(add, T::fields(record));
    else
      std::apply(add, record);
    if (!line.empty()) line.pop_back();
    return line;
  }
}

/// Writes each part as a file of the folder, a line for each record, and gives the folder its final
/// name. Returns the number of lines. If several members of a job write the set, each calls this
/// with an output of its own (OutputFolder::shared()). Requires: `output` has not been committed.
template <class T, class C>
[[nodiscard]] Result<std::uint64_t> save_text(const Set<T, C>& set, OutputFolder& output) {
  const auto write = [&output](Task& task, const C& chain) {
    PartFile file = output.open_part(task.part());
    std::uint64_t lines = 0;
    chain.run(task, task.part(), [&](const T& record) {
      if constexpr (Text<T>)
        file.add_line(record);
      else
        file.add_line(line_of(record));
      return ++lines, true;
    });
    file.finish();
    return lines;
  };
  auto written = set.run("save_text", write);
  if (!written) return std::move(written).error();
  const auto parts = static_cast<Part>(written->size());
  if (auto committed = output.commit(parts); !committed) return std::move(committed).error();
  std::uint64_t lines = 0;
  for (const auto& part_lines : *written) lines += *part_lines;
  return lines;
}

/// Writes each part as a file of a new folder, `FOLDER/part-00000.txt` and so on. The folder
/// appears when all parts are complete, by one rename; a job that fails leaves nothing behind.
/// Returns the number of lines; an Error if the folder exists or cannot be written, or if a task
/// fails.
template <class T, class C>
[[nodiscard]] Result<std::uint64_t> save_text(const Set<T, C>& set, const std::string& folder) {
  auto output = OutputFolder::make(folder);
  if (!output) return std::move(output).error();
  return save_text(set, *output);
}

}  // namespace starling::flow
