#include "starling/actor/wire/fabric_links.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <variant>

#include "starling/actor/wire/framing.hpp"

namespace starling::wire {
namespace {

constexpr std::array ticket_prefix{std::byte{'S'}, std::byte{'f'}, std::byte{version},
                                   std::byte{0}};
static_assert(ticket_prefix.size() + sizeof(fabric::Ticket) == ticket_bytes);
constexpr std::array frame_prefix{magic[0], magic[1], std::byte{version},
                                  static_cast<std::byte>(Kind::fabric)};

bool begins_with(std::span<const std::byte> head, const auto& prefix) {
  return head.size() >= prefix.size() && std::ranges::equal(head.first(prefix.size()), prefix);
}

/// A peer that has not offered a region is asked again after this time.
constexpr std::chrono::seconds ask_again_after{5};
/// If two regions of a peer in a row could not be written to, the peer is asked again this much
/// later, because each attempt holds the transport's lock for a while.
constexpr std::chrono::minutes ask_failed_after{5};
/// The time between two checks whether writers' processes have ended.
constexpr std::chrono::seconds check_every{1};
/// The most peers that this process writes to. The provider shm has a table of 256 addresses.
constexpr std::size_t links_max = 100;
constexpr std::size_t address_bytes_max = 256;

/// Returns HOST of an address `tcp://HOST:PORT`.
std::string host_of(const std::string& address) {
  constexpr std::size_t scheme_bytes = 6;
  std::string host = address.substr(scheme_bytes, address.rfind(':') - scheme_bytes);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Frame encode(const FabricMessage& message) {
  return encode_as(Kind::fabric, [&](Encoder& encoder) { encoder(message); });
}

Result<FabricMessage> decode_fabric(const FrameView& frame) {
  return decode_as<FabricMessage>(
      frame, Kind::fabric, [](Decoder& decoder, FabricMessage& message) { decoder(message); });
}

bool is_fabric_frame(std::span<const std::byte> head) { return begins_with(head, frame_prefix); }

TicketPrefix print_ticket(const fabric::Ticket& ticket) {
  TicketPrefix bytes{};
  std::memcpy(std::ranges::copy(ticket_prefix, bytes.begin()).out, &ticket, sizeof ticket);
  return bytes;
}

std::optional<fabric::Ticket> read_ticket(std::span<const std::byte> head) {
  if (head.size() < ticket_bytes || !begins_with(head, ticket_prefix)) return std::nullopt;
  fabric::Ticket ticket;
  std::memcpy(&ticket, head.data() + ticket_prefix.size(), sizeof ticket);
  return ticket;
}

Result<std::unique_ptr<FabricWriters>> FabricWriters::open(FabricOptions options) {
  auto endpoint = fabric::Endpoint::open(*options.provider, host_of(options.address));
  if (!endpoint) return std::move(endpoint).error();
  return std::unique_ptr<FabricWriters>{
      new FabricWriters{std::move(options), *std::move(endpoint)}};
}

std::optional<fabric::Ticket> FabricWriters::write(const Peer& peer,
                                                   const std::vector<Attachment>& parts) {
  std::size_t bytes = 0;
  for (const Attachment& part : parts) bytes += part.bytes.size();
  if (bytes < options_.body_bytes_min || !peer.key) return std::nullopt;
  if (links_.size() >= links_max && !links_.contains(peer)) return std::nullopt;
  Link& link = links_[peer];
  if (!link.is_ready || link.writer->is_broken()) {
    ask(peer, link);
    return std::nullopt;
  }
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(parts.size());
  for (const Attachment& part : parts) pieces.push_back(part.bytes);
  auto ticket = link.writer->write(pieces, std::make_shared<const std::vector<Attachment>>(parts));
  if (ticket) ++written_;
  return ticket;
}

bool FabricWriters::is_ready(const Peer& peer) const {
  const auto found = links_.find(peer);
  return found != links_.end() && found->second.is_ready;
}

void FabricWriters::ask(const Peer& peer, Link& link) {
  const auto now = Clock::now();
  if (now - link.asked_at < ask_again_after) return;
  link = {.id = draw_id(), .asked_at = now, .has_failed = link.has_failed};
  frames_.emplace_back(
      peer, encode(FabricMessage{
                link.id, AskRegion{options_.address, std::string{fabric::print(*options_.provider)},
                                   fabric::own_claim()}}));
}

void FabricWriters::on(const Key& key, const FabricMessage& message) {
  const auto found = std::ranges::find_if(links_, [&](const auto& entry) {
    return entry.second.id == message.link && entry.first.key == key;
  });
  if (found == links_.end()) return;
  Link& link = found->second;
  if (const auto* offer = std::get_if<fabric::Offer>(&message.body)) {
    if (link.writer) return;
    // A peer could pass on the ProcessClaim of another process, and so offer that process's memory.
    // The proof shows that the peer runs on this host.
    const bool must_be_here =
        *options_.provider == fabric::Provider::shm || !options_.may_leave_host;
    if (must_be_here && offer->proof != fabric::expected_proof(key)) return;
    auto writer = fabric::RegionWriter::open(endpoint_, *options_.provider, link.id, *offer,
                                             options_.may_leave_host);
    if (!writer) return;
    link.writer = *std::move(writer);
    link.writer->begin();
    frames_.emplace_back(found->first, encode(FabricMessage{link.id, WriterBegun{}}));
  } else if (std::holds_alternative<RegionReady>(message.body)) {
    if (!link.writer || link.is_ready) return;
    link.is_ready = link.writer->connect().ok();
    // A busy peer may fail once, so only a second failure in a row delays the next request.
    const bool had_failed = std::exchange(link.has_failed, !link.is_ready);
    if (had_failed && link.has_failed) link.asked_at = Clock::now() + ask_failed_after;
  } else if (const auto* release = std::get_if<fabric::Release>(&message.body)) {
    if (link.is_ready) link.writer->release(*release);
  }
}

Result<fabric::Offer> FabricReaders::offer(const Peer& peer, fabric::LinkId link,
                                           const AskRegion& ask) {
  if (ask.provider != fabric::print(*options_.provider))
    return Error{"the provider is '" + ask.provider +
                 "'; valid here: " + std::string{fabric::print(*options_.provider)}};
  if (options_.is_member && !options_.is_member(*peer.key))
    return Error{"the key is not that of a member"};
  readers_.erase(*peer.key);
  if (fabric::mapped_bytes() + options_.layout.bytes() > options_.region_bytes_max)
    return Error{"all memory for regions is in use"};
  fabric::RegionReaderOptions region{.provider = *options_.provider,
                                     .host = host_of(options_.address),
                                     .layout = options_.layout,
                                     .writer = ask.writer,
                                     .on_free = wake_};
  if (*options_.provider != fabric::Provider::shm && options_.may_leave_host &&
      !fabric::Process::find(ask.writer))
    region.writer.reset();  // the writer is on another host
  auto opened = fabric::RegionReader::open(std::move(region));
  if (!opened) return std::move(opened).error();
  const auto& reader = readers_[*peer.key] = {link, peer, *std::move(opened)};
  fabric::Offer offered = reader.region->offer();
  offered.proof = fabric::prove_holder(ask.writer, own_key_).value_or(fabric::HolderProof{});
  return offered;
}

void FabricReaders::on(const Key& key, const FabricMessage& message) {
  if (const auto* ask = std::get_if<AskRegion>(&message.body)) {
    const auto peer = parse_peer(ask->address);
    if (ask->address.size() > address_bytes_max || !peer || peer->key) return;
    const Peer from{peer->address, key};
    auto offered = offer(from, message.link, *ask);
    if (offered)
      answer(from, {message.link, *std::move(offered)});
    else
      answer(from, {message.link, RegionRefused{offered.error().message}});
    return;
  }
  const auto found = readers_.find(key);
  if (found == readers_.end() || found->second.id != message.link) return;
  if (!std::holds_alternative<WriterBegun>(message.body)) return;
  found->second.region->connect();
  answer(found->second.peer, {message.link, RegionReady{}});
}

std::optional<fabric::Payload> FabricReaders::take(const Key& key, const fabric::Ticket& ticket) {
  const auto found = readers_.find(key);
  if (found == readers_.end() || found->second.id != ticket.link) return std::nullopt;
  auto payload = found->second.region->take(ticket);
  if (!payload) return std::nullopt;
  return *std::move(payload);
}

FabricFrames FabricReaders::take_frames() {
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_check_at_) {
    next_check_at_ = now + check_every;
    std::erase_if(readers_,
                  [](const auto& entry) { return !entry.second.region->is_writer_alive(); });
  }
  for (const auto& [key, reader] : readers_)
    if (const auto release = reader.region->collect()) answer(reader.peer, {reader.id, *release});
  return std::exchange(frames_, {});
}

}  // namespace starling::wire
