// The peer engine: PageRank without a server. Six peers share the ranks of the pages of a small
// web: each peer owns some ranks, and computes the ranks of a sixth of the pages. They keep pace by
// pSSP: each asks two random others for their steps.
//
//     cmake --preset dev && cmake --build --preset dev --target 05_peer_engine
//     build/dev/examples/05_peer_engine
//
// prints, after some tenths of a second (the number of updates differs from run to run):
//
//     960 updates; the first page is 228 with a rank of 0.01869
//     the ranks are those that one machine computes, to within 1e-9
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "starling/actor/engines/engine.hpp"

using namespace starling;

constexpr std::uint32_t pages = 500;
constexpr double damping = 0.85;

/// Page i links to the pages 2i + 1 and i^2 + 3. Returns for each page the pages that link to it.
std::vector<std::vector<std::uint32_t>> make_web() {
  std::vector<std::vector<std::uint32_t>> linked_by(pages);
  for (std::uint32_t i = 0; i < pages; ++i) {
    linked_by[(2 * i + 1) % pages].push_back(i);
    linked_by[(i * i + 3) % pages].push_back(i);
  }
  return linked_by;
}

int main() {
  const auto linked_by = make_web();
  // Returns the rank of a page by PageRank's equation. rank_of(p) returns the rank of page p. Each
  // page has two links, and passes half of its rank on by each.
  const auto rank = [&](std::uint32_t page, auto rank_of) {
    double sum = 0;
    for (const auto from : linked_by[page]) sum += rank_of(from) / 2;
    return (1 - damping) / pages + damping * sum;
  };

  actor::Hooks<double> hooks;
  // A worker reads the ranks of the pages that link to its own pages.
  hooks.schedule = [&](auto& context) -> std::vector<actor::Selection> {
    std::set<std::uint32_t> rows;
    for (auto page = context.worker(); page < pages; page += context.workers())
      rows.insert(linked_by[page].begin(), linked_by[page].end());
    return {{"rank", std::vector(rows.begin(), rows.end())}};
  };
  // From these ranks the worker computes the ranks of its own pages.
  hooks.push = [&](auto& context) -> std::vector<actor::Update<double>> {
    std::vector<std::uint32_t> rows;
    std::vector<double> ranks;
    for (auto page = context.worker(); page < pages; page += context.workers()) {
      rows.push_back(page);
      ranks.push_back(rank(page, [&](std::uint32_t p) { return context.row("rank", p)[0]; }));
    }
    return {{"rank", ranks, rows}};
  };
  // An owner replaces the ranks that it holds by the pushed ones.
  hooks.pull = [](const actor::KeySlice&, auto value, auto update) {
    std::ranges::copy(update, value.begin());
  };
  // The job stops when the ranks satisfy their equation.
  hooks.stop = [&](const actor::Progress&, const actor::Tensors<double>& tensors) {
    const auto ranks = tensors.get("rank");
    double error = 0;
    for (std::uint32_t page = 0; page < pages; ++page)
      error += std::abs(ranks[page] - rank(page, [&](std::uint32_t p) { return ranks[p]; }));
    return error < 1e-11;
  };

  auto engine = actor::PeerEngine<double>::make(
      {.workers = 6, .barrier = barrier::parse("pssp:s=4,beta=2").value()},
      {actor::Tensor<double>::by_rows("rank", {pages}, std::vector(pages, 1.0 / pages))}, hooks);
  if (!engine) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  const auto outcome = engine->run();
  if (outcome.end != actor::Outcome::End::reached)
    return std::fprintf(stderr, "%s\n", outcome.error.c_str()), 1;

  const auto found = engine->get("rank").value();
  // Computes the same ranks on this thread alone.
  std::vector<double> alone(pages, 1.0 / pages);
  for (int sweep = 0; sweep < 300; ++sweep)
    for (std::uint32_t page = 0; page < pages; ++page)
      alone[page] = rank(page, [&](std::uint32_t p) { return alone[p]; });
  for (std::uint32_t page = 0; page < pages; ++page)
    if (std::abs(found[page] - alone[page]) > 1e-9) return 1;
  const auto best = std::ranges::max_element(found);
  std::printf(
      "%lu updates; the first page is %td with a rank of %.5f\n"
      "the ranks are those that one machine computes, to within 1e-9\n",
      static_cast<unsigned long>(outcome.last.updates), best - found.begin(), *best);
}
