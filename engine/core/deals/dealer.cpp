#include "starling/engine/core/deals/dealer.hpp"

#include <algorithm>
#include <utility>

#include "starling/models/batch_sizes.hpp"

namespace starling::core {

std::vector<std::uint64_t> sizes_of(const Deal& deal) {
  std::vector<std::uint64_t> sizes;
  for (const DealtWorker& worker : deal.workers) sizes.push_back(worker.batch);
  return sizes;
}

namespace {

/// Returns what a worker that is gone had taken of its deal, as far as members hold its updates.
models::Taken taken_by_dead(const DealtWorker& worker, bool by_samples,
                            const std::map<MemberId, DealReport>& reports) {
  // If nobody is left who knows the first configuration, the first incarnation counts.
  Incarnation incarnation = worker.incarnation;
  if (incarnation == 0)
    for (const auto& [from, report] : reports)
      for (const WorkerProgress& progress : report.progress)
        if (progress.worker.id == worker.id &&
            (incarnation == 0 || progress.worker.incarnation < incarnation))
          incarnation = progress.worker.incarnation;
  models::Taken taken;
  for (const auto& [from, report] : reports)
    for (const WorkerProgress& progress : report.progress) {
      if (progress.worker != MemberIncarnation{worker.id, incarnation}) continue;
      if (by_samples || !worker.first_step)
        taken.samples = std::max(
            taken.samples, progress.samples - std::min(progress.samples, worker.first_samples));
      else if (progress.step > *worker.first_step)
        taken.steps = std::max(taken.steps, progress.step - *worker.first_step);
    }
  return taken;
}

/// The fewest steps between two revisions of the sizes of batches: fewer would measure too little.
constexpr std::uint64_t revision_steps_min = 8;
/// With more former deals than this, the dealer calls for no revision: the number of former deals
/// is limited (models::check_deals()), and the rest is kept for changes of the members.
constexpr std::size_t revised_deals_max = 50;

}  // namespace

Dealer::Dealer(DealOptions options, const Configuration* first) : options_(std::move(options)) {
  Deal deal{.workers = std::vector<DealtWorker>(options_.workers), .former = options_.former};
  if (options_.dynamic) {
    const auto sizes = models::divide_batch(options_.batch, options_.workers);
    for (MemberId id = 0; id < options_.workers; ++id) deal.workers[id].batch = sizes[id];
  }
  const Step first_step = deals_samples() ? order_of(deal).first_step() : 0;
  for (MemberId id = 0; id < options_.workers; ++id) {
    const Member* member = first != nullptr ? first->find(id) : nullptr;
    DealtWorker& worker = deal.workers[id];
    worker.id = id;
    worker.incarnation = member != nullptr ? member->incarnation : 0;
    worker.first_step = first_step;
    if (options_.by_samples && !options_.former.empty())
      worker.first_samples =
          models::samples_at_resume(options_.former.back().samples, options_.workers, id);
  }
  deal_ = std::make_shared<const Deal>(std::move(deal));
}

models::SampleOrder Dealer::order_of(const Deal& deal) const {
  if (options_.dynamic) return {options_.samples, sizes_of(deal), options_.seed, true, deal.former};
  return {options_.samples, deal.workers.size(), options_.batch, options_.seed, true, deal.former};
}

models::FormerDeal Dealer::former_deal(const Deal& deal) const {
  if (options_.dynamic) return {.sizes = sizes_of(deal)};
  return {.batch = options_.batch};
}

bool Dealer::are_possible(const std::vector<models::FormerDeal>& former) const {
  return deals_samples() ? bool{models::check_deals(former, options_.samples)} : former.empty();
}

bool Dealer::is_possible(const Deal& deal) const {
  if (!are_possible(deal.former)) return false;
  if (!options_.dynamic)
    return std::ranges::all_of(deal.workers, [](auto& worker) { return worker.batch == 0; });
  std::uint64_t rest = std::max<std::uint64_t>(options_.batch, deal.workers.size());
  for (const DealtWorker& worker : deal.workers) {
    if (worker.batch == 0 || worker.batch > rest) return false;
    rest -= worker.batch;
  }
  return rest == 0 || deal.workers.empty();
}

bool Dealer::take_due_report(const Configuration& configuration) {
  return take_due_report(configuration, {{configuration.members_since, 0}});
}

bool Dealer::take_due_report(const Configuration& configuration, const CallForReports& call) {
  if (call.next.epoch != configuration.members_since || call.next <= reported_) return false;
  reported_ = call.next;
  return true;
}

const std::shared_ptr<const models::SampleOrder>& Dealer::order() {
  if (!order_) order_ = std::make_shared<const models::SampleOrder>(order_of(*deal_));
  return order_;
}

bool Dealer::take_due_revision(MemberId worker, std::uint64_t taken) {
  if (!revises() || deal_->workers.size() < 2) return false;
  if (options_.by_samples) {
    const auto part = part_of(worker);
    if (!part) return false;
    if (!revision_due_)
      revision_due_ = std::min(part->order->samples_of_first_epoch(part->index), *part->samples);
    if (taken == 0 || taken + part->order->batch_size() < *revision_due_) return false;
    revision_due_ = UINT64_MAX;  // once is enough
    return true;
  }
  const std::uint64_t period =
      std::max(revision_steps_min, order()->leftover_steps() + order()->steps_per_epoch());
  if (!revision_due_) revision_due_ = period;
  if (taken < *revision_due_) return false;
  *revision_due_ = taken + period;
  return true;
}

std::optional<CallForReports> Dealer::on(const Configuration& configuration,
                                         const RevisionRequest& request) {
  const DealNumber present = deal_->number;
  const DealNumber next{present.epoch, present.revision + 1};
  if (!revises() || request.present != present || present.epoch != configuration.members_since ||
      called_ >= next || deal_->former.size() > revised_deals_max)
    return std::nullopt;
  called_ = next;
  return CallForReports{next};
}

DealNumber Dealer::awaited(const Configuration& configuration) const {
  return std::max(called_, DealNumber{configuration.members_since, 0});
}

std::vector<WorkerProgress> Dealer::progress_of_departed(
    const Configuration& configuration, const std::vector<WorkerProgress>& progress) {
  for (const WorkerProgress& now : progress) {
    WorkerProgress& known = known_progress_.try_emplace(now.worker, now).first->second;
    known.step = std::max(known.step, now.step);
    known.samples = std::max(known.samples, now.samples);
  }
  std::vector<WorkerProgress> gone;
  for (const auto& [worker, known] : known_progress_)
    if (!configuration.contains(worker.id, worker.incarnation)) gone.push_back(known);
  return gone;
}

std::optional<Deal> Dealer::on(const Configuration& configuration, MemberId from,
                               const DealReport& report) {
  if (report.number != awaited(configuration)) return std::nullopt;
  if (!is_possible(report.deal)) return std::nullopt;
  if (collected_ != report.number) {
    reports_.clear();
    receivers_.clear();
  }
  collected_ = report.number;
  reports_[from] = report;
  if (reports_.size() < configuration.members.size()) return std::nullopt;
  Deal next = next_deal(configuration);
  reports_.clear();
  return next;
}

std::vector<models::Taken> Dealer::taken_of(const Deal& latest, const Configuration& configuration,
                                            const std::map<MemberId, DealReport>& reports) const {
  std::vector<models::Taken> all;
  for (const DealtWorker& worker : latest.workers) {
    const auto own = reports.find(worker.id);
    if (own != reports.end() && own->second.taken && own->second.deal.number == latest.number)
      all.push_back(options_.by_samples ? models::Taken{.samples = *own->second.taken}
                                        : models::Taken{.steps = *own->second.taken});
    else if (configuration.contains(worker.id, worker.incarnation))
      all.push_back({});  // it does not know the deal yet
    else
      all.push_back(taken_by_dead(worker, options_.by_samples, reports));
  }
  return all;
}

/// Requires: reports_ has the reports of all members.
Deal Dealer::next_deal(const Configuration& configuration) const {
  // Members with a part in the first deal know the incarnations of its workers.
  const Deal& latest =
      std::ranges::max_element(reports_, {}, [](const auto& report) {
        return std::pair{report.second.deal.number, report.second.taken.has_value()};
      })->second.deal;
  Deal next{.number = collected_, .workers = {}, .former = latest.former};
  for (const Member& member : configuration.members) {
    const DealReport& report = reports_.at(member.id);
    if (member.works && !report.is_done)
      next.workers.push_back({.id = member.id,
                              .incarnation = member.incarnation,
                              .first_step = report.begun,
                              .first_samples = report.samples_in_all});
    for (const WorkerProgress& gone : report.progress)
      if (gone.step < barrier::finished)  // else the member is broken
        next.reached = std::max(next.reached, gone.step);
  }
  if (options_.dynamic) size_batches(next);
  if (latest.workers.empty() || !deals_samples()) return next;
  models::FormerDeal last = former_deal(latest);
  last.taken = taken_of(latest, configuration, reports_);
  const models::SampleOrder order = order_of(latest);
  std::uint64_t epoch = order.first_new_epoch(last.taken);
  if (epoch > UINT32_MAX / 2) epoch = order.first_epoch();  // a member is broken
  next.former = models::deals_after(latest.former, order, std::move(last));
  // If the deals of one epoch are too many, what is left of it is given up.
  if (!are_possible(next.former))
    next.former = {{.first_epoch = epoch, .batch = options_.batch, .taken = {{}}}};
  return next;
}

void Dealer::size_batches(Deal& deal) const {
  std::vector<models::WorkDone> done;
  for (const DealtWorker& worker : deal.workers) {
    const DealReport& report = reports_.at(worker.id);
    done.push_back({report.samples, static_cast<double>(report.nanoseconds) * 1e-9});
  }
  const auto sizes = models::divide_batch(options_.batch, models::next_shares(done));
  for (std::size_t w = 0; w < sizes.size(); ++w) deal.workers[w].batch = sizes[w];
}

bool Dealer::on(const Configuration& configuration, const NewDeal& next) {
  if (next.deal.number.epoch != configuration.members_since || next.deal.number <= deal_->number ||
      !is_possible(next.deal))
    return false;
  deal_ = std::make_shared<const Deal>(next.deal);
  has_begun_ = false;
  known_progress_.clear();
  order_.reset();
  revision_due_.reset();
  return true;
}

std::optional<BeginDeal> Dealer::on(const Configuration& configuration, MemberId from,
                                    const DealReceived& receipt) {
  if (receipt.number != collected_ || receipt.number.epoch != configuration.members_since)
    return std::nullopt;
  receivers_.insert(from);
  if (receivers_.size() < configuration.members.size()) return std::nullopt;
  return BeginDeal{receipt.number};
}

bool Dealer::on(const Configuration& configuration, const BeginDeal& begin) {
  if (has_begun_ || begin.number != deal_->number || begin.number < reported_ ||
      begin.number.epoch != configuration.members_since)
    return false;
  has_begun_ = true;
  return true;
}

std::optional<DealPart> Dealer::part_of(MemberId worker) {
  const auto& workers = deal_->workers;
  const auto part = std::ranges::lower_bound(workers, worker, {}, &DealtWorker::id);
  if (part == workers.end() || part->id != worker) return std::nullopt;
  DealPart dealt{.index = static_cast<std::uint32_t>(part - workers.begin()),
                 .count = static_cast<std::uint32_t>(workers.size()),
                 .steps_max = options_.steps_max,
                 .batch = part->batch,
                 .reached = deal_->reached};
  for (const DealtWorker& other : workers)
    dealt.common_first_step = std::max(dealt.common_first_step, other.first_step.value_or(0));
  if (!deals_samples()) return dealt;
  dealt.order = order();
  if (options_.by_samples)
    dealt.samples =
        options_.epochs ? order_->samples_until(dealt.index, *options_.epochs) : barrier::unlimited;
  else if (options_.epochs)
    dealt.steps = order_->steps_until(*options_.epochs);
  return dealt;
}

}  // namespace starling::core
