/// Runs a program of data sets step by step, and gives it memory instead of files.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "starling/engine/flow/plan/runner.hpp"
#include "starling/engine/flow/plan/task_memory.hpp"

namespace starling::core {

/// Memory that holds everything up to a limit, and files that are memory too.
class TestTaskMemory : public flow::TaskMemory {
 public:
  explicit TestTaskMemory(std::size_t memory_bytes) : memory_bytes_(memory_bytes) {}

  std::unique_ptr<flow::Reservation> reserve(std::size_t bytes) override {
    if (*reserved_ + bytes > memory_bytes_) return nullptr;
    *reserved_ += bytes;
    return std::make_unique<Reserved>(reserved_, bytes);
  }
  std::shared_ptr<flow::SpillFile> make_spill_file() override { return std::make_shared<File>(); }
  [[nodiscard]] std::size_t buffer_bytes() const override { return 400; }
  [[nodiscard]] std::size_t reserved() const { return *reserved_; }

 private:
  struct Reserved : flow::Reservation {
    Reserved(std::shared_ptr<std::size_t> all, std::size_t size)
        : reserved(std::move(all)), bytes(size) {}
    ~Reserved() override { *reserved -= bytes; }
    std::shared_ptr<std::size_t> reserved;
    std::size_t bytes;
  };
  struct File : flow::SpillFile {
    std::uint64_t append(std::span<const std::byte> more) override {
      bytes.insert(bytes.end(), more.begin(), more.end());
      return bytes.size() - more.size();
    }
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    }
    void release(std::uint64_t offset, std::uint64_t size) noexcept override {
      // So that a record which is read after all is wrong.
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
      std::fill_n(first, size, std::byte{0xff});
    }
    std::vector<std::byte> bytes;
  };

  std::size_t memory_bytes_;
  std::shared_ptr<std::size_t> reserved_ = std::make_shared<std::size_t>(0);
};

/// A program, which returns a text that all members must agree on.
using FlowProgram = std::function<Result<std::string>(const std::shared_ptr<flow::Runner>&)>;

/// Runs a program on a thread of its own, but only while its owner waits for it.
class ProgramThread : public flow::Runner {
 public:
  struct Request {
    flow::StagePtr stage;
    bool gathers = true;
    /// The stage that keep() says is not needed any more.
    flow::StagePtr former = nullptr;
  };
  using Outputs = Result<std::vector<flow::Output>>;

  explicit ProgramThread(FlowProgram program) : program_(std::move(program)) {}

  /// Lets the program return, because its member is gone.
  void kill() {
    while (thread_.joinable() && !has_returned()) resume(Error{"killed"});
    if (thread_.joinable()) thread_.join();
  }

  /// Starts the program; `self` is this object.
  void start(const std::shared_ptr<flow::Runner>& self) {
    thread_ = std::jthread{[this, runner = std::weak_ptr{self}] {
      outcome_ = program_(runner.lock());
      waits_.release();
    }};
    waits_.acquire();
  }
  /// Returns from the run() that the program waits in, and waits until it waits again or returns.
  void resume(Outputs outputs) {
    request_.reset();
    outputs_.emplace(std::move(outputs));
    goes_on_.release();
    waits_.acquire();
  }
  /// The result that the program waits for; nothing once it has returned.
  [[nodiscard]] const std::optional<Request>& request() const { return request_; }
  [[nodiscard]] bool has_returned() const { return outcome_.has_value(); }
  [[nodiscard]] const Result<std::string>& outcome() const { return *outcome_; }

  Outputs run(const flow::StagePtr& last) override { return wait({last}); }
  Result<flow::StagePtr> keep(const flow::StagePtr& stage, const flow::StagePtr& former) override {
    if (auto done = wait({stage, false, former}); !done) return std::move(done).error();
    return stage;
  }
  [[nodiscard]] flow::Part default_parts() const override { return 3; }

 private:
  Outputs wait(Request request) {
    request_ = std::move(request);
    waits_.release();
    goes_on_.acquire();
    return *std::exchange(outputs_, std::nullopt);
  }

  FlowProgram program_;
  std::binary_semaphore waits_{0};
  std::binary_semaphore goes_on_{0};
  std::optional<Request> request_;
  std::optional<Outputs> outputs_;
  std::optional<Result<std::string>> outcome_;
  std::jthread thread_;
};

}  // namespace starling::core
