// PageRank by the peer engine as a part of a user's own program, which runs in one process or on
// the nodes of a cluster. The current workers share the pages: if a node dies, the others compute
// its pages, and the ranks are the same in the end.
//
//     cmake --preset dev && cmake --build --preset dev --target 10_pagerank
//     build/dev/examples/10_pagerank train --data web:pages=500 --model pagerank:pages=500
//         --workers 6 --steps 200 --save ranks.safetensors --quiet
//
// The last command is one line. The summary ends with the error, the sum of the ranks' absolute
// differences from the values that PageRank's equation gives, and the highest rank:
//
//     test        error 3.01e-16, highest 0.01869
//
// On three nodes, here on one machine; the last command is one line:
//
//     build/dev/examples/10_pagerank node --listen 127.0.0.1:7401 &
//     build/dev/examples/10_pagerank node --listen 127.0.0.1:7402 --join 127.0.0.1:7401 &
//     build/dev/examples/10_pagerank node --listen 127.0.0.1:7403 --join 127.0.0.1:7401 &
//     build/dev/examples/10_pagerank submit --to 127.0.0.1:7402 --data web:pages=500
//         --model pagerank:pages=500 --workers 6 --steps 200
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "starling/starling.hpp"

using namespace starling;

/// A small web in which page i links to the pages 2i + 1 and i^2 + 3.
struct Web {
  /// For each page, the pages that link to it.
  std::vector<std::vector<std::uint32_t>> linked_by;

  [[nodiscard]] std::size_t size() const { return linked_by.size(); }
};

Web make_web(SpecReader& options, std::uint64_t) {
  const auto pages = static_cast<std::uint32_t>(options.count("pages", 500, 1, 50'000));
  Web web{std::vector<std::vector<std::uint32_t>>(pages)};
  for (std::uint32_t i = 0; i < pages; ++i) {
    web.linked_by[(2 * i + 1) % pages].push_back(i);
    web.linked_by[(i * i + 3) % pages].push_back(i);
  }
  return web;
}

class PageRank {
 public:
  PageRank(const Web& web, std::uint32_t pages) : web_(web), pages_(pages) {}

  [[nodiscard]] std::vector<actor::Tensor<double>> tensors() const {
    return {actor::Tensor<double>::by_rows("rank", {pages_}, std::vector(pages_, 1.0 / pages_))};
  }

  /// A worker reads the ranks of the pages that link to its own pages.
  [[nodiscard]] std::vector<actor::Selection> schedule(
      const actor::StepContext<double>& context) const {
    std::set<std::uint32_t> rows;
    for (auto page = context.share(); page < pages_; page += context.shares())
      rows.insert(web_.linked_by[page].begin(), web_.linked_by[page].end());
    return {{"rank", std::vector(rows.begin(), rows.end())}};
  }

  /// From the ranks that schedule() selected, the worker computes the ranks of its own pages.
  [[nodiscard]] std::vector<actor::Update<double>> push(
      const actor::StepContext<double>& context) const {
    std::vector<std::uint32_t> rows;
    std::vector<double> ranks;
    for (auto page = context.share(); page < pages_; page += context.shares()) {
      rows.push_back(page);
      ranks.push_back(rank(page, [&](std::uint32_t from) { return context.row("rank", from)[0]; }));
    }
    return {{"rank", std::move(ranks), std::move(rows)}};
  }

  [[nodiscard]] models::Metrics evaluate(const actor::Tensors<double>& tensors) const {
    const auto ranks = tensors.get("rank");
    double error = 0;
    for (std::uint32_t page = 0; page < web_.size(); ++page)
      error += std::abs(ranks[page] - rank(page, [&](std::uint32_t from) { return ranks[from]; }));
    return {{"error", error}, {"highest", std::ranges::max(ranks)}};
  }

 private:
  /// Returns the rank of a page by PageRank's equation. `rank_of(p)` is the rank of page p. Each
  /// of the two links of page p passes on half of that rank.
  template <class RankOf>
  [[nodiscard]] double rank(std::uint32_t page, RankOf rank_of) const {
    constexpr double damping = 0.85;
    double sum = 0;
    for (const auto from : web_.linked_by[page]) sum += rank_of(from) / 2;
    return (1 - damping) / pages_ + damping * sum;
  }

  const Web& web_;
  std::uint32_t pages_;
};

/// Makes the algorithm of `--model pagerank:pages=500` for a web with the same number of pages.
Result<actor::Algorithm<double>> make_pagerank(SpecReader& options, const Web& web) {
  const auto pages = static_cast<std::uint32_t>(options.count("pages", 500, 1, 50'000));
  if (web.size() > 0 && web.size() != pages)
    return Error{"pagerank: pages=" + std::to_string(pages) + ", but the web has " +
                 std::to_string(web.size()) + " pages"};
  const PageRank pagerank{web, pages};
  return actor::Algorithm<double>{
      .tensors = pagerank.tensors(),
      .hooks = {.schedule = [pagerank](auto& context) { return pagerank.schedule(context); },
                .push = [pagerank](auto& context) { return pagerank.push(context); },
                // An owner replaces the ranks that it holds by the pushed ones.
                .pull = [](const actor::KeySlice&, auto value,
                           auto update) { std::ranges::copy(update, value.begin()); }},
      .evaluate = [pagerank](const auto& tensors) { return pagerank.evaluate(tensors); }};
}

int main(int argc, char** argv) {
  Registry registry;
  registry.data("web", "a small web: web[:pages=500]", make_web);
  registry.algorithm<double, Web>("pagerank", "PageRank: pagerank[:pages=500]", make_pagerank);
  return starling::main(argc, argv, std::move(registry));
}
