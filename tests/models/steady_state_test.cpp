// Checks properties that a compute thread relies on: after the first call, gradients allocate
// nothing, they start no threads, and concurrent calls do not disturb each other.
#include <gtest/gtest.h>
#include <link.h>
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <thread>

#include "starling/models/built_in/built_in_models.hpp"
#include "starling/models/kernels/gemm.hpp"
#include "tests/models/model_data.hpp"

namespace {

/// The number of allocations by code outside oneDNN.
std::atomic<std::size_t> allocations{0};
/// The number of allocations by oneDNN, and the size of the largest in bytes. oneDNN allocates a
/// list of arguments for each primitive that it runs.
std::atomic<std::size_t> dnnl_allocations{0};
std::atomic<std::size_t> dnnl_bytes_max{0};

/// The addresses of oneDNN's code, [from, to); empty if oneDNN is not loaded.
struct DnnlCode {
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;

  static int find(dl_phdr_info* library, std::size_t, void* found) {
    if (std::string_view{library->dlpi_name}.find("libdnnl") == std::string_view::npos) return 0;
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const auto& part = library->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      const std::uintptr_t from = library->dlpi_addr + part.p_vaddr;
      *static_cast<DnnlCode*>(found) = {from, from + part.p_memsz};
    }
    return 0;
  }
  DnnlCode() { dl_iterate_phdr(find, this); }
  DnnlCode(std::uintptr_t begin, std::uintptr_t end) : from(begin), to(end) {}
};

/// Counts an allocation of `size` bytes by the code at `caller`.
void count_allocation(void* caller, std::size_t size) {
  static const DnnlCode dnnl;
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (address < dnnl.from || address >= dnnl.to) {
    ++allocations;
    return;
  }
  ++dnnl_allocations;
  if (size > dnnl_bytes_max) dnnl_bytes_max = size;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  count_allocation(__builtin_return_address(0), size);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

/// Replaces the C library's aligned_alloc, by which Arena allocates, to count its calls.
extern "C" [[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count_allocation(__builtin_return_address(0), size);
  return memalign(alignment, size);
}

namespace starling::models {
namespace {

template <class T>
double gradient(const AnyModel<T>& model, std::span<const T> w, const Table& data, Batch batch,
                std::span<T> g, Arena& arena) {
  arena.reset();
  Random random{1};
  ComputeContext context{random, arena};
  return std::visit([&](const auto& any) { return any.gradient(w, data, batch, g, context); },
                    model);
}

template <class T>
std::vector<T> draw_parameters(const AnyModel<T>& model) {
  const auto parameters = std::visit([](const auto& any) { return any.parameters(); }, model);
  std::vector<T> w(total_size(parameters));
  Random random{2};
  for (T& value : w) value = static_cast<T>(0.1 * random.normal());
  return w;
}

/// Expects that only oneDNN allocates in the second call of gradient(). Leaves what it allocated
/// there in dnnl_allocations and dnnl_bytes_max.
void expect_only_dnnl_allocates(const char* text, const Table& data) {
  const auto model = parse_model<float>(text, data).value();
  const auto w = draw_parameters(model);
  std::vector<float> g(w.size());
  const auto batch = all_rows(data);
  Arena arena;
  gradient<float>(model, w, data, batch, g, arena);
  const std::size_t before = allocations;
  dnnl_allocations = dnnl_bytes_max = 0;
  gradient<float>(model, w, data, batch, g, arena);
  EXPECT_EQ(allocations, before) << text;
}

TEST(SteadyState, WarmGradientsAllocateNothing) {
  const std::size_t before = allocations;
  const Table data = dense_table(700, 9, 0);
  ASSERT_GT(allocations, before) << "allocations are not counted";
  expect_only_dnnl_allocates("linear", data);
  expect_only_dnnl_allocates("logistic", sparse_table(700, 9, 2));
  expect_only_dnnl_allocates("softmax", dense_table(700, 9, 4));
  expect_only_dnnl_allocates("svm", sparse_table(700, 9, 4));
  expect_only_dnnl_allocates("mf", ratings_table(700, 9, 4));
  expect_only_dnnl_allocates("mlp:9-33-17-4", dense_table(700, 9, 4));
  expect_only_dnnl_allocates("mlp:9-33-1", sparse_table(700, 9, 0));
}

/// A net computes a large batch in parts of 256 rows, which use the same memory one after the
/// other.
TEST(SteadyState, NetsNeedNoMoreMemoryForMoreParts) {
  const auto model =
      parse_model<float>("net:layers=dense 500; relu; dense 4", dense_table(8, 9, 4)).value();
  const auto w = draw_parameters(model);
  std::vector<float> g(w.size());
  const auto blocks_for = [&](std::size_t rows) {
    const Table data = dense_table(rows, 9, 4);
    const auto batch = all_rows(data);
    Arena arena;
    const std::size_t before = allocations;
    gradient<float>(model, w, data, batch, g, arena);
    return allocations - before;
  };
  (void)blocks_for(512);  // the first call also allocates what later ones share
  EXPECT_EQ(blocks_for(4096), blocks_for(512));
}

/// Steps become larger, for example, when dynamic batches change.
TEST(SteadyState, AnArenaFreesBlocksThatAreTooSmallForLargerSteps) {
  const auto used_bytes = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  constexpr std::size_t mib = std::size_t{1} << 20U;
  const std::size_t before = used_bytes();
  Arena arena;
  for (std::size_t size = 2; size <= 20; ++size) {
    arena.reset();
    (void)arena.allocate<std::byte>(2 * size * mib);
    (void)arena.allocate<std::byte>(size * mib);
  }
  EXPECT_LE(used_bytes(), before + 64 * mib) << "the last step needs 60 MiB";
}

/// For example the difference of two sizes, which is below 0.
TEST(SteadyState, AnArenaRefusesMoreThanAnyMemoryHas) {
  Arena arena;
  for (const std::size_t count : {SIZE_MAX - 3, SIZE_MAX / 4 + 1, SIZE_MAX / 8 + 1})
    EXPECT_THROW((void)arena.allocate<double>(count), std::bad_alloc) << count;
  EXPECT_EQ(arena.allocate<double>(3).size(), 3U);
}

TEST(SteadyState, WarmNetsAllocateOnlyOneDnnsArgumentLists) {
  expect_only_dnnl_allocates(
      "net:layers=dense 33; batch-norm; gelu; residual(dense 33; tanh); dense 4",
      dense_table(700, 9, 4));
  for (const char* name : {"lenet5", "psp-cnn", "resnet-small"}) {
    const Table data = dense_table(12, 784, 10);
    expect_only_dnnl_allocates(name, data);
    const std::size_t first_count = dnnl_allocations;
    expect_only_dnnl_allocates(name, data);
    EXPECT_EQ(dnnl_allocations, first_count) << name;
    EXPECT_LE(dnnl_bytes_max, 256U)
        << name << ": oneDNN has allocated more than a list of arguments";
  }
}

TEST(SteadyState, ThreadsComputeTheSameGradientsOnASharedModel) {
  const Table data = dense_table(700, 40, 4);
  const auto model = parse_model<float>("mlp:40-64-4", data).value();
  const auto w = draw_parameters(model);
  std::vector<std::vector<float>> gradients(4, std::vector<float>(w.size()));
  std::vector<std::thread> threads;
  threads.reserve(gradients.size());
  for (auto& g : gradients)
    threads.emplace_back([&] {
      Arena arena;
      for (int i = 0; i < 5; ++i) gradient<float>(model, w, data, all_rows(data), g, arena);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& g : gradients) EXPECT_EQ(g, gradients[0]);
}

/// Returns the number of threads of this process; 0 if /proc/self/status does not contain it.
int thread_count() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  return 0;
}

TEST(SteadyState, ProductsStartNoThreads) {
  const std::size_t n = 512;
  const std::vector<float> a(n * n, 1.0F);
  std::vector<float> c(n * n);
  const int before = thread_count();
  gemm<float>({a.data(), n, n}, {a.data(), n, n}, 0.0F, {c.data(), n, n});
  EXPECT_EQ(thread_count(), before);
  EXPECT_EQ(c[n], static_cast<float>(n));
}

}  // namespace
}  // namespace starling::models
