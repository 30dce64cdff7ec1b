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

/// After a peer has been silent for this long, we introduce ourselves to it again.
constexpr auto knows_us_for = 10s;
constexpr auto introduce_again_after = 200ms;
/// The most bytes of frames that wait for one peer to know us.
constexpr std::size_t held_bytes_max = std::size_t{1} << 20U;
/// The most revocations in one frame.
constexpr std::size_t part_max = 1000;
/// The least time between two lists of all revocations to one peer. Nodes compare every second: a
/// peer that asks sooner gets the list at its next comparison.
constexpr auto lists_apart = 900ms;
/// The most such lists that are sent to all peers together within `lists_apart`.
constexpr std::size_t lists_max = 64;
/// The most peers remembered. Beyond it all are forgotten, and we introduce ourselves to them
/// again.
constexpr std::size_t peers_max = 8192;

}  // namespace

bool Sender::may_be_at(const std::string& address) const {
  const auto peer = wire::parse_peer(address);
  return peer && peer->key == key;
}

class Endpoint::Core {
 public:
  Core(EndpointOptions options, Receiver receiver)
      : options_(std::move(options)), receiver_(std::move(receiver)) {}

  Result<void> open() {
    wire::TransportOptions wire;
    wire.listen = options_.listen;
    if (const auto& own = options_.secrets) {
      admission_.emplace(own->cluster, own->handshake_keys.public_key);
      const UtcSeconds now = options_.utc_now();
      (void)admission_->merge(own->revocations, now);
      if (auto valid = admission_->learn(own->certificate, now); !valid) return valid;
      // The certificates of others may have ended since the file was written.
      for (const Certificate& other : own->known) (void)admission_->learn(other, now);
      wire.keys = own->keys;
      wire.handshake_keys = own->handshake_keys;
      wire.admits = [this](const Key& key) { return admission_->admits(key, options_.utc_now()); };
    }
    auto transport =
        wire::Transport::open(wire, [this](const wire::Incoming& incoming) { take(incoming); });
    if (!transport) return std::move(transport).error();
    wire::Peer self{options_.advertise.empty() ? (*transport)->address() : options_.advertise,
                    std::nullopt};
    if (options_.secrets) self.key = options_.secrets->keys.public_key;
    address_ = wire::print(self);
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
      Acquaintance* known = acquaintance(address);
      if (known == nullptr) return;
      peer = known->peer;
      if (admission_ && !knows_us(*peer.key)) {
        for (wire::Frame& frame : frames) known->hold(traffic_class, std::move(frame));
        const auto now = Clock::now();
        if (now - known->introduced < introduce_again_after) return;
        known->introduced = now;
        return introduce(peer, false);
      }
    }
    if (!admission_ || is_member(*peer.key)) transport_->send(peer, traffic_class, frames);
  }

  void forget(const std::string& address) {
    const auto peer = wire::parse_peer(address);
    if (!peer) return;
    transport_->forget(*peer);
    const std::lock_guard lock{mutex_};
    peers_.erase(address);
  }

  bool is_member(const Key& key) const {
    return admission_->access_of(key, options_.utc_now()) == KeyAccess::member;
  }

  std::string name_of(const Key& key) const {
    const auto certificate = admission_->certificate_of(key, options_.utc_now());
    return certificate ? certificate->name : std::string{};
  }

  void revoke(std::span<const Revocation> revocations) {
    if (!admission_) return;
    const Merged merged = admission_->merge(revocations, options_.utc_now());
    if (merged.added.empty()) return;
    if (options_.on_revoked) options_.on_revoked(merged);
    std::vector<std::string> in_touch;
    {
      const std::lock_guard lock{mutex_};
      for (auto peer = peers_.begin(); peer != peers_.end();) {
        const bool falls = std::ranges::count(merged.revoked, *peer->second.peer.key) > 0;
        if (falls)
          transport_->forget(peer->second.peer);
        else
          in_touch.push_back(peer->first);
        peer = falls ? peers_.erase(peer) : std::next(peer);
      }
    }
    for (const std::string& address : in_touch) send_all(address, merged.added);
  }

  void compare(const std::string& address) {
    if (admission_)
      send_credentials(address, RevocationsDigest{admission_->revocations_digest(), false});
  }

  [[nodiscard]] std::uint64_t agreements() const noexcept { return agreements_; }
  [[nodiscard]] wire::TransportCounts counts() const { return transport_->counts(); }

 private:
  struct Acquaintance {
    wire::Peer peer;
    Clock::time_point introduced{};
    /// When the list of all revocations was sent to the peer last.
    Clock::time_point list_sent{};
    std::vector<std::pair<wire::TrafficClass, wire::Frame>> held{};
    std::size_t held_bytes = 0;

    void hold(wire::TrafficClass traffic_class, wire::Frame frame) {
      const std::size_t bytes = frame.head.size() + frame.body_size();
      if (held_bytes + bytes > held_bytes_max) return;
      held_bytes += bytes;
      held.emplace_back(traffic_class, std::move(frame));
    }
  };

  /// Requires: the lock is held.
  bool knows_us(const Key& key) const {
    const auto heard = heard_.find(key);
    return heard != heard_.end() && Clock::now() - heard->second < knows_us_for;
  }

  /// Requires: the lock is held. Null where the address cannot be used.
  Acquaintance* acquaintance(const std::string& address) {
    if (const auto known = peers_.find(address); known != peers_.end()) return &known->second;
    auto peer = wire::parse_peer(address);
    if (!peer || peer->key.has_value() != admission_.has_value()) return nullptr;
    if (peers_.size() >= peers_max) {
      peers_.clear();
      heard_.clear();
    }
    return &peers_.emplace(address, Acquaintance{*std::move(peer)}).first->second;
  }

  void introduce(const wire::Peer& to, bool answers) {
    transport_->send(
        to, wire::TrafficClass::handshake,
        encode({address_, Introduction{options_.secrets->certificate, answers,
                                       prove(spoken(address_, answers),
                                             options_.secrets->keys.secret_key, *to.key)}}));
  }
  /// The text that the proof of an introduction covers.
  static std::string spoken(const std::string& address, bool answers) {
    return (answers ? "I know you, from " : "I am, at ") + address;
  }

  template <class Body>
  void send_credentials(const std::string& address, Body body) {
    wire::Frame frame = encode({address_, std::move(body)});
    send(address, wire::TrafficClass::control, {&frame, 1});
  }

  void send_all(const std::string& address, std::span<const Revocation> all) {
    for (; !all.empty(); all = all.subspan(std::min(part_max, all.size()))) {
      const auto part = all.first(std::min(part_max, all.size()));
      send_credentials(address, Revocations{{part.begin(), part.end()}});
    }
  }

  // --- on the transport's thread ---

  void take(const wire::Incoming& incoming) {
    if (!is_open_) return;
    if (!admission_) return receiver_(incoming.frame, {});
    const UtcSeconds now = options_.utc_now();
    const auto role = admission_->role_of(*incoming.key, now);
    const Sender sender{incoming.key, role.value_or(Role::client)};
    if (role) {
      const std::lock_guard lock{mutex_};
      heard_[*incoming.key] = Clock::now();
    }
    const auto kind = wire::kind_of(incoming.frame);
    if (!kind || *kind != wire::Kind::credentials) {
      if (role) receiver_(incoming.frame, sender);
      return;
    }
    const auto message = decode_credentials(incoming.frame);
    if (!message) return;
    if (const auto* introduction = std::get_if<Introduction>(&message->body))
      return take(message->address, *introduction, now);
    if (!role || !sender.may_be_at(message->address)) return;
    if (const auto* digest = std::get_if<RevocationsDigest>(&message->body))
      take(message->address, *digest);
    else
      revoke(std::get<Revocations>(message->body).revocations);
  }

  void take(const std::string& address, const Introduction& introduction, UtcSeconds now) {
    const auto peer = wire::parse_peer(address);
    if (!peer || peer->key != introduction.certificate.key ||
        introduction.proof != prove(spoken(address, introduction.answers),
                                    options_.secrets->keys.secret_key, *peer->key) ||
        !admission_->learn(introduction.certificate, now))
      return;
    std::vector<std::pair<wire::TrafficClass, wire::Frame>> held{};
    {
      const std::lock_guard lock{mutex_};
      if (introduction.answers) {
        heard_[*peer->key] = Clock::now();
        if (Acquaintance* known = acquaintance(address)) {
          held.swap(known->held);
          known->held_bytes = 0;
        }
      } else if (heard_.erase(*peer->key) > 0) {
        // The peer has started again, and no longer admits the connections that there are.
        transport_->forget(*peer);
      }
    }
    for (auto& [traffic_class, frame] : held)
      transport_->send(*peer, traffic_class, std::move(frame));
    if (!introduction.answers) introduce(*peer, true);
  }

  void take(const std::string& address, const RevocationsDigest& digest) {
    const std::uint64_t own = admission_->revocations_digest();
    if (digest.digest == own) {
      ++agreements_;
    } else if (may_send_list(address)) {
      send_all(address, admission_->revocations_since(0, SIZE_MAX).revocations);
    }
    if (!digest.answers) send_credentials(address, RevocationsDigest{own, true});
  }

  /// Limits how often a peer gets the list, which is much longer than the wrong digest that asks
  /// for it.
  bool may_send_list(const std::string& address) {
    const std::lock_guard lock{mutex_};
    const auto now = Clock::now();
    if (now - lists_since_ >= lists_apart) {
      lists_since_ = now;
      lists_sent_ = 0;
    }
    Acquaintance* peer = acquaintance(address);
    if (peer == nullptr || lists_sent_ >= lists_max || now - peer->list_sent < lists_apart)
      return false;
    peer->list_sent = now;
    ++lists_sent_;
    return true;
  }

  const EndpointOptions options_;
  const Receiver receiver_;
  std::optional<Admission> admission_;
  std::string address_;
  std::atomic<std::uint64_t> agreements_ = 0;

  std::mutex mutex_;
  /// When the current period of `lists_apart` began; `lists_sent_` counts the lists in it.
  Clock::time_point lists_since_{};
  std::size_t lists_sent_ = 0;
  std::unordered_map<std::string, Acquaintance> peers_;
  std::unordered_map<Key, Clock::time_point, wire::KeyHash> heard_;
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
bool Endpoint::admits(const Key& key) const { return core_->is_member(key); }
std::string Endpoint::name_of(const Key& key) const { return core_->name_of(key); }
void Endpoint::revoke(std::span<const Revocation> revocations) { core_->revoke(revocations); }
void Endpoint::compare_revocations(const std::string& address) { core_->compare(address); }
std::uint64_t Endpoint::agreements() const noexcept { return core_->agreements(); }
wire::TransportCounts Endpoint::counts() const { return core_->counts(); }

Result<std::vector<std::string>> addresses_of(const std::string& name, const std::string& address,
                                              const std::optional<NodeSecrets>& secrets,
                                              UtcSeconds now) {
  if (!secrets) {
    if (name.empty()) return std::vector{address};
    return Error{"'" + name + "@': without a key file nobody is known by name; valid: HOST:PORT"};
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
    return Error{"the key file knows no node: it was issued before all others; issue it again"};
  if (name.empty() && names.size() > 1)
    return Error{
        "which node is there must be said, for its key to be known; valid: NAME@HOST:PORT"
        " with one of " +
        all};
  if (addresses.empty())
    return Error{"'" + name + "' is no node that the key file knows; valid: one of " + all};
  return addresses;
}

}  // namespace starling::security
