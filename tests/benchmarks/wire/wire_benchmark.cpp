/// Measures transfers of parameters, and barrier checks, between two processes over loopback TCP.
/// Compares the transfers with ZeroMQ alone; the runs alternate. Prints medians of 5 runs:
///
///     wire_benchmark tensors          push (set) and pull (get), plain
///     wire_benchmark tensors curve    the same, encrypted
///     wire_benchmark barrier [curve]  a sampled barrier over 10 peers in the other process
///
/// With the name of a load, such as "1MB x8", as a further argument, `tensors` measures this load
/// only.
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

/// Returns new secrets for two nodes, or nullopt for plain connections.
std::optional<std::array<security::NodeSecrets, 2>> make_secrets(bool curve) {
  if (!curve) return std::nullopt;
  const auto cluster = security::make_cluster_key();
  const auto handshake_keys = wire::make_key_pair();
  const auto now = static_cast<security::UtcSeconds>(std::time(nullptr));
  std::array<security::NodeSecrets, 2> secrets;
  for (auto& node : secrets) {
    node.cluster = cluster.public_key;
    node.handshake_keys = handshake_keys;
    node.keys = wire::make_key_pair();
    security::Certificate certificate;
    certificate.name = "n";
    certificate.key = node.keys.public_key;
    certificate.serial = security::make_serial();
    certificate.not_before = now - 600;
    certificate.not_after = now + 86'400;
    node.certificate = security::sign(certificate, cluster);
  }
  return secrets;
}

const std::vector<core::Member> worker_and_owner{
    {.id = 0, .incarnation = 1, .works = true, .owns = false, .node = 2},
    {.id = 1, .incarnation = 1, .works = false, .owns = true, .node = 1}};

/// Returns the seconds of all measured pushes and of all measured pulls with Starling; empty if the
/// worker fails.
std::vector<double> run_job(const JobSetup& setup) {
  const auto run_owner = [&](const Pipe& pipe) {
    new JobProcess{setup, pipe, 1};
    std::this_thread::sleep_for(std::chrono::hours{1});
  };
  return measure(run_owner, [&](const Pipe& pipe) {
    auto& process = *new JobProcess{setup, pipe, 2};
    process.task->done.get_future().wait();
    const auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
    return std::vector{seconds(process.task->push_time), seconds(process.task->pull_time)};
  });
}

/// Returns the same with ZeroMQ alone.
std::vector<double> run_raw(const Load& load, bool curve) {
  const wire::KeyPair keys = wire::make_key_pair();
  const RawOptions options{curve ? &keys : nullptr};
  return measure([&](const Pipe& pipe) { run_raw_owner(pipe, load, options); },
                 [&](const Pipe& pipe) { return run_raw_worker(pipe, load, options); });
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Prints a line for each load, or for the load called `only` if that is not empty. Returns false
/// if a run fails.
bool measure_tensors(bool curve, const std::string& only) {
  std::printf("%-9s %9s %9s %6s  %9s %9s %6s  %9s\n", "MB/s", "set", "raw", "ratio", "get", "raw",
              "ratio", "push sgd");
  for (const Load& load : loads) {
    if (!only.empty() && only != load.name) continue;
    std::array<std::vector<double>, 5> rates;
    const auto add_rate = [&](std::size_t column, double seconds) {
      rates.at(column).push_back(static_cast<double>(load.bytes() * load.rounds) / seconds / 1e6);
    };
    for (std::size_t run = 0; run < runs; ++run) {
      JobSetup setup;
      setup.load = load;
      setup.steps = warm_up(load) + load.rounds + 10;
      setup.members = worker_and_owner;
      setup.secrets = make_secrets(curve);
      setup.applier = core::merge_applier<float>(
          [](const core::MergeTarget&, std::span<float> value, std::span<const float> update) {
            std::ranges::copy(update, value.begin());
          });
      const auto job = run_job(setup);
      const auto raw = run_raw(load, curve);
      setup.applier =
          core::gradient_applier<float>({.optimizer = models::Sgd{.lr = 0.01}, .schedule = {}});
      const auto sgd = run_job(setup);
      if (job.size() != 2 || raw.size() != 2 || sgd.size() != 2) {
        std::fprintf(stderr, "%s: a run has failed: %zu %zu %zu\n", load.name, job.size(),
                     raw.size(), sgd.size());
        return false;
      }
      add_rate(0, job[0]);
      add_rate(1, raw[0]);
      add_rate(2, job[1]);
      add_rate(3, raw[1]);
      add_rate(4, sgd[0]);
    }
    std::array<double, 5> medians{};
    for (std::size_t i = 0; i < medians.size(); ++i) medians.at(i) = median(rates.at(i));
    std::printf("%-9s %9.0f %9.0f %6.2f  %9.0f %9.0f %6.2f  %9.0f\n", load.name, medians[0],
                medians[1], medians[0] / medians[1], medians[2], medians[3],
                medians[2] / medians[3], medians[4]);
    std::fflush(stdout);
  }
  return true;
}

/// Measures how long worker 0 waits at its barrier. The other process runs 10 workers, one of which
/// is also the owner. They finish after one step, so that worker 0 never waits for a laggard.
/// Returns false if a run fails.
bool measure_barrier(bool curve) {
  constexpr std::size_t peers = 10;
  const Load queries{"queries", peers, 1, 64, 2000};
  std::vector<double> job_waits;
  std::vector<double> raw_waits;
  for (std::size_t run = 0; run < runs; ++run) {
    JobSetup setup;
    setup.load = Load{"nothing", 1, 1, 64, queries.rounds};
    setup.barrier = "pbsp:beta=10";
    setup.secrets = make_secrets(curve);
    setup.applier = core::merge_applier<float>([](const auto&, auto, auto) {});
    for (core::MemberId id = 0; id <= peers; ++id)
      setup.members.push_back({.id = id,
                               .incarnation = 1,
                               .works = true,
                               .owns = id == 1,
                               .node = id == 0 ? 2ULL : 1ULL});
    JobSetup peers_setup = setup;
    peers_setup.steps = 1;
    setup.steps = queries.rounds;
    const auto figures = measure(
        [&](const Pipe& pipe) {
          new JobProcess{peers_setup, pipe, 1};
          std::this_thread::sleep_for(std::chrono::hours{1});
        },
        [&](const Pipe& pipe) {
          auto& process = *new JobProcess{setup, pipe, 2};
          actor::MemberReport report;
          do {
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
            report = process.local->reports().at(0);
          } while (report.state == actor::MemberReport::State::running);
          const double waited = std::chrono::duration<double>(report.worker.wait_time).count();
          return std::vector{waited / static_cast<double>(queries.rounds - 1)};
        });
    const auto seconds = run_raw(queries, curve);
    if (figures.empty() || seconds.size() != 2) {
      std::fprintf(stderr, "barrier: a run has failed: %zu %zu\n", figures.size(), seconds.size());
      return false;
    }
    job_waits.push_back(figures[0]);
    raw_waits.push_back(seconds[1] / static_cast<double>(queries.rounds));
  }
  std::printf("barrier over 10: %.0f us, raw %.0f us, ratio %.2f\n", median(job_waits) * 1e6,
              median(raw_waits) * 1e6, median(job_waits) / median(raw_waits));
  return true;
}

}  // namespace
}  // namespace starling::benchmarks

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool curve = std::ranges::count(words, "curve") > 0;
  std::string only;
  for (const auto& word : words)
    if (word != "curve" && word != "tensors" && word != "barrier") only = word;
  const bool is_measured = std::ranges::count(words, "barrier") > 0
                               ? starling::benchmarks::measure_barrier(curve)
                               : starling::benchmarks::measure_tensors(curve, only);
  return is_measured ? 0 : 1;
}
