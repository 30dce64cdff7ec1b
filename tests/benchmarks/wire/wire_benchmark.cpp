/// Measures moving parameters and asking for steps between two processes over loopback TCP, and in
/// turn ZeroMQ alone doing the same. Medians of 5:
///
///     wire_benchmark tensors          set and get, plain
///     wire_benchmark tensors curve    the same, encrypted
///     wire_benchmark barrier [curve]  a sampled barrier over 10 peers of the other process
///
/// A second argument that names a load ("1MB x8") measures that one only.
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "starling/actor/security/certificate.hpp"
#include "tests/benchmarks/wire/job.hpp"
#include "tests/benchmarks/wire/raw.hpp"

namespace starling::benchmarks {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t runs = 5;

constexpr std::array loads{
    Load{"4KB", 1, 1, 4 * kib, 2000},     Load{"4KB x8", 8, 1, 4 * kib, 1000},
    Load{"256KB", 1, 1, 256 * kib, 1000}, Load{"256KB x8", 8, 1, 256 * kib, 300},
    Load{"1MB", 1, 4, 256 * kib, 500},    Load{"1MB x8", 8, 4, 256 * kib, 100},
    Load{"4MB", 1, 16, 256 * kib, 150},   Load{"40MB", 1, 160, 256 * kib, 20},
};

std::optional<std::array<security::NodeSecrets, 2>> secrets(bool curve) {
  if (!curve) return std::nullopt;
  const auto cluster = security::make_cluster_key();
  const auto handshake_keys = wire::make_keys();
  const auto now = static_cast<security::UtcSeconds>(std::time(nullptr));
  std::array<security::NodeSecrets, 2> both;
  for (auto& one : both) {
    one.cluster = cluster.public_key;
    one.handshake_keys = handshake_keys;
    one.keys = wire::make_keys();
    security::Certificate certificate;
    certificate.name = "n";
    certificate.key = one.keys.public_key;
    certificate.serial = security::make_serial();
    certificate.not_before = now - 600;
    certificate.not_after = now + 86'400;
    one.certificate = security::sign(certificate, cluster);
  }
  return both;
}

/// The worker has number 0, the owner 1.
const std::vector<core::Member> one_each{{0, 1, true, false, 2}, {1, 1, false, true, 1}};

std::vector<double> run_job(const JobSetup& setup) {
  const auto own = [&](const Pipe& pipe) {
    new Side{setup, pipe, 1};
    std::this_thread::sleep_for(std::chrono::hours{1});
  };
  return measure(own, [&](const Pipe& pipe) {
    auto& side = *new Side{setup, pipe, 2};
    side.task->done.get_future().wait();
    const auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
    return std::vector{seconds(side.task->pushing), seconds(side.task->pulling)};
  });
}

std::vector<double> run_raw(const Load& load, bool curve) {
  const wire::KeyPair keys = wire::make_keys();
  const RawOptions options{curve ? &keys : nullptr};
  return measure([&](const Pipe& pipe) { own_raw(pipe, load, options); },
                 [&](const Pipe& pipe) { return work_raw(pipe, load, options); });
}

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all.empty() ? 0 : all[all.size() / 2];
}

void measure_tensors(bool curve, const std::string& only) {
  std::printf("%-9s %9s %9s %6s  %9s %9s %6s  %9s\n", "MB/s", "set", "raw", "ratio", "get", "raw",
              "ratio", "push sgd");
  for (const Load& load : loads) {
    if (!only.empty() && only != load.name) continue;
    std::array<std::vector<double>, 5> rates;
    const auto keep = [&](std::size_t at, double seconds) {
      rates.at(at).push_back(static_cast<double>(load.bytes() * load.rounds) / seconds / 1e6);
    };
    for (std::size_t run = 0; run < runs; ++run) {
      JobSetup setup;
      setup.load = load;
      setup.steps = warm_up(load) + load.rounds + 10;
      setup.members = one_each;
      setup.secrets = secrets(curve);
      setup.applier = [](const core::MergeSite&, std::span<float> value,
                         std::span<const float> update) {
        std::ranges::copy(update, value.begin());
      };
      const auto job = run_job(setup);
      const auto raw = run_raw(load, curve);
      setup.applier = core::GradientApplier{.optimizer = models::Sgd{.lr = 0.01}, .schedule = {}};
      const auto sgd = run_job(setup);
      if (job.size() != 2 || raw.size() != 2 || sgd.size() != 2) {
        std::fprintf(stderr, "%s: a run has failed: %zu %zu %zu\n", load.name, job.size(),
                     raw.size(), sgd.size());
        return;
      }
      keep(0, job[0]);
      keep(1, raw[0]);
      keep(2, job[1]);
      keep(3, raw[1]);
      keep(4, sgd[0]);
    }
    std::array<double, 5> mid{};
    for (std::size_t i = 0; i < mid.size(); ++i) mid.at(i) = median(rates.at(i));
    std::printf("%-9s %9.0f %9.0f %6.2f  %9.0f %9.0f %6.2f  %9.0f\n", load.name, mid[0], mid[1],
                mid[0] / mid[1], mid[2], mid[3], mid[2] / mid[3], mid[4]);
    std::fflush(stdout);
  }
}

/// Worker 0 in one process, and 10 that have finished in the other, one of which owns what there
/// is.
void measure_barrier(bool curve) {
  constexpr std::size_t peers = 10;
  const Load queries{"queries", peers, 1, 64, 2000};
  std::vector<double> own;
  std::vector<double> raw;
  for (std::size_t run = 0; run < runs; ++run) {
    JobSetup setup;
    setup.load = Load{"nothing", 1, 1, 64, queries.rounds};
    setup.barrier = "pbsp:beta=10";
    setup.secrets = secrets(curve);
    setup.applier = [](const core::MergeSite&, std::span<float>, std::span<const float>) {};
    for (core::MemberId id = 0; id <= peers; ++id)
      setup.members.push_back({id, 1, true, id == 1, id == 0 ? 2ULL : 1ULL});
    JobSetup there = setup;
    there.steps = 1;
    setup.steps = queries.rounds;
    const auto figures = measure(
        [&](const Pipe& pipe) {
          new Side{there, pipe, 1};
          std::this_thread::sleep_for(std::chrono::hours{1});
        },
        [&](const Pipe& pipe) {
          auto& side = *new Side{setup, pipe, 2};
          actor::MemberReport report;
          do {
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
            report = side.local->reports().at(0);
          } while (report.state == actor::MemberReport::State::running);
          const double waited = std::chrono::duration<double>(report.worker.waited).count();
          return std::vector{waited / static_cast<double>(queries.rounds - 1)};
        });
    const auto seconds = run_raw(queries, curve);
    if (figures.empty() || seconds.size() != 2) return;
    own.push_back(figures[0]);
    raw.push_back(seconds[1] / static_cast<double>(queries.rounds));
  }
  std::printf("barrier over 10: %.0f us, raw %.0f us, ratio %.2f\n", median(own) * 1e6,
              median(raw) * 1e6, median(own) / median(raw));
}

}  // namespace
}  // namespace starling::benchmarks

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool curve = std::ranges::count(words, "curve") > 0;
  std::string only;
  for (const auto& word : words)
    if (word != "curve" && word != "tensors" && word != "barrier") only = word;
  if (std::ranges::count(words, "barrier") > 0)
    starling::benchmarks::measure_barrier(curve);
  else
    starling::benchmarks::measure_tensors(curve, only);
}
