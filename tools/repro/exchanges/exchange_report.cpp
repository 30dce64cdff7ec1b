#include "starling/tools/repro/exchanges/exchange_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "starling/base/text.hpp"
#include "starling/tools/program/version.hpp"
#include "starling/tools/report/statistics.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::ordered_json;

/// Collects the sections of a document with their plots.
class SectionList {
 public:
  explicit SectionList(ExchangeReport& report) : report_(report) {}

  Section& begin(const std::string& title, const std::string& text) {
    return report_.document.sections.emplace_back(Section{title, {Paragraph{text}}});
  }
  void add(Section& section, Plot plot, const std::string& caption) {
    section.blocks.emplace_back(Picture{plot.name, caption, {}});
    report_.plots.push_back(std::move(plot));
  }

 private:
  ExchangeReport& report_;
};

void add_claims(SectionList& list, const ExchangeReport& report) {
  Section& section = list.begin(
      "Published, simulated and live",
      fmt::format(
          "{} of {} claims are reproduced. The verdict judges the simulated figure, and the "
          "live one where nothing is simulated. Exact figures come from the schedules "
          "themselves, which a checker has proven.",
          reproduced(report.claims), report.claims.size()));
  section.blocks.emplace_back(compared_claims_table(report.claims));
}

void add_collectives(SectionList& list, const ExchangeStudy& study) {
  Section& section = list.begin(
      "Collectives",
      "BML: an all-reduce among b^k members with k ports each, compared with part-reduce and "
      "part-broadcast on one port, as a sharded parameter server does them. Bytes are multiples of "
      "the vector's bytes. Times are without latency, as multiples of the time that the vector "
      "takes over one port. The last column is the time if the k ports together have the bandwidth "
      "of the one port.");
  TextTable cubes{{"members", "b", "k", "bytes per port", "of parts", "time", "of parts",
                   "time, shared bandwidth"}};
  for (const CubeCost& cube : study.cubes)
    cubes.rows.push_back({std::to_string(cube.members), std::to_string(cube.base),
                          std::to_string(cube.k), fmt::format("{:.3f}", cube.port_share),
                          fmt::format("{:.3f}", cube.parts_port_share),
                          fmt::format("{:.3f}", cube.time), fmt::format("{:.3f}", cube.parts_time),
                          fmt::format("{:.3f}", cube.time_of_equal_bandwidth)});
  section.blocks.emplace_back(FoldedTable{"cubes", "All cubes of up to 256 members", cubes});
  section.blocks.emplace_back(Paragraph{
      "Blink: how fast a root sends to all others over the lanes of a DGX-1V, by packed trees, and "
      "by the largest number of rings that share no lane. The rows are for all eight devices, and "
      "for the six devices that gain most."});
  TextTable rates{{"devices", "trees", "lanes by trees", "lanes by rings", "ratio"}};
  for (const TopologyRates& topology : study.topologies)
    rates.rows.push_back({topology.name, std::to_string(topology.trees),
                          fmt::format("{:.2f}", topology.trees_rate),
                          fmt::format("{:.0f}", topology.rings_rate),
                          fmt::format("{:.2f}", topology.trees_rate / topology.rings_rate)});
  section.blocks.emplace_back(std::move(rates));
}

void add_gossip(SectionList& list, const ExchangeStudy& study) {
  Section& section = list.begin(
      "Gossip",
      "Workers average a model of 1,000 doubles over the exponential graph, one message a step. "
      "Before the first message their values differ by up to 1; the last column is the largest "
      "difference after log2 n steps. Beside values, a worker sends what it knows of the progress "
      "of all workers, 24 bytes for each.");
  TextTable table{{"workers", "bytes of values", "bytes of progress", "difference"}};
  Series values{.name = "values"};
  Series progress{.name = "progress of workers"};
  for (const GossipRun& run : study.gossip) {
    table.rows.push_back({std::to_string(run.workers), fmt::format("{:.0f}", run.value_bytes),
                          fmt::format("{:.0f}", run.progress_bytes),
                          fmt::format("{:.1e}", run.difference)});
    const auto workers = static_cast<double>(run.workers);
    values.points.push_back({workers, run.value_bytes});
    progress.points.push_back({workers, run.progress_bytes});
  }
  section.blocks.emplace_back(std::move(table));
  list.add(section,
           {.name = "exchanges-gossip-bytes",
            .title = "What a worker sends in a step",
            .x = "workers",
            .y = "bytes",
            .series = {std::move(values), std::move(progress)},
            .log_x = true},
           "Gossip: bytes that a worker sends in a step, by the number of workers.");
}

void add_overlap(SectionList& list, const ExchangeStudy& study) {
  Section& section = list.begin(
      "Rounds that overlap with steps",
      "Four workers sum around a ring. Times are multiples of the time to compute a step.");
  TextTable table{{"time of a sum", "allreduce:ring", "allreduce:ring,overlap", "the longer"}};
  Series plain{.name = "allreduce:ring"};
  Series ahead{.name = "allreduce:ring,overlap"};
  for (const OverlapRun& run : study.overlaps) {
    table.rows.push_back({print_number(run.sum), fmt::format("{:.3f}", run.step),
                          fmt::format("{:.3f}", run.overlapped_step),
                          print_number(std::max(run.sum, 1.0))});
    plain.points.push_back({run.sum, run.step});
    ahead.points.push_back({run.sum, run.overlapped_step});
  }
  section.blocks.emplace_back(std::move(table));
  list.add(section,
           {.name = "exchanges-overlap",
            .title = "The time of a step",
            .x = "time of a sum / time to compute",
            .y = "time of a step / time to compute",
            .series = {std::move(plain), std::move(ahead)}},
           "The time of a step by the time of a sum, simulated.");
  section.blocks.emplace_back(Paragraph{
      "Live in one process a sum takes next to no time. With step times from an exponential "
      "distribution of 20 ms, overlap lets a worker begin its next step before the slowest has "
      "ended the last one. The simulation has the same delays, and adds to each of them the mean "
      "time that a live step took beyond its delay:"});
  TextTable live{{"exchange", "live steps/s", "simulated steps/s", "difference", "live waiting"}};
  for (const LiveRounds& run : study.rounds)
    live.rows.push_back(
        {run.exchange, fmt::format("{:.2f}", run.steps_per_second),
         fmt::format("{:.2f}", run.simulated_steps_per_second),
         fmt::format("{:+.1f} %",
                     100 * (run.steps_per_second / run.simulated_steps_per_second - 1)),
         fmt::format("{:.1f} %", 100 * run.waiting_share)});
  section.blocks.emplace_back(std::move(live));
}

void add_averages(SectionList& list, const ExchangeStudy& study) {
  Section& section =
      list.begin("Local SGD",
                 "The bytes of the sums of a step of four workers, as a share of those of "
                 "allreduce, which sums in each step.");
  TextTable table{{"exchange", "bytes", "1/every"}};
  for (const AverageRun& run : study.averages)
    table.rows.push_back({fmt::format("average:every={}", run.every),
                          fmt::format("{:.2f} %", 100 * run.bytes_share),
                          fmt::format("{:.2f} %", 100.0 / static_cast<double>(run.every))});
  section.blocks.emplace_back(std::move(table));
}

void add_learning(SectionList& list, const ExchangeStudy& study) {
  Section& section = list.begin(
      "Learning",
      fmt::format(
          "Eight workers train a perceptron (mlp:784-32-10) on 4,800 generated digits, live "
          "in one process, each with the same number of samples, a batch of 16, sgd:lr=0.2 "
          "and a cosine schedule. The accuracy is that on 1,200 other digits: the mean over "
          "{}, with its standard error.",
          print_count(study.options.seeds, "seed")));
  TextTable table{{"exchange", "barrier", "accuracy"}, {}, true};
  for (const LearnedExchange& run : study.learning) {
    std::vector<double> percents;
    for (const double accuracy : run.accuracies) percents.push_back(100 * accuracy);
    table.rows.push_back(
        {run.exchange, run.barrier, with_error(compute_statistics(percents)) + " %"});
  }
  section.blocks.emplace_back(std::move(table));
}

void add_closing(SectionList& list, const std::string& flags) {
  Section& section = list.begin(
      "How this was made",
      fmt::format("starling {} made the whole page, on {}, with this command: starling repro "
                  "exchanges {}. Simulated figures are the same on every machine; live figures "
                  "differ from run to run.",
                  version(),
                  print_count(std::max(1U, std::thread::hardware_concurrency()), "processor"),
                  flags));
  section.blocks.emplace_back(Paragraph{
      "Sources: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of "
      "workstations, JPDC 2009. Wang et al., BML: A High-performance, Low-cost Gradient "
      "Synchronization Algorithm for DML Training, NeurIPS 2018. Wang et al., Blink, MLSys 2020, "
      "arXiv 1910.04940. Assran et al., Stochastic Gradient Push for Distributed Deep Learning, "
      "ICML 2019, arXiv 1811.10792. Zhou et al., HPSGD: Hierarchical Parallel SGD With Stale "
      "Gradients Featuring, arXiv 2009.02701. Stich, Local SGD Converges Fast and Communicates "
      "Little, ICLR 2019, arXiv 1805.09767. Zhang et al., Deep learning with Elastic Averaging "
      "SGD, "
      "NIPS 2015, arXiv 1412.6651. Teng et al., Leader Stochastic Gradient Descent for Distributed "
      "Training of Deep Learning Models, NeurIPS 2019, arXiv 1905.10395."});
}

}  // namespace

ExchangeReport report_of(const ExchangeStudy& study, const std::string& flags) {
  ExchangeReport report{.document = {"Exchanges of the literature, reproduced", {}},
                        .claims = exchange_claims(study)};
  SectionList list{report};
  add_claims(list, report);
  add_collectives(list, study);
  add_gossip(list, study);
  add_overlap(list, study);
  add_averages(list, study);
  add_learning(list, study);
  add_closing(list, flags);
  return report;
}

std::string learning_csv(const ExchangeStudy& study) {
  TextTable table{{"exchange", "barrier", "seed", "accuracy"}};
  for (const LearnedExchange& run : study.learning)
    for (std::size_t i = 0; i < run.accuracies.size(); ++i)
      table.rows.push_back({run.exchange, run.barrier, std::to_string(study.options.seed + i),
                            print_number(run.accuracies[i])});
  return csv_text(table);
}

std::string study_json(const ExchangeStudy& study, const std::vector<ComparedClaim>& claims) {
  Json json{{"version", version()}, {"seed", study.options.seed}, {"seeds", study.options.seeds}};
  json["claims"] = claims;
  return json.dump(1) + "\n";
}

}  // namespace starling::program
