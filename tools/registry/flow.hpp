/// Map-reduce programs of your own as commands: `starling::main` runs a registered flow by
/// `myprogram run NAME --input FILE`.
///
///     struct LongLines {
///       static constexpr std::string_view name = "long-lines";
///       static constexpr std::string_view summary = "the lines of at least --bytes bytes";
///       /// The flags of `run long-lines`, which parse() reads.
///       static std::vector<starling::FlowOption> flow_options() {
///         return {{"bytes", "N", "the length of a long line [80]"}};
///       }
///       std::uint64_t bytes = 80;
///
///       static LongLines parse(starling::SpecReader& options) {
///         return {.bytes = options.count("bytes", 80)};
///       }
///       /// Returns the records of the result: texts, numbers, or tuples of these.
///       starling::Result<starling::flow::Set<std::string>> run(
///           starling::FlowContext& context) const {
///         const auto lines = context.text();
///         if (!lines) return lines.error();
///         const auto is_long = [least = bytes](const auto& line) { return line.size() >= least; };
///         return starling::flow::Set<std::string>{lines->filter(is_long)};
///       }
///     };
///     registry.flow<LongLines>();
///
/// A flow whose records are flow::Sample or flow::SparseSample is also a data source:
/// `myprogram train --data NAME:FILE,FILE,bytes=90`. `submit` takes the same flag; then each node
/// that trains runs the flow.
///
/// In one process, one thread calls parse() and run() once, and several threads call the functions
/// of sets at the same time. On a cluster, each member of the job calls parse() and run() on a
/// thread of its own, and the threads that compute call the functions of sets. Several members may
/// be in one process. So run() must do the same at each call: it may read only its options, its
/// context and the results of actions, and files that are the same on all nodes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starling/actor/flow/map_reduce.hpp"
#include "starling/actor/flow/output_folder.hpp"
#include "starling/actor/flow/sample_table.hpp"
#include "starling/actor/flow/save_text.hpp"
#include "starling/base/input.hpp"
#include "starling/base/result.hpp"
#include "starling/base/spec.hpp"
#include "starling/tools/registry/registry.hpp"

namespace starling {

using program::FlowContext;
using program::FlowOption;

namespace program {

/// The type of a flow.
template <class F>
concept Flow = requires(const F flow, SpecReader& options, FlowContext& context) {
  { F::name } -> std::convertible_to<std::string_view>;
  { F::summary } -> std::convertible_to<std::string_view>;
  { F::flow_options() } -> std::same_as<std::vector<FlowOption>>;
  { F::parse(options) } -> std::same_as<F>;
  /// Returns a Result of a Set, whose records save_text() can write.
  flow.run(context);
};

/// The set that a flow's run() returns in a Result.
template <class F>
using SetOfFlow = typename ResultOf<std::remove_cvref_t<decltype(std::declval<const F&>().run(
    std::declval<FlowContext&>()))>>::Value;

/// The inputs of a flow, and where its result goes. Not thread-safe.
class FlowContext {
 public:
  /// write() writes the result into `output`, or keeps its first lines if `output` is null:
  /// `lines_kept_max` lines, or fewer if these have more than `bytes_kept_max` bytes.
  FlowContext(flow::MapReduce engine, std::vector<std::string> inputs, flow::OutputFolder* output,
              std::size_t lines_kept_max, std::size_t bytes_kept_max = SIZE_MAX)
      : engine_(std::move(engine)),
        inputs_(std::move(inputs)),
        output_(output),
        lines_kept_max_(lines_kept_max),
        bytes_kept_max_(bytes_kept_max) {}

  [[nodiscard]] const flow::MapReduce& engine() const { return engine_; }
  /// The files of --input; at least one.
  [[nodiscard]] const std::vector<std::string>& inputs() const { return inputs_; }
  /// Returns the lines of the input. `have_headers` is that of MapReduce::text().
  [[nodiscard]] Result<flow::Set<std::string, flow::TextChain>> text(
      bool have_headers = false) const {
    return engine_.text(inputs_, have_headers);
  }
  /// Adds a number to the summary, such as the count of iterations.
  void add_figure(std::string name, double value) { figures_.emplace_back(std::move(name), value); }

  /// Computes the result, and writes or keeps it. run_flow() calls this once.
  template <class T, class C>
  Result<void> write(const flow::Set<T, C>& set) {
    if (output_ == nullptr) return keep_first_lines(set);
    auto lines = flow::save_text(set, *output_);
    if (!lines) return std::move(lines).error();
    lines_ = *lines;
    return {};
  }

  [[nodiscard]] const std::vector<std::pair<std::string, double>>& figures() const {
    return figures_;
  }
  /// The number of lines of the result, and the first of them, which are kept only without an
  /// output.
  [[nodiscard]] std::uint64_t lines() const { return lines_; }
  [[nodiscard]] const std::vector<std::string>& first_lines() const { return first_lines_; }
  /// An error message for each file that was skipped. It names the file and the reason.
  [[nodiscard]] std::vector<std::string> skipped_files() const {
    std::vector<std::string> reasons;
    for (const Error& error : engine_.skipped_files()) reasons.push_back(error.message);
    return reasons;
  }

 private:
  template <class T, class C>
  Result<void> keep_first_lines(const flow::Set<T, C>& set) {
    using Head = std::pair<std::vector<std::string>, std::uint64_t>;
    const auto count = [most = lines_kept_max_, bytes_most = bytes_kept_max_](flow::Task& task,
                                                                              const C& chain) {
      Head head;
      std::size_t bytes = 0;
      chain.run(task, task.part(), [&](const T& record) {
        if (head.second++ < most && bytes <= bytes_most) {
          head.first.push_back(flow::line_of(record));
          bytes += head.first.back().size();
        }
        return true;
      });
      return head;
    };
    auto parts = set.run("show", count);
    if (!parts) return std::move(parts).error();
    std::size_t bytes = 0;
    for (const auto& part : *parts) {
      for (const std::string& line : part->first) {
        bytes += line.size();
        if (first_lines_.size() < lines_kept_max_ && bytes <= bytes_kept_max_)
          first_lines_.push_back(line);
      }
      lines_ += part->second;
    }
    return {};
  }

  flow::MapReduce engine_;
  std::vector<std::string> inputs_;
  flow::OutputFolder* output_;
  std::size_t lines_kept_max_;
  std::size_t bytes_kept_max_;
  std::vector<std::pair<std::string, double>> figures_;
  std::uint64_t lines_ = 0;
  std::vector<std::string> first_lines_;
};

template <class F>
Result<void> check_flow(SpecReader& options) {
  (void)F::parse(options);
  return options.finish();
}

template <class F>
Result<void> run_flow(SpecReader& options, FlowContext& context) {
  static_assert(Flow<F>, "a flow has name, summary, flow_options(), parse() and run()");
  const F flow = F::parse(options);
  if (auto done = options.finish(); !done) return std::move(done).error();
  const auto set = flow.run(context);
  if (!set) return set.error();
  return context.write(*set);
}

/// Returns the context of a flow that is a data source. Its files are the positional options that
/// are left. Returns an Error if there are none, or if an option is wrong.
[[nodiscard]] Result<FlowContext> context_of_source(SpecReader& options);

template <class F>
DataEntry::Load load_of_flow() {
  if constexpr (!flow::SampleRecord<typename SetOfFlow<F>::Value>) {
    return {};
  } else {
    return [](SpecReader& options, std::uint64_t, const models::Table* shape) -> Result<AnyData> {
      const F flow = F::parse(options);
      auto context = context_of_source(options);
      if (!context) return std::move(context).error();
      const auto samples = flow.run(*context);
      // The engine says only that it was stopped. The limits of this thread say why.
      const std::string name{F::name};
      if (!samples) {
        if (auto goes_on = check_reading(name); !goes_on) return std::move(goes_on).error();
        return samples.error();
      }
      const bool is_test = shape != nullptr;
      auto table = flow::to_table(
          *samples, is_test ? flow::TableOptions::like(*shape) : flow::TableOptions{});
      if (!table) {
        if (auto goes_on = check_reading(name); !goes_on) return std::move(goes_on).error();
        return std::move(table).error();
      }
      return AnyData::of(*std::move(table));
    };
  }
}

}  // namespace program
}  // namespace starling
