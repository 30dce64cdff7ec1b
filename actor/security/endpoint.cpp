#include "starling/actor/security/endpoint.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "starling/actor/security/credentials.hpp"

namespace starling::security {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// After a peer has been silent for this long, the endpoint introduces itself to the peer again.
constexpr auto introduction_valid_for = 10s;
/// The least time between two introductions to a peer that does not answer.
constexpr auto introduce_again_after = 200ms;
/// The most bytes of frames to one peer that wait until the peer knows this endpoint.
constexpr std::size_t held_bytes_max = std::size_t{1} << 20U;
/// The most revocations in one frame.
constexpr std::size_t revocations_per_frame_max = 1000;
/// The least time between two lists of all revocations to one peer. Nodes compare digests every
/// second; a peer that asks too early gets the list at its next comparison.
constexpr auto list_interval = 900ms;
/// The most such lists that are sent to all peers together within `list_interval`.
constexpr std::size_t lists_max = 64;
/// The most peers that are remembered. Beyond this limit all are forgotten, and the endpoint
/// introduces itself to them again.
constexpr std::size_t peers_max = 8192;

}  // namespace

bool Sender::may_use_address(const std::string& address) const {
  const auto peer = wire::parse_peer(address);
  return peer && peer->key == key;
}

class Endpoint::Core {
 public:
  Core(EndpointOptions options, Receiver receiver)
      : options_(std::move(options)), receiver_(std::move(receiver)) {}

  Result<void> open() {
    wire::TransportOptions transport_options;
    transport_options.listen = options_.listen;
    transport_options.fabric = options_.fabric;
    transport_options.fabric.address = options_.advertise;
    // Clients send no packets of members.
    transport_options.fabric.is_member = [this](const Key& key) {
      return admission_->role_of(key, options_.utc_now()) == Role::node;
    };
    if (const auto& own = options_.secrets) {
      admission_.emplace(own->cluster, own->handshake_keys.public_key);
      const UtcSeconds now = options_.utc_now();
      (void)admission_->merge(own->revocations, now);
      if (auto valid = admission_->learn(own->certificate, now); !valid) return valid;
      // Ignores errors, because certificates of others may have expired since the file was written.
      for (const Certificate& other : own->known) (void)admission_->learn(other, now);
      transport_options.keys = own->keys;
      transport_options.handshake_keys = own->handshake_keys;
      transport_options.admits = [this](const Key& key) {
        return admission_->admits(key, options_.utc_now());
      };
    }
    auto transport = wire::Transport::open(
        transport_options, [this](const wire::IncomingFrame& incoming) { receive(incoming); });
    if (!transport) return std::move(transport).error();
    wire::Peer self{options_.advertise.empty() ? (*transport)->address() : options_.advertise,
                    std::nullopt};
    if (options_.secrets) self.key = options_.secrets->keys.public_key;
    address_ = wire::print(self);
    if (!wire::parse_peer(address_))
      return Error{"no other node can connect to " + self.address +
                   "; valid: as the address at which others reach this node (--advertise, or else "
                   "--listen), HOST:PORT with the address of one network interface"};
    transport_ = *std::move(transport);
    is_open_ = true;
    return {};
  }

  [[nodiscard]] const std::string& address() const noexcept { return address_; }

  void send(const std::string& address, wire::TrafficClass traffic_class,
            std::span<wire::Frame> frames) {
    wire::Peer peer;
    {
      const std::lock_guard lock{mutex_};
      PeerState* known = find_or_add_peer(address);
      if (known == nullptr) return;
      peer = known->peer;
      if (admission_ && !knows_this_endpoint(*peer.key)) {
        for (wire::Frame& frame : frames) known->hold_frame(traffic_class, std::move(frame));
        const auto now = Clock::now();
        if (now - known->introduced_at < introduce_again_after) return;
        known->introduced_at = now;
        return introduce(peer, false);
      }
    }
    if (!admission_ || has_certificate(*peer.key)) transport_->send(peer, traffic_class, frames);
  }

  void forget(const std::string& address) {
    const auto peer = wire::parse_peer(address);
    if (!peer) return;
    transport_->forget(*peer);
    const std::lock_guard lock{mutex_};
    peers_.erase(address);
  }

  /// True if a valid certificate is known for the key.
  bool has_certificate(const Key& key) const {
    return admission_->access_of(key, options_.utc_now()) == KeyAccess::certified;
  }

  std::string name_of(const Key& key) const {
    const auto certificate = admission_->certificate_of(key, options_.utc_now());
    return certificate ? certificate->name : std::string{};
  }

  Result<void> check_certificate() const {
    if (!options_.secrets) return {};
    return check_time(options_.secrets->certificate, options_.utc_now());
  }

  void revoke(std::span<const Revocation> revocations) {
    if (!admission_) return;
    const MergeResult merged = admission_->merge(revocations, options_.utc_now());
    if (merged.added.empty()) return;
    if (options_.on_revoked) options_.on_revoked(merged);
    std::vector<std::string> remaining;
    {
      const std::lock_guard lock{mutex_};
      for (auto peer = peers_.begin(); peer != peers_.end();) {
        const bool is_revoked = std::ranges::count(merged.removed_keys, *peer->second.peer.key) > 0;
        if (is_revoked)
          transport_->forget(peer->second.peer);
        else
          remaining.push_back(peer->first);
        peer = is_revoked ? peers_.erase(peer) : std::next(peer);
      }
    }
    for (const std::string& address : remaining) send_revocations(address, merged.added);
  }

  void compare(const std::string& address) {
    if (admission_)
      send_credentials(address, RevocationsDigest{admission_->revocations_digest(), false});
  }

  [[nodiscard]] std::uint64_t digest_matches() const noexcept { return digest_matches_; }
  [[nodiscard]] wire::TransportCounts counts() const { return transport_->counts(); }

 private:
  struct PeerState {
    wire::Peer peer;
    /// When the endpoint last introduced itself to the peer.
    Clock::time_point introduced_at{};
    /// When the list of all revocations was last sent to the peer.
    Clock::time_point list_sent_at{};
    /// The frames that wait until the peer knows this endpoint.
    std::vector<std::pair<wire::TrafficClass, wire::Frame>> held_frames{};
    std::size_t held_bytes = 0;

    void hold_frame(wire::TrafficClass traffic_class, wire::Frame frame) {
      const std::size_t bytes = frame.head.size() + frame.body_size();
      if (held_bytes + bytes > held_bytes_max) return;
      held_bytes += bytes;
      held_frames.emplace_back(traffic_class, std::move(frame));
    }
  };

  /// True if the peer has sent a frame within `introduction_valid_for`. It then has this endpoint's
  /// certificate. Requires: the lock is held.
  bool knows_this_endpoint(const Key& key) const {
    const auto found = last_received_at_.find(key);
    return found != last_received_at_.end() &&
           Clock::now() - found->second < introduction_valid_for;
  }

  /// Returns null if the address is not valid, or lacks the key that it needs. Requires: the lock
  /// is held.
  PeerState* find_or_add_peer(const std::string& address) {
    if (const auto known = peers_.find(address); known != peers_.end()) return &known->second;
    auto peer = wire::parse_peer(address);
    if (!peer || peer->key.has_value() != admission_.has_value()) return nullptr;
    if (peers_.size() >= peers_max) {
      peers_.clear();
      last_received_at_.clear();
      instances_.clear();
    }
    return &peers_.emplace(address, PeerState{*std::move(peer)}).first->second;
  }

  void introduce(const wire::Peer& to, bool is_answer) {
    transport_->send(
        to, wire::TrafficClass::handshake,
        encode({address_, Introduction{options_.secrets->certificate, is_answer, instance_,
                                       prove(proven_text(address_, is_answer, instance_),
                                             options_.secrets->keys.secret_key, *to.key)}}));
  }
  /// The text that the proof of an introduction covers.
  static std::string proven_text(const std::string& address, bool is_answer,
                                 std::uint64_t instance) {
    return (is_answer ? "I know you, from " : "I am, at ") + address + " " +
           std::to_string(instance);
  }

  template <class Body>
  void send_credentials(const std::string& address, Body body) {
    wire::Frame frame = encode({address_, std::move(body)});
    send(address, wire::TrafficClass::control, {&frame, 1});
  }

  void send_revocations(const std::string& address, std::span<const Revocation> all) {
    for (; !all.empty(); all = all.subspan(std::min(revocations_per_frame_max, all.size()))) {
      const auto part = all.first(std::min(revocations_per_frame_max, all.size()));
      send_credentials(address, Revocations{{part.begin(), part.end()}});
    }
  }

  // The transport's thread calls the following functions.

  void receive(const wire::IncomingFrame& incoming) {
    if (!is_open_) return;
    if (!admission_) return receiver_(incoming.frame, {});
    const UtcSeconds now = options_.utc_now();
    const auto role = admission_->role_of(*incoming.key, now);
    const Sender sender{incoming.key, role.value_or(Role::client)};
    if (role) {
      const std::lock_guard lock{mutex_};
      last_received_at_[*incoming.key] = Clock::now();
    }
    const auto kind = wire::kind_of(incoming.frame);
    if (!kind) return receiver_(incoming.frame, sender);
    if (*kind != wire::Kind::credentials) {
      if (role) receiver_(incoming.frame, sender);
      return;
    }
    const auto message = decode_credentials(incoming.frame);
    if (!message) return;
    if (const auto* introduction = std::get_if<Introduction>(&message->body))
      return receive(message->address, *introduction, now);
    if (!role || !sender.may_use_address(message->address)) return;
    if (const auto* digest = std::get_if<RevocationsDigest>(&message->body))
      receive(message->address, *digest);
    else
      revoke(std::get<Revocations>(message->body).revocations);
  }

  void receive(const std::string& address, const Introduction& introduction, UtcSeconds now) {
    const auto peer = wire::parse_peer(address);
    if (!peer || peer->key != introduction.certificate.key ||
        introduction.proof !=
            prove(proven_text(address, introduction.is_answer, introduction.instance),
                  options_.secrets->keys.secret_key, *peer->key) ||
        !admission_->learn(introduction.certificate, now))
      return;
    std::vector<std::pair<wire::TrafficClass, wire::Frame>> held_frames{};
    {
      const std::lock_guard lock{mutex_};
      const bool has_restarted =
          std::exchange(instances_[*peer->key], introduction.instance) != introduction.instance;
      if (introduction.is_answer) {
        // The new process does not admit the connections made to the former one.
        if (has_restarted && last_received_at_.contains(*peer->key)) transport_->forget(*peer);
        last_received_at_[*peer->key] = Clock::now();
        if (PeerState* known = find_or_add_peer(address)) {
          held_frames.swap(known->held_frames);
          known->held_bytes = 0;
        }
      } else if (has_restarted && last_received_at_.erase(*peer->key) > 0) {
        // The peer no longer admits the connections made to it before. A peer that has not
        // restarted still admits them: it introduces itself because it has received nothing from
        // this endpoint yet. If this endpoint reset its connections to that peer, both could reset
        // each other's without end over long round trips.
        transport_->forget(*peer);
      }
    }
    for (auto& [traffic_class, frame] : held_frames)
      transport_->send(*peer, traffic_class, std::move(frame));
    if (!introduction.is_answer) introduce(*peer, true);
  }

  void receive(const std::string& address, const RevocationsDigest& digest) {
    const std::uint64_t own = admission_->revocations_digest();
    if (digest.digest == own) {
      ++digest_matches_;
    } else if (begin_list_if_allowed(address)) {
      send_revocations(address, admission_->revocations_since(0, SIZE_MAX).revocations);
    }
    if (!digest.is_answer) send_credentials(address, RevocationsDigest{own, true});
  }

  /// Returns true if a list of all revocations may be sent to the peer now; if so, counts the list
  /// as sent. Lists are limited because a list is much longer than the digest that a peer sends to
  /// get it.
  bool begin_list_if_allowed(const std::string& address) {
    const std::lock_guard lock{mutex_};
    const auto now = Clock::now();
    if (now - list_period_started_at_ >= list_interval) {
      list_period_started_at_ = now;
      lists_sent_ = 0;
    }
    PeerState* peer = find_or_add_peer(address);
    if (peer == nullptr || lists_sent_ >= lists_max || now - peer->list_sent_at < list_interval)
      return false;
    peer->list_sent_at = now;
    ++lists_sent_;
    return true;
  }

  const EndpointOptions options_;
  const Receiver receiver_;
  std::optional<Admission> admission_;
  std::string address_;
  std::atomic<std::uint64_t> digest_matches_ = 0;

  std::mutex mutex_;
  /// The start of the current period of `list_interval`, and the number of lists sent in it.
  Clock::time_point list_period_started_at_{};
  std::size_t lists_sent_ = 0;
  std::unordered_map<std::string, PeerState> peers_;
  /// When a frame of each admitted key was last received.
  std::unordered_map<Key, Clock::time_point, wire::KeyHash> last_received_at_;
  const std::uint64_t instance_ = wire::draw_id();
  /// The last Introduction::instance of each key.
  std::unordered_map<Key, std::uint64_t, wire::KeyHash> instances_;
  std::atomic<bool> is_open_ = false;
  std::unique_ptr<wire::Transport> transport_;
};

Result<std::unique_ptr<Endpoint>> Endpoint::open(EndpointOptions options, Receiver receiver) {
  auto core = std::make_unique<Core>(std::move(options), std::move(receiver));
  if (auto opened = core->open(); !opened) return std::move(opened).error();
  return std::unique_ptr<Endpoint>{new Endpoint{std::move(core)}};
}

Endpoint::Endpoint(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Endpoint::~Endpoint() = default;

const std::string& Endpoint::address() const noexcept { return core_->address(); }
void Endpoint::send(const std::string& address, wire::TrafficClass traffic_class,
                    std::span<wire::Frame> frames) {
  core_->send(address, traffic_class, frames);
}
void Endpoint::forget(const std::string& address) { core_->forget(address); }
bool Endpoint::admits(const Key& key) const { return core_->has_certificate(key); }
std::string Endpoint::name_of(const Key& key) const { return core_->name_of(key); }
Result<void> Endpoint::check_certificate() const { return core_->check_certificate(); }
void Endpoint::revoke(std::span<const Revocation> revocations) { core_->revoke(revocations); }
void Endpoint::compare_revocations(const std::string& address) { core_->compare(address); }
std::uint64_t Endpoint::digest_matches() const noexcept { return core_->digest_matches(); }
wire::TransportCounts Endpoint::counts() const { return core_->counts(); }

Result<std::vector<std::string>> addresses_of(const std::string& name, const std::string& address,
                                              const std::optional<NodeSecrets>& secrets,
                                              UtcSeconds now) {
  if (!secrets) {
    if (name.empty()) return std::vector{address};
    return Error{"'" + name + "@': without a key file no node is known by name; valid: HOST:PORT"};
  }
  std::vector<std::string> addresses;
  std::vector<std::string> names;
  for (const Certificate& known : secrets->known) {
    const bool is_revoked =
        std::ranges::count(secrets->revocations, known.serial, &Revocation::serial) > 0;
    if (known.role != Role::node || is_revoked || !check_time(known, now)) continue;
    if (known.key == secrets->keys.public_key) continue;
    if (std::ranges::count(names, known.name) == 0) names.push_back(known.name);
    if (known.name == name || name.empty()) addresses.push_back(wire::print({address, known.key}));
  }
  std::string all;
  for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
  if (names.empty())
    return Error{
        "the key file knows no node: it was issued before the key files of all nodes; issue it "
        "again"};
  if (name.empty() && names.size() > 1)
    return Error{
        "the name of the node is missing, without which its key is not known; valid: "
        "NAME@HOST:PORT with one of " +
        all};
  if (addresses.empty())
    return Error{"the key file knows no node '" + name + "'; valid: one of " + all};
  return addresses;
}

}  // namespace starling::security
