#include "starling/actor/fabric/endpoint.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "starling/actor/fabric/libfabric.hpp"
#include "starling/base/text.hpp"

namespace starling::fabric {
namespace {

using Clock = std::chrono::steady_clock;

/// The interface of libfabric 1.17, which later versions keep.
constexpr std::uint32_t api_version = FI_VERSION(1, 17);
constexpr std::string_view shm_prefix = "fi_shm://";

struct FreeInfo {
  void operator()(fi_info* info) const { libfabric()->freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

struct Close {
  template <class T>
  void operator()(T* object) const {
    (void)fi_close(&object->fid);
  }
};
template <class T>
using Object = std::unique_ptr<T, Close>;

/// A write, and what the provider uses until it has ended.
struct Write {
  /// Its address names the write in the completion queue.
  fi_context2 context{};
  std::shared_ptr<const void> owner;
  Object<fid_mr> registered;
};

/// An entry of the completion queue.
struct Ended {
  /// The address of a Write's context; null if an error names no write.
  const void* context = nullptr;
  WriteResult result = WriteResult::failed;
};

Error error_of(Provider provider, const std::string& action, int code) {
  return Error{"provider " + std::string{print(provider)} + " of libfabric cannot " + action +
               ": " + libfabric()->strerror(code < 0 ? -code : code)};
}

/// Returns the prefix of the names of the endpoints of all processes in this PID namespace.
std::string name_prefix() {
  std::array<char, 64> space{};
  (void)::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  std::string prefix = "starling-";
  for (const char c : std::string{space.data()})
    if (c >= '0' && c <= '9') prefix += c;
  return prefix + "-";
}
std::string name_of(pid_t process) { return name_prefix() + std::to_string(process); }

/// Removes the names of endpoints whose processes were killed. The system keeps these names, and
/// the memory behind them, in /dev/shm.
void remove_dead_names() {
  const std::string prefix = name_prefix();
  std::error_code ignored;
  std::filesystem::directory_iterator at{"/dev/shm", ignored};
  for (; !ignored && at != std::filesystem::directory_iterator{}; at.increment(ignored)) {
    const std::string name = at->path().filename();
    if (!name.starts_with(prefix)) continue;
    const auto end = name.find(':', prefix.size());
    const auto process = parse_count(name.substr(prefix.size(), end - prefix.size()));
    if (process && *process <= INT32_MAX && ::kill(static_cast<pid_t>(*process), 0) != 0 &&
        errno == ESRCH)
      (void)::shm_unlink(name.c_str());
  }
}

/// The least free bytes in /dev/shm with which an endpoint is opened. The system keeps the
/// endpoint's memory there. A process that writes to this memory ends with a signal if /dev/shm is
/// full.
constexpr std::uint64_t shared_bytes_min = std::uint64_t{128} << 20U;

/// Returns an Error if /dev/shm has too few free bytes for this endpoint and some others.
Result<void> check_shared_memory() {
  struct statvfs space {};
  if (::statvfs("/dev/shm", &space) != 0)
    return Error{std::string{"provider shm needs /dev/shm: "} + std::strerror(errno)};
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (free >= shared_bytes_min) return {};
  return Error{"provider shm needs " + std::to_string(shared_bytes_min >> 20U) +
               " MiB in /dev/shm, but only " + std::to_string(free >> 20U) +
               " MiB are free; valid: more free memory there, or another provider"};
}

Result<Info> find(Provider provider, const std::string& source) {
  if (!libfabric())
    return Error{libfabric().error()}.within("provider " + std::string{print(provider)});
  const Info hints{libfabric()->dupinfo(nullptr)};
  if (!hints) return Error{"no memory for libfabric"};
  hints->caps = FI_MSG | FI_RMA;
  hints->ep_attr->type = FI_EP_RDM;
  // Asks for addresses instead of offsets, and for writes in any order: only then does the writer
  // copy under shm without the help of the receiver.
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->tx_attr->msg_order = 0;
  hints->rx_attr->msg_order = 0;
  hints->tx_attr->size = Endpoint::writes_max + 8;
  hints->rx_attr->size = Endpoint::writes_max + 8;
  const std::string name{provider == Provider::shm   ? "shm"
                         : provider == Provider::tcp ? "tcp;ofi_rxm"
                                                     : "verbs;ofi_rxm"};
  hints->fabric_attr->prov_name = ::strdup(name.c_str());
  fi_info* found = nullptr;
  const int code =
      libfabric()->getinfo(api_version, source.c_str(), nullptr, FI_SOURCE, hints.get(), &found);
  if (code != 0) return error_of(provider, "be used on this machine", code);
  return Info{found};
}

}  // namespace

class Endpoint::Impl {
 public:
  explicit Impl(Provider provider) : provider_(provider) { late_.reserve(late_writes_max); }

  Result<void> open(const std::string& host) {
    if (provider_ == Provider::shm) {
      remove_dead_names();
      if (auto has_space = check_shared_memory(); !has_space) return has_space;
    }
    auto info = find(provider_, provider_ == Provider::shm ? name_of(::getpid()) : host);
    if (!info) return std::move(info).error();
    info_ = *std::move(info);
    if (auto opened =
            open(fabric_, "be opened",
                 [&](auto** out) { return libfabric()->fabric(info_->fabric_attr, out, nullptr); });
        !opened)
      return opened;
    if (auto opened =
            open(domain_, "open a domain",
                 [&](auto** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
        !opened)
      return opened;
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    cq_attr.size = 2 * Endpoint::writes_max;
    cq_attr.wait_obj = provider_ == Provider::shm ? FI_WAIT_NONE : FI_WAIT_UNSPEC;
    if (auto opened =
            open(queue_, "open a completion queue",
                 [&](auto** out) { return fi_cq_open(domain_.get(), &cq_attr, out, nullptr); });
        !opened)
      return opened;
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    if (auto opened =
            open(addresses_, "open an address table",
                 [&](auto** out) { return fi_av_open(domain_.get(), &av_attr, out, nullptr); });
        !opened)
      return opened;
    const KeptHandlers kept;
    if (auto opened =
            open(endpoint_, "open an endpoint",
                 [&](auto** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
        !opened)
      return opened;
    int code = fi_ep_bind(endpoint_.get(), &addresses_->fid, 0);
    if (code == 0) code = fi_ep_bind(endpoint_.get(), &queue_->fid, FI_TRANSMIT | FI_RECV);
    if (code == 0) code = fi_enable(endpoint_.get());
    if (code != 0) return error_of(provider_, "enable an endpoint", code);
    std::size_t size = 0;
    (void)fi_getname(&endpoint_->fid, nullptr, &size);
    name_.resize(size);
    code = fi_getname(&endpoint_->fid, name_.data(), &size);
    if (code != 0) return error_of(provider_, "return the name of an endpoint", code);
    if (provider_ == Provider::shm) name_.resize(std::min(name_.find('\0'), name_.size()));
    return {};
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  Result<RemoteMemory> register_memory(std::span<std::byte> memory) {
    Object<fid_mr> region;
    if (auto opened = open(region, "register memory",
                           [&](auto** out) {
                             return fi_mr_reg(domain_.get(), memory.data(), memory.size(),
                                              FI_REMOTE_WRITE, 0, ++last_key_, 0, out, nullptr);
                           });
        !opened)
      return std::move(opened).error();
    const bool has_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    const RemoteMemory remote{has_addresses ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0,
                              fi_mr_key(region.get())};
    regions_.push_back(std::move(region));
    return remote;
  }

  Result<std::uint64_t> add(const std::string& name) {
    const bool is_valid = provider_ == Provider::shm
                              ? name.starts_with(shm_prefix) && name.size() <= name_bytes_max &&
                                    name.find('/', shm_prefix.size()) == std::string::npos
                              : name.size() == name_.size();  // the address of a socket
    if (!is_valid) return Error{"the name of an endpoint is not valid"};
    fi_addr_t endpoint = FI_ADDR_UNSPEC;
    const int added = fi_av_insert(addresses_.get(), name.c_str(), 1, &endpoint, 0, nullptr);
    if (added != 1 || endpoint == FI_ADDR_UNSPEC)
      return error_of(provider_, "add an endpoint", added < 0 ? added : FI_EINVAL);
    return endpoint;
  }

  void remove(std::uint64_t endpoint) {
    if (provider_ != Provider::shm) return;
    fi_addr_t address = endpoint;
    (void)fi_av_remove(addresses_.get(), &address, 1, 0);
  }

  WriteResult write(std::uint64_t endpoint, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner, const RemoteMemory& to, std::uint64_t offset,
                    std::chrono::milliseconds timeout) {
    if (late_.size() >= late_writes_max) (void)take_entry();
    if (late_.size() >= late_writes_max) return WriteResult::busy;
    auto write = std::make_unique<Write>();
    write->owner = std::move(owner);
    if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
      fid_mr* registered = nullptr;
      if (fi_mr_reg(domain_.get(), bytes.data(), bytes.size(), FI_WRITE, 0, ++last_key_, 0,
                    &registered, nullptr) != 0)
        return WriteResult::failed;
      write->registered.reset(registered);
    }
    iovec from{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const fi_rma_iov place{to.address + offset, bytes.size(), to.key};
    void* descriptor = write->registered ? fi_mr_desc(write->registered.get()) : nullptr;
    fi_msg_rma message{};
    message.msg_iov = &from;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = endpoint;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.context = &write->context;
    // Under shm the call returns after the copy. If shm had to confirm delivery, the receiver would
    // make the copy.
    const std::uint64_t flags = provider_ == Provider::shm ? 0 : FI_DELIVERY_COMPLETE;
    const auto ends_at = Clock::now() + timeout;
    for (ssize_t code = 0;;) {
      code = fi_writemsg(endpoint_.get(), &message, flags | FI_COMPLETION);
      if (code == 0) break;
      if (code != -FI_EAGAIN) return WriteResult::failed;
      if (provider_ == Provider::shm || Clock::now() > ends_at) return WriteResult::busy;
      progress(std::chrono::milliseconds{1});
    }
    if (const auto result = wait(*write, ends_at)) return *result;
    late_.push_back(std::move(write));
    return WriteResult::failed;
  }

  void progress(std::chrono::milliseconds timeout) { (void)take_entry(timeout); }

  void hide_name() {
    if (provider_ == Provider::shm) (void)::shm_unlink(name_.c_str() + shm_prefix.size());
  }

 private:
  template <class T, class Open>
  Result<void> open(Object<T>& object, const char* action, Open run) {
    T* opened = nullptr;
    const int code = run(&opened);
    if (code != 0) return error_of(provider_, action, code);
    object.reset(opened);
    return {};
  }

  /// Takes an entry from the completion queue, and waits for it up to `timeout`. Drops the late
  /// write that the entry ends. Returns nothing if there is no entry.
  std::optional<Ended> take_entry(std::chrono::milliseconds timeout = {}) {
    fi_cq_entry entry{};
    const auto count = timeout.count() == 0 ? fi_cq_read(queue_.get(), &entry, 1)
                                            : fi_cq_sread(queue_.get(), &entry, 1, nullptr,
                                                          static_cast<int>(timeout.count()));
    Ended ended;
    if (count > 0) {
      ended = {entry.op_context, WriteResult::complete};
    } else if (count == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      (void)fi_cq_readerr(queue_.get(), &error, 0);
      ended.context = error.op_context;
    } else {
      return std::nullopt;
    }
    std::erase_if(late_, [&](const auto& write) { return &write->context == ended.context; });
    return ended;
  }

  /// Returns nothing if the write has not ended in time.
  std::optional<WriteResult> wait(const Write& write, Clock::time_point ends_at) {
    const bool is_shm = provider_ == Provider::shm;
    for (;;) {
      const auto ended = take_entry();
      // shm has completed the write already, unless the kernel forbids the copy. An entry for that
      // error names no write.
      if (ended && (ended->context == &write.context || (is_shm && ended->context == nullptr)))
        return ended->result;
      if ((!ended && is_shm) || Clock::now() > ends_at) return std::nullopt;
    }
  }

  const Provider provider_;
  Info info_;
  std::uint64_t last_key_ = 0;
  std::string name_;
  Object<fid_fabric> fabric_;
  Object<fid_domain> domain_;
  Object<fid_cq> queue_;
  Object<fid_av> addresses_;
  std::vector<Object<fid_mr>> regions_;
  /// The writes that have timed out and have not ended.
  std::vector<std::unique_ptr<Write>> late_;
  /// Declared last so that it is closed first. This discards the late writes, so that nothing reads
  /// their memory any more.
  Object<fid_ep> endpoint_;
};

Result<std::unique_ptr<Endpoint>> Endpoint::open(Provider provider, const std::string& host) {
  auto impl = std::make_unique<Impl>(provider);
  if (auto opened = impl->open(host); !opened) return std::move(opened).error();
  return std::unique_ptr<Endpoint>{new Endpoint{std::move(impl)}};
}

Endpoint::Endpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Endpoint::~Endpoint() = default;

const std::string& Endpoint::name() const noexcept { return impl_->name(); }
Result<RemoteMemory> Endpoint::register_memory(std::span<std::byte> memory) {
  return impl_->register_memory(memory);
}
Result<std::uint64_t> Endpoint::add(const std::string& name) { return impl_->add(name); }
void Endpoint::remove(std::uint64_t endpoint) { impl_->remove(endpoint); }
WriteResult Endpoint::write(std::uint64_t endpoint, std::span<const std::byte> bytes,
                            std::shared_ptr<const void> owner, const RemoteMemory& to,
                            std::uint64_t offset, std::chrono::milliseconds timeout) {
  return impl_->write(endpoint, bytes, std::move(owner), to, offset, timeout);
}
void Endpoint::progress(std::chrono::milliseconds timeout) { impl_->progress(timeout); }
void Endpoint::hide_name() { impl_->hide_name(); }

}  // namespace starling::fabric
