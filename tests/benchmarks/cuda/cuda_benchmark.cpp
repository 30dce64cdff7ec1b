// Measures training steps of nets on a CUDA device and compares them with plain cuBLAS and cuDNN
// calls; measures the memory throughput of the optimisers' kernels and compares it with a copy.
//
//   cmake --preset bench && cmake --build build/bench --target cuda_benchmark
//   build/bench/tests/benchmarks/cuda/cuda_benchmark [--seconds 1] [--json FILE]
//
// step        one step with the batch on the device: cuda::Trainer::repeat()
// fed         one step; the next batch is copied from the host while the current step runs
// host        Net::gradient with parameters and gradients on the host, as workers call it
// bare        one step of the same net by plain calls of cuBLAS and cuDNN
// bare-graph  the same calls, recorded as a graph
// update/*    bytes per second that an optimiser's step reads and writes
// copy        bytes per second that a copy from device to device reads and writes
//
// Times are medians of rounds. The device should do nothing else meanwhile.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "starling/models/cuda/check.hpp"
#include "starling/models/cuda/context.hpp"
#include "starling/models/cuda/device.hpp"
#include "starling/models/cuda/training/device_update.hpp"
#include "starling/models/cuda/training/trainer.hpp"
#include "tests/benchmarks/cuda/bare_net.hpp"

namespace starling::models {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  double seconds = 1;
  std::string json;
};

/// Prints each result; if `path` is not empty, also writes it to that file, one JSON object a line.
class Report {
 public:
  explicit Report(const std::string& path) {
    if (!path.empty()) file_.open(path);
  }
  void add(const std::string& what, const std::string& net, std::size_t batch, double value,
           const char* unit) {
    std::printf("%-18s %-26s %6zu  %12.4g %s\n", what.c_str(), net.c_str(), batch, value, unit);
    std::fflush(stdout);
    if (file_.is_open())
      file_ << "{\"what\":\"" << what << "\",\"net\":\"" << net << "\",\"batch\":" << batch
            << ",\"value\":" << value << ",\"unit\":\"" << unit << "\"}" << std::endl;
  }

 private:
  std::ofstream file_;
};

/// Returns the seconds that one call takes: the median of 5 rounds, which take about `seconds`
/// together, or more. `finish` waits for the device. First makes 4 calls, which load kernels and
/// record graphs.
double measure(double seconds, const std::function<void()>& call,
               const std::function<void()>& finish) {
  for (int i = 0; i < 4; ++i) call();
  finish();
  const auto time = [&](std::size_t count) {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < count; ++i) call();
    finish();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::size_t count = 1;
  for (double taken = time(count); taken < seconds / 20 && count < 1'000'000; taken = time(count))
    count *= 2;
  count = std::max<std::size_t>(1, count * 4);
  std::vector<double> rounds;
  for (int round = 0; round < 5; ++round)
    rounds.push_back(time(count) / static_cast<double>(count));
  std::ranges::sort(rounds);
  return rounds[2];
}

/// Returns the value of a result; throws if it is an error.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error{result.error().message};
  return *std::move(result);
}
void value_or_throw(const Result<void>& result) {
  if (!result) throw std::runtime_error{result.error().message};
}

/// Returns images of uniform random pixels, with random labels of 10 classes.
Table random_images(std::size_t rows, std::size_t features) {
  Random random{1};
  Table::Dense x;
  std::vector<float> labels(rows);
  for (std::size_t i = 0; i < rows * features; ++i)
    x.values.push_back(static_cast<float>(random.real(-1.7, 1.7)));
  for (float& label : labels) label = static_cast<float>(random.below(10));
  return {features, 10, std::move(x), std::move(labels)};
}

struct Case {
  std::string name;
  /// The text that Net::parse reads.
  std::string spec;
  std::size_t features;
};

const std::vector<Case> cases{
    {"784-128-10", "net:layers=dense 128; relu; dense 10", 784},
    {"784-512-512-10", "net:layers=dense 512; relu; dense 512; relu; dense 10", 784},
    {"lenet5", "lenet5", 784},
    {"psp-cnn", "psp-cnn", 784},
    {"vgg-small", "vgg-small", 3072},
    {"resnet-small", "resnet-small", 3072},
};

void measure_net(const Case& given, std::size_t batch, const Options& options, Report& report) {
  const Table data = random_images(2 * batch, given.features);
  const auto net = value_or_throw(Net<float>::parse(value_or_throw(Spec::parse(given.spec)), data));
  std::vector<std::uint32_t> rows(2 * batch);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(i);
  std::vector<float> w(total_size(net.parameters()));
  Random random{5};
  net.initialise(w, random);
  const auto add = [&](const char* what, double seconds) {
    report.add(what, given.name, batch, seconds * 1e6, "us");
  };

  for (const auto precision : {cuda::Precision::float32, cuda::Precision::tf32}) {
    auto trainer = value_or_throw(cuda::Trainer::make(
        net, 0, batch, w, {.optimizer = Sgd{.lr = 0.001}, .precision = precision}));
    const std::string suffix = precision == cuda::Precision::tf32 ? "-tf32" : "";
    value_or_throw(trainer.step(data, Batch{rows}.first(batch), 1));
    const auto finish = [&] { static_cast<void>(value_or_throw(trainer.finish())); };
    add(("step" + suffix).c_str(),
        measure(
            options.seconds, [&] { value_or_throw(trainer.repeat()); }, finish));
    if (trainer.recorded() == 0) std::printf("  (step could not be recorded as a graph)\n");
    std::size_t step = 0;
    add(("fed" + suffix).c_str(), measure(
                                      options.seconds,
                                      [&] {
                                        const Batch part =
                                            Batch{rows}.subspan(step++ % 2 * batch, batch);
                                        value_or_throw(trainer.step(data, part, step));
                                      },
                                      finish));
  }

  const Net<float> on_device = net.with_engine(value_or_throw(cuda::make_engine(net, 0, batch)));
  std::vector<float> g(w.size());
  Arena arena;
  add("host", measure(
                  options.seconds,
                  [&] {
                    ComputeContext context{random, arena};
                    on_device.gradient(w, data, Batch{rows}.first(batch), g, context);
                  },
                  [] {}));

  BareNet bare{net, batch};
  add("bare", measure(
                  options.seconds, [&] { bare.step(); }, [&] { bare.finish(); }));
  add("bare-graph", measure(
                        options.seconds, [&] { bare.step_as_graph(); }, [&] { bare.finish(); }));
}

/// The number of parameters that measure_updates() updates; too many for any cache.
constexpr std::size_t update_size = std::size_t{1} << 26U;

void measure_updates(const Options& options, Report& report) {
  cuda::use_device(0);
  const cuda::Context context{cuda::Precision::float32};
  const cuda::DeviceArray<float> w{update_size};
  const cuda::DeviceArray<float> g{update_size};
  cuda::check(cudaMemset(w.data(), 0, w.bytes()), "clearing");
  cuda::check(cudaMemset(g.data(), 0, g.bytes()), "clearing");
  const cuda::StagedUpdate none{};
  cuda::DeviceArray<cuda::StagedUpdate> staged{1};
  cuda::check(cudaMemcpy(staged.data(), &none, sizeof none, cudaMemcpyHostToDevice), "copying");
  cuda::finish_default_stream();
  const auto finish = [&] { context.stream().finish(); };
  const auto gigabytes = [](double arrays, double seconds) {
    return arrays * static_cast<double>(update_size * sizeof(float)) / seconds / 1e9;
  };
  const double copy = measure(
      options.seconds,
      [&] {
        cuda::check(cudaMemcpyAsync(w.data(), g.data(), w.bytes(), cudaMemcpyDeviceToDevice,
                                    context.stream().get()),
                    "copying");
      },
      finish);
  report.add("copy", "device to device", 0, gigabytes(2, copy), "GB/s");
  const auto measure_one = [&](const char* text, double arrays, const char* clip) {
    cuda::DeviceUpdate update{value_or_throw(parse_optimizer(text)),
                              value_or_throw(parse_clip(clip)),
                              {{.name = "w", .shape = {update_size}}}};
    const double seconds = measure(
        options.seconds, [&] { update.apply(context, staged.data(), g.data(), w.data()); }, finish);
    report.add(std::string{"update/"} + clip, text, 0, gigabytes(arrays, seconds), "GB/s");
  };
  // The second argument is the number of arrays that a step reads or writes: it reads g and w and
  // writes w; it reads and writes each slot of the optimiser's state; clipping by norm reads g once
  // more.
  measure_one("sgd", 3, "none");
  measure_one("sgd", 4, "norm:1");
  measure_one("sgd:lr=0.1,momentum=0.9", 5, "none");
  measure_one("adagrad", 5, "none");
  measure_one("adam", 7, "none");
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    if (key != "--seconds" && key != "--json")
      throw std::runtime_error{"unknown option " + key + "; valid: --seconds X, --json FILE"};
    if (i + 1 == argc) throw std::runtime_error{key + ": needs a value"};
    if (key == "--seconds")
      options.seconds = std::stod(argv[i + 1]);
    else
      options.json = argv[i + 1];
  }
  return options;
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const auto devices = value_or_throw(cuda::devices());
  if (devices.empty()) throw std::runtime_error{"there is no CUDA device"};
  std::printf("%s\n\n", devices[0].name.c_str());
  Report report{options.json};
  for (const Case& given : cases)
    for (const std::size_t batch : {64U, 1024U}) measure_net(given, batch, options, report);
  measure_updates(options, report);
  return 0;
}

}  // namespace
}  // namespace starling::models

int main(int argc, char** argv) {
  try {
    return starling::models::run(argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cuda_benchmark: %s\n", failure.what());
    return 1;
  }
}
