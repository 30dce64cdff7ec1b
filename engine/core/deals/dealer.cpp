#include "starling/engine/core/deals/dealer.hpp"

#include <algorithm>
#include <utility>

namespace starling::core {
namespace {

/// Returns what a worker that is gone had taken of its deal, as far as members hold its updates.
models::Taken taken_by_dead(const DealtWorker& worker,
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
      if (!worker.first_step)
        taken.samples = std::max(taken.samples, progress.samples);
      else if (progress.step > *worker.first_step)
        taken.steps = std::max(taken.steps, progress.step - *worker.first_step);
    }
  return taken;
}

}  // namespace

Dealer::Dealer(DealOptions options, const Configuration* first) : options_(std::move(options)) {
  Deal deal{.workers = std::vector<DealtWorker>(options_.workers), .former = options_.former};
  const Step first_step = deals_samples() ? order_of(deal).first_step() : 0;
  for (MemberId id = 0; id < options_.workers; ++id) {
    const Member* member = first != nullptr ? first->find(id) : nullptr;
    deal.workers[id] = {id, member != nullptr ? member->incarnation : 0, first_step};
  }
  deal_ = std::make_shared<const Deal>(std::move(deal));
}

models::SampleOrder Dealer::order_of(const Deal& deal) const {
  return {options_.samples, deal.workers.size(), options_.batch, options_.seed, true, deal.former};
}

bool Dealer::are_possible(const std::vector<models::FormerDeal>& former) const {
  return deals_samples() ? bool{models::check_deals(former, options_.samples)} : former.empty();
}

bool Dealer::begin_report(const Configuration& configuration) {
  if (configuration.members_since <= reported_) return false;
  reported_ = configuration.members_since;
  return true;
}

std::vector<WorkerProgress> Dealer::progress_of_gone(const Configuration& configuration,
                                                     const std::vector<WorkerProgress>& progress) {
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
  if (report.epoch != configuration.members_since) return std::nullopt;
  if (!are_possible(report.deal.former)) return std::nullopt;
  if (collected_ != report.epoch) reports_.clear();
  collected_ = report.epoch;
  reports_[from] = report;
  if (reports_.size() < configuration.members.size()) return std::nullopt;
  Deal next = next_deal(configuration);
  reports_.clear();
  return next;
}

std::vector<models::Taken> Dealer::taken_of(const Deal& latest, const Configuration& configuration,
                                            const std::map<MemberId, DealReport>& reports) {
  std::vector<models::Taken> all;
  for (const DealtWorker& worker : latest.workers) {
    const auto own = reports.find(worker.id);
    if (own != reports.end() && own->second.taken && own->second.deal.epoch == latest.epoch)
      all.push_back({.steps = *own->second.taken});
    else if (configuration.contains(worker.id, worker.incarnation))
      all.push_back({});  // it does not know the deal yet
    else
      all.push_back(taken_by_dead(worker, reports));
  }
  return all;
}

/// Requires: reports_ has the reports of all members.
Deal Dealer::next_deal(const Configuration& configuration) const {
  // Members with a part in the first deal know the incarnations of its workers.
  const Deal& latest =
      std::ranges::max_element(reports_, {}, [](const auto& report) {
        return std::pair{report.second.deal.epoch, report.second.taken.has_value()};
      })->second.deal;
  Deal next{.epoch = configuration.members_since, .workers = {}, .former = latest.former};
  for (const Member& member : configuration.members) {
    const DealReport& report = reports_.at(member.id);
    if (member.works && !report.is_done)
      next.workers.push_back({member.id, member.incarnation, report.begun});
  }
  if (latest.workers.empty() || !deals_samples()) return next;
  models::FormerDeal last{.batch = options_.batch,
                          .taken = taken_of(latest, configuration, reports_)};
  const models::SampleOrder order = order_of(latest);
  std::uint64_t epoch = order.epochs_begun(last.taken);
  if (epoch > UINT32_MAX / 2) epoch = order.first_epoch();  // a member is broken
  next.former = models::deals_after(latest.former, order, std::move(last));
  // If the deals of one epoch are too many, what is left of it is given up.
  if (!are_possible(next.former))
    next.former = {{.first_epoch = epoch, .batch = options_.batch, .taken = {{}}}};
  return next;
}

bool Dealer::on(const Configuration& configuration, const NewDeal& next) {
  if (next.deal.epoch != configuration.members_since || next.deal.epoch <= deal_->epoch ||
      !are_possible(next.deal.former))
    return false;
  deal_ = std::make_shared<const Deal>(next.deal);
  known_progress_.clear();
  order_.reset();
  return true;
}

std::optional<DealPart> Dealer::part_of(MemberId worker) {
  const auto& workers = deal_->workers;
  const auto part = std::ranges::lower_bound(workers, worker, {}, &DealtWorker::id);
  if (part == workers.end() || part->id != worker) return std::nullopt;
  DealPart dealt{.index = static_cast<std::uint32_t>(part - workers.begin()),
                 .count = static_cast<std::uint32_t>(workers.size()),
                 .steps_max = options_.steps_max};
  for (const DealtWorker& other : workers)
    dealt.common_first_step = std::max(dealt.common_first_step, other.first_step.value_or(0));
  if (!deals_samples()) return dealt;
  if (!order_) order_ = std::make_shared<const models::SampleOrder>(order_of(*deal_));
  dealt.order = order_;
  if (options_.epochs) dealt.steps = order_->steps_until(*options_.epochs);
  return dealt;
}

}  // namespace starling::core
