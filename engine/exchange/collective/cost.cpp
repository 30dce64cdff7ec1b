#include "starling/engine/exchange/collective/cost.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "starling/base/check.hpp"

namespace starling::collective {
namespace {

/// The messages and the data that a port or link carries, in one round or in several.
struct Load {
  double messages = 0;
  /// The data, as a fraction of the vector.
  double share = 0;
};

/// The resources that messages occupy: the two directions of each port or, if the network has a
/// topology, its links.
class Resources {
 public:
  Resources(const Schedule& schedule, const Network& network)
      : network_(network), ports_(schedule.ports) {
    count_ = 2 * ports_ * schedule.members;
    if (!network.topology) return;
    count_ = network.topology->links.size();
    for (std::size_t e = 0; e < count_; ++e)
      links_[{network.topology->links[e].from, network.topology->links[e].to}] = e;
  }

  [[nodiscard]] std::size_t count() const { return count_; }

  /// Adds a message to the loads of a round. Returns false if no link can carry it.
  bool add(Load* loads, Rank from, Rank to, std::size_t port, double share) const {
    if (network_.topology) {
      const auto link = links_.find({from, to});
      if (link != links_.end()) add(loads[link->second], share);
      return link != links_.end();
    }
    add(loads[2 * (from * ports_ + port)], share);
    add(loads[2 * (to * ports_ + port) + 1], share);
    return true;
  }

  /// Returns how many seconds the resource takes for the load if the vector has `bytes` bytes.
  [[nodiscard]] double seconds(std::size_t resource, const Load& load, double bytes) const {
    const double lanes = network_.topology ? network_.topology->links[resource].lanes : 1;
    return load.messages * network_.latency_s +
           load.share * bytes / (lanes * network_.bytes_per_second);
  }

 private:
  static void add(Load& load, double share) {
    load.messages += 1;
    load.share += share;
  }

  const Network& network_;
  std::size_t ports_;
  std::size_t count_;
  std::map<std::pair<Rank, Rank>, std::size_t> links_;
};

/// The loads of a schedule.
class LoadTable {
 public:
  LoadTable(const Schedule& schedule, const Resources& resources)
      : resources_(resources),
        rounds_(schedule.rounds.size()),
        // Row r has the sums over the rounds before r.
        sums_((rounds_ + 1) * resources.count()) {
    for (std::size_t r = 0; r < rounds_; ++r) {
      std::map<std::tuple<Rank, Rank, std::size_t>, double> shares;
      for (const Move& move : schedule.rounds[r])
        shares[{move.from, move.to, move.port}] += schedule.chunks[move.chunk].share;
      Load* const row = sums_.data() + (r + 1) * resources.count();
      for (const auto& [message, share] : shares) {
        const auto& [from, to, port] = message;
        if (!resources.add(row, from, to, port, share) && fault_.empty())
          fault_ = "round " + std::to_string(r + 1) + ": " + std::to_string(from) + " -> " +
                   std::to_string(to) + ": the topology has no link between these members";
      }
      messages_ += shares.size();
      for (std::size_t i = 0; i < resources.count(); ++i) {
        row[i].messages += sum(r, i).messages;
        row[i].share += sum(r, i).share;
      }
    }
  }

  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] std::size_t messages() const { return messages_; }

  [[nodiscard]] double max_share() const {
    double most = 0;
    for (std::size_t i = 0; i < resources_.count(); ++i)
      most = std::max(most, sum(rounds_, i).share);
    return most;
  }

  /// Returns the time if the chunks are cut into `slices`. In round t of the pipelined schedule,
  /// slice s makes the moves of round t - s.
  [[nodiscard]] double seconds(double bytes, std::size_t slices) const {
    if (rounds_ == 0) return 0;
    double total = 0;
    for (std::size_t t = 0; t < rounds_ + slices - 1; ++t) {
      const std::size_t end = std::min(t + 1, rounds_);
      const std::size_t begin = t + 1 > slices ? t + 1 - slices : 0;
      double longest = 0;
      for (std::size_t i = 0; i < resources_.count(); ++i) {
        const Load load{sum(end, i).messages - sum(begin, i).messages,
                        (sum(end, i).share - sum(begin, i).share) / static_cast<double>(slices)};
        longest = std::max(longest, resources_.seconds(i, load, bytes));
      }
      total += longest;
    }
    return total;
  }

 private:
  [[nodiscard]] const Load& sum(std::size_t round, std::size_t resource) const {
    return sums_[round * resources_.count() + resource];
  }

  const Resources& resources_;
  std::size_t rounds_;
  std::vector<Load> sums_;
  std::size_t messages_ = 0;
  std::string fault_;
};

}  // namespace

Result<Cost> cost(const Schedule& schedule, double bytes, const Network& network) {
  STARLING_CHECK(network.latency_s >= 0 && network.bytes_per_second > 0);
  const Resources resources{schedule, network};
  const LoadTable loads{schedule, resources};
  if (!loads.fault().empty()) return Error{loads.fault()};
  Cost cost{.rounds = schedule.rounds.size(),
            .messages = loads.messages(),
            .port_bytes = loads.max_share() * bytes};
  cost.seconds = cost.unpipelined_seconds = loads.seconds(bytes, 1);
  for (std::size_t slices = 2; slices <= slices_max; slices *= 2) {
    const double seconds = loads.seconds(bytes, slices);
    // Sums of the same terms in another order differ in their last digits.
    if (seconds < (1 - 1e-9) * cost.seconds)
      std::tie(cost.seconds, cost.slices) = std::tie(seconds, slices);
    // Once the time is far above the least one, finer slices only add messages.
    if (seconds > 2 * cost.seconds) break;
  }
  return cost;
}

}  // namespace starling::collective
