#include "starling/engine/exchange/allreduce/round_sum.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>

#include "starling/base/check.hpp"
#include "starling/engine/exchange/allreduce/pieces.hpp"
#include "starling/engine/exchange/allreduce/sum_algorithm.hpp"
#include "starling/models/optimizer/compressions/bf16.hpp"

namespace starling::core {
namespace {

using collective::Rank;

/// A message holds at most this many bytes of the vector.
constexpr std::size_t piece_bytes_max = range_bytes_max;
/// More slices in progress do not make a sum faster.
constexpr std::size_t slices_in_progress_max = 4;
/// The elements for each worker: the bytes of the number of steps of its update, or 0, and those of
/// its number of samples, the lowest byte first. Even bfloat16 holds each byte exactly.
constexpr std::size_t steps_bytes = 3;
constexpr std::size_t samples_bytes = 4;
constexpr std::size_t elements_of_worker = steps_bytes + samples_bytes;

template <class T>
void write_bytes(std::span<T> to, std::uint64_t value) {
  for (T& element : to) {
    element = static_cast<T>(value & 0xFFU);
    value >>= 8U;
  }
}

template <class T>
std::uint64_t read_bytes(std::span<const T> from) {
  std::uint64_t value = 0;
  for (std::size_t i = from.size(); i-- > 0;)
    value = value << 8U | static_cast<std::uint64_t>(from[i]);
  return value;
}

/// Returns how many elements change together: those of a row, or of the whole range.
std::size_t unit_size(const Range& range) {
  return std::max<std::size_t>(1, range.row_size > 0 ? range.row_size : range.count);
}

/// Where the parts of the vector begin.
struct Parts {
  Parts(const Layout& layout, std::size_t workers) {
    for (const Range& range : layout.ranges) {
      ranges.push_back(size);
      size += range.count + range.count / unit_size(range);
    }
    of_workers = size;
    size += elements_of_worker * workers;
  }

  /// By range: first the elements, then the numbers of updates that change each unit.
  std::vector<std::size_t> ranges;
  std::size_t of_workers = 0;
  std::size_t size = 0;
};

collective::Schedule make_sum_schedule(const RoundSumOptions& options, double bytes) {
  using collective::Operation;
  if (!options.algorithm.empty()) {
    const auto algorithm = collective::parse_algorithm(options.algorithm);
    STARLING_CHECK(algorithm.ok());
    auto schedule =
        collective::make_schedule(*algorithm, Operation::all_reduce, options.workers, Rank{0});
    if (schedule.ok()) return *std::move(schedule);
  }
  return fastest_sum(options.workers, bytes).schedule;
}

/// The sums of vectors with elements of type T.
template <class T>
class TypedRoundSum final : public RoundSum {
 public:
  explicit TypedRoundSum(const RoundSumOptions& options)
      : options_(options), parts_(*options.layout, options.workers) {
    const auto bytes = static_cast<double>(parts_.size * sizeof(T));
    const auto schedule = make_sum_schedule(options, bytes);
    program_ = std::make_shared<const collective::Program>(
        collective::make_program(schedule, options.self));
    const auto [slices, window] = cut_sum(schedule, bytes, options.window);
    executor_ = collective::Executor<T>{{.window = window}, rounding()};
    slices_ = slices;
    is_compact_ = options_.residual != nullptr;
  }

  [[nodiscard]] bool can_start() const override {
    return started_ == completed_ && !executor_.is_full();
  }

  void start(Sends& out, const Update* update, Step steps) override {
    collective::Effects<T> effects;
    executor_.start(effects, ++started_, program_, vector_of(update, steps), slices_);
    execute(out, std::move(effects));
  }

  void on(Sends& out, Rank from, const SumPiece& piece) override {
    is_compact_ |= piece.values.is_compact;
    collective::Effects<T> effects;
    (void)executor_.on(effects, from, to_piece<T>(piece));
    execute(out, std::move(effects));
  }

  void on(Sends& out, Rank from, const SumProgress& progress) override {
    collective::Effects<T> effects;
    (void)executor_.on(effects, from, to_progress(progress));
    execute(out, std::move(effects));
  }

  [[nodiscard]] bool is_complete() const override { return !sum_.empty(); }

  [[nodiscard]] std::vector<std::optional<SumPart>> parts() const override {
    std::vector<std::optional<SumPart>> all(options_.workers);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const std::span<const T> worker = of_worker(std::span{sum_}, rank);
      if (const Step steps = read_bytes(worker.first(steps_bytes)); steps > 0)
        all[rank] = {steps, static_cast<std::uint32_t>(read_bytes(worker.subspan(steps_bytes)))};
    }
    return all;
  }

  void apply(std::vector<RangeValues>& ranges) override {
    double weights = 0;
    for (const auto& part : parts())
      if (part) weights += weight_of(part->samples);
    for (RangeId range = 0; range < ranges.size() && weights > 0; ++range) {
      const RoundPart part{changed_part(range, weights), 1};
      if (!part.update.empty())
        options_.applier->apply_round(*options_.layout, range, ranges[range], {&part, 1}, scratch_);
    }
    sum_.clear();
  }

 private:
  /// Returns by what the elements of an update are multiplied, so that the sum divided by the sum
  /// of the weights is what apply_round() applies.
  [[nodiscard]] double weight_of(std::uint32_t samples) const {
    return options_.applier->averages_rounds() ? samples : 1;
  }

  template <class Element>
  [[nodiscard]] std::span<Element> of_worker(std::span<Element> vector, std::size_t rank) const {
    return vector.subspan(parts_.of_workers + elements_of_worker * rank, elements_of_worker);
  }

  /// Returns this worker's vector; without an update, that of its residual alone.
  [[nodiscard]] std::vector<T> vector_of(const Update* update, Step steps) {
    std::vector<T> vector(parts_.size);
    if (update != nullptr) {
      if (!update->parts.empty()) is_compact_ |= update->parts.front().values.is_compact;
      const std::span<T> worker = of_worker(std::span{vector}, options_.self);
      write_bytes(worker.first(steps_bytes), steps);
      write_bytes(worker.subspan(steps_bytes), update->samples);
      const double weight = weight_of(update->samples);
      if (weight > 0)  // what is computed from no samples may hold any values
        for (const Update::Part& part : update->parts) add(vector, part, static_cast<T>(weight));
    }
    if (options_.residual) {
      const auto& errors = options_.residual->errors;
      std::ranges::transform(vector.begin(), vector.begin() + std::ssize(errors), errors.begin(),
                             errors.end(), vector.begin(), std::plus<T>{});
      options_.residual->pending.assign(parts_.of_workers, 0);
    }
    return vector;
  }

  /// Returns the function that rounds what is sent, and keeps the errors; none without a residual.
  /// The elements of workers are bytes, which do not change.
  [[nodiscard]] typename collective::Executor<T>::BeforeSend rounding() const {
    if (!options_.residual) return {};
    if constexpr (std::is_same_v<T, float>) {
      return [residual = options_.residual](std::size_t first, std::span<float> elements) {
        const std::span<float> errors{residual->pending};
        const std::size_t end = std::min(first + elements.size(), errors.size());
        if (first >= end) return;
        models::Bf16::round(elements.first(end - first), errors.subspan(first, end - first));
      };
    }
    STARLING_CHECK(false);
    return {};
  }

  void add(std::vector<T>& vector, const Update::Part& part, T weight) const {
    const Range& range = options_.layout->ranges[part.range];
    const std::size_t unit = unit_size(range);
    T* const elements = &vector[parts_.ranges[part.range]];
    T* const counts = elements + range.count;
    const auto values = part.values.as<T>();
    for (std::size_t from = 0; from < values.size(); from += unit) {
      const std::size_t u = part.values.rows ? (*part.values.rows)[from / unit] : from / unit;
      counts[u] = 1;
      for (std::size_t i = 0; i < unit; ++i) elements[u * unit + i] = weight * values[from + i];
    }
  }

  /// Returns the units of a range that some update changes, with the sum of their updates; divided
  /// by the sum of the weights if the applier takes means.
  [[nodiscard]] Slice changed_part(RangeId id, double weights) const {
    const Range& range = options_.layout->ranges[id];
    const std::size_t unit = unit_size(range);
    const T* const elements = &sum_[parts_.ranges[id]];
    const T* const counts = elements + range.count;
    auto rows = std::make_shared<std::vector<std::uint32_t>>();
    for (std::size_t u = 0; u < range.count / unit; ++u)
      if (counts[u] > 0) rows->push_back(static_cast<std::uint32_t>(u));
    const T divisor = options_.applier->averages_rounds() ? static_cast<T>(weights) : T{1};
    auto values = Buffer::make<T>(rows->size() * unit);
    auto to = values->template as<T>().begin();
    for (const std::uint32_t u : *rows)
      for (std::size_t i = 0; i < unit; ++i) *to++ = elements[u * unit + i] / divisor;
    const std::size_t count = rows->size() * unit;
    if (count == range.count) rows = nullptr;
    return {std::move(values), 0, count, std::move(rows)};
  }

  void execute(Sends& out, collective::Effects<T> effects) {
    for (auto& effect : effects) {
      if (auto* completed = std::get_if<collective::Completed<T>>(&effect)) {
        completed_ = completed->collective;
        sum_ = std::move(completed->values);
        continue;
      }
      auto& send = std::get<collective::Send<T>>(effect);
      if (const auto* progress = std::get_if<collective::Progress>(&send.message))
        out.emplace_back(send.to, to_message(*progress, options_.epoch));
      else
        out.emplace_back(send.to, to_message(std::get<collective::Piece<T>>(send.message),
                                             options_.epoch, is_compact_));
    }
  }

  RoundSumOptions options_;
  Parts parts_;
  std::shared_ptr<const collective::Program> program_;
  std::uint32_t slices_ = 1;
  collective::Executor<T> executor_;
  collective::CollectiveId started_ = 0;
  collective::CollectiveId completed_ = 0;
  /// The sum that was completed last, until it is applied; empty if there is none.
  std::vector<T> sum_;
  RoundScratch scratch_;
  /// True if the workers compress their updates (Slice::is_compact).
  bool is_compact_ = false;
};

}  // namespace

SumSlices cut_sum(const collective::Schedule& schedule, double bytes, std::size_t window) {
  double largest = 0;
  for (const auto& chunk : schedule.chunks) largest = std::max(largest, chunk.share);
  return {.slices = 1 + static_cast<std::uint32_t>(largest * bytes / piece_bytes_max),
          .window = static_cast<std::uint32_t>(
              std::clamp<std::size_t>(window / schedule.chunks.size(), 1, slices_in_progress_max))};
}

std::unique_ptr<RoundSum> make_round_sum(const RoundSumOptions& options) {
  STARLING_CHECK(options.self < options.workers && options.workers <= allreduce_workers_max);
  if (options.applier->element_bytes() == sizeof(float))
    return std::make_unique<TypedRoundSum<float>>(options);
  return std::make_unique<TypedRoundSum<double>>(options);
}

}  // namespace starling::core
