#include "starling/models/cuda/parameter_copies.hpp"

#include <algorithm>
#include <cstring>

#include "starling/base/check.hpp"
#include "starling/models/cuda/kernels/rows.hpp"
#include "starling/models/cuda/launch.hpp"

namespace starling::models::cuda {
namespace {

/// Numbers that are copied at once: 4 MiB.
constexpr std::size_t chunk_max = std::size_t{1} << 20U;

/// Returns the number of whole rows in a chunk.
std::size_t rows_in_chunk(std::size_t width) { return std::max<std::size_t>(chunk_max / width, 1); }

std::size_t parts(std::size_t size, std::size_t of) { return (size + of - 1) / of; }

std::size_t sparse_rows(const std::vector<Parameter>& parameters) {
  std::size_t rows = 0;
  for (const Parameter& p : parameters) rows += p.row_sparse ? p.shape[0] : 0;
  return rows;
}

}  // namespace

/// The numbers that one copy moves: adjacent numbers, or rows of one parameter, which are staged
/// one behind the other from their parameter's place on.
struct ParameterCopies::Chunk {
  /// The chunk's place in the staging memory.
  std::size_t at;
  std::size_t size;
  /// The parameter to which the rows belong.
  Place place = {};
  /// The rows of the chunk; null where the numbers are staged at their own place.
  const std::uint32_t* rows = nullptr;
  /// The rows of the chunk, in the device's memory.
  const Index* rows_there = nullptr;

  /// Calls visit(place in the parameter vector, place where it is staged, numbers).
  template <class Visit>
  void for_rows(const Visit& visit) const {
    if (rows == nullptr) return visit(at, at, size);
    for (std::size_t i = 0; i * place.width < size; ++i)
      visit(place.start + rows[i] * place.width, at + i * place.width, place.width);
  }
};

ParameterCopies::ParameterCopies(const std::vector<Parameter>& parameters)
    : w_staged_(total_size(parameters)),
      g_staged_(w_staged_.size()),
      rows_staged_(sparse_rows(parameters)),
      rows_(rows_staged_.size()) {
  std::size_t start = 0;
  std::size_t chunks = 0;
  for (const Parameter& p : parameters) {
    const Place place{start, p.size() / p.row_size(), p.row_size()};
    places_.push_back(place);
    start += p.size();
    if (p.row_sparse) {
      chunks += parts(place.rows, rows_in_chunk(place.width));
    } else if (!dense_.empty() && dense_.back().start + dense_.back().size == place.start) {
      dense_.back().size += p.size();
    } else {
      dense_.push_back({place.start, p.size()});
    }
  }
  for (const Stretch& stretch : dense_) chunks += parts(stretch.size, chunk_max);
  arrived_ = std::vector<Event>(chunks);
}

template <class Visit>
void ParameterCopies::for_chunks(const Touched& touched, const Visit& visit) const {
  for (const auto& [start, size] : dense_)
    for (std::size_t i = 0; i < size; i += chunk_max)
      visit(Chunk{.at = start + i, .size = std::min(chunk_max, size - i)});
  const Index* rows_there = rows_.data();
  for (const auto& [parameter, rows] : touched) {
    const Place& place = places_[parameter];
    const std::size_t most = rows_in_chunk(place.width);
    for (std::size_t i = 0; i < rows.size(); i += most)
      visit(Chunk{.at = place.start + i * place.width,
                  .size = std::min(most, rows.size() - i) * place.width,
                  .place = place,
                  .rows = rows.data() + i,
                  .rows_there = rows_there + i});
    rows_there += rows.size();
  }
}

void ParameterCopies::upload(const Context& context, std::span<const float> w,
                             const Touched& touched, float* spare, float* there) {
  STARLING_CHECK(w.size() == w_staged_.size());
  const cudaStream_t stream = context.stream().get();
  Index* end = rows_staged_.data();
  for (const auto& [parameter, rows] : touched) {
    STARLING_CHECK(rows.empty() || rows.back() < places_[parameter].rows);
    end = std::ranges::copy(rows, end).out;
  }
  const auto count = static_cast<std::size_t>(end - rows_staged_.data());
  if (count > 0)
    check(cudaMemcpyAsync(rows_.data(), rows_staged_.data(), count * sizeof(Index),
                          cudaMemcpyHostToDevice, stream),
          "copying parameters");
  for_chunks(touched, [&](const Chunk& chunk) {
    chunk.for_rows([&](std::size_t from, std::size_t to, std::size_t size) {
      std::memcpy(w_staged_.data() + to, w.data() + from, size * sizeof(float));
    });
    float* to = (chunk.rows == nullptr ? there : spare) + chunk.at;
    check(cudaMemcpyAsync(to, w_staged_.data() + chunk.at, chunk.size * sizeof(float),
                          cudaMemcpyHostToDevice, stream),
          "copying parameters");
    if (chunk.rows == nullptr) return;
    for_each(context, chunk.size,
             ScatterRows{chunk.rows_there, to, there + chunk.place.start,
                         static_cast<Index>(chunk.place.width)},
             "copying parameters");
  });
}

void ParameterCopies::add_to(const Context& context, const float* there, const Touched& touched,
                             float* spare, std::span<float> g) {
  STARLING_CHECK(g.size() == g_staged_.size());
  std::size_t next = 0;
  for_chunks(touched, [&](const Chunk& chunk) {
    const float* from = (chunk.rows == nullptr ? there : spare) + chunk.at;
    if (chunk.rows != nullptr)
      for_each(context, chunk.size,
               GatherRows<Index>{chunk.rows_there, there + chunk.place.start, spare + chunk.at,
                                 static_cast<Index>(chunk.place.width)},
               "reading a gradient");
    check(cudaMemcpyAsync(g_staged_.data() + chunk.at, from, chunk.size * sizeof(float),
                          cudaMemcpyDeviceToHost, context.stream().get()),
          "reading a gradient");
    arrived_[next++].record(context.stream());
  });
  // Adds each chunk while the next is copied.
  next = 0;
  for_chunks(touched, [&](const Chunk& chunk) {
    arrived_[next++].wait();
    chunk.for_rows([&](std::size_t to, std::size_t from, std::size_t size) {
      const float* staged = g_staged_.data() + from;
      for (std::size_t i = 0; i < size; ++i) g[to + i] += staged[i];
    });
  });
}

}  // namespace starling::models::cuda
