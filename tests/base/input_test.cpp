#include "starling/base/input.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "starling/base/memory.hpp"

namespace starling {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Input : public testing::Test {
 protected:
  Input() {
    std::string name = (std::filesystem::temp_directory_path() / "starling-input-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~Input() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string write(const char* name, const std::string& content) const {
    std::ofstream{path(name), std::ios::binary} << content;
    return path(name);
  }
  [[nodiscard]] std::string make_pipe() const {
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    return path("pipe");
  }

  std::filesystem::path folder_;
};

/// Returns the error of reading `path`.
std::string read_error(const std::string& path) {
  const auto text = read_text(path, 100);
  return text ? "no error" : text.error().message;
}

/// Limits reading to regular files until the returned scope ends.
[[nodiscard]] ReadScope make_regular_only_scope() {
  ReadLimits limits;
  limits.refuses_pipes = true;
  return ReadScope{std::move(limits)};
}

TEST_F(Input, ReadsARegularFile) {
  EXPECT_EQ(read_text(write("a", "some text"), 9).value(), "some text");
  EXPECT_EQ(read_text(write("b", ""), 9).value(), "");
  EXPECT_EQ(InputDescriptor::open(path("a"))->size(), 9U);
  EXPECT_EQ(read_text(path("a"), 8, "less").error().message,
            path("a") + ": is larger than 8 bytes; valid: less");
}

TEST_F(Input, RefusesFoldersDevicesAndPipesWithoutWaiting) {
  const auto started_at = Clock::now();
  EXPECT_EQ(read_error(path("none")), path("none") + ": no such file");
  EXPECT_EQ(read_error(folder_.string()), folder_.string() + ": is a folder, not a file");
  EXPECT_EQ(read_error("/dev/zero"),
            "/dev/zero: is a character device; valid: a regular file or a pipe");
  EXPECT_EQ(read_error("/dev/ptmx"),
            "/dev/ptmx: is a character device; valid: a regular file or a pipe");
  const std::string file = make_pipe();
  const auto scope = make_regular_only_scope();
  EXPECT_EQ(read_error(file), file + ": is a pipe; valid: a regular file");
  EXPECT_EQ(read_error("/dev/null"), "/dev/null: is a character device; valid: a regular file");
  EXPECT_LT(Clock::now() - started_at, 1s);
}

TEST_F(Input, RefusesWithheldFilesByAnyPath) {
  const std::string file = write("a.key", "x");
  EXPECT_TRUE(InputDescriptor::open(file));
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  withhold_file(info.st_dev, info.st_ino);
  // Stays open, so that no file of a later test in this process gets the number of this one.
  ASSERT_GE(::open(file.c_str(), O_RDONLY | O_CLOEXEC), 0);
  std::filesystem::create_symlink(file, path("link"));
  EXPECT_EQ(read_error(path("link")),
            path("link") + ": is a key file that this process uses; valid: a file of data");
  EXPECT_FALSE(InputDescriptor::open(file));
}

TEST_F(Input, RefusesASocket) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string file = path("s");
  std::strncpy(address.sun_path, file.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(read_error(file), "cannot open '" + file + "': No such device or address");
  ::close(socket);
}

TEST_F(Input, WaitsForTheWriterOfAPipe) {
  const std::string file = make_pipe();
  std::jthread writer{[&] {
    const int fd = ::open(file.c_str(), O_WRONLY);
    for (const char* part : {"one ", "two"}) {
      std::this_thread::sleep_for(30ms);
      EXPECT_GT(::write(fd, part, std::strlen(part)), 0);
    }
    ::close(fd);
  }};
  EXPECT_EQ(read_text(file, 100).value(), "one two");
}

TEST_F(Input, StopsWaitingForAWriterAtTheDeadlineOrOnRequest) {
  const std::string file = make_pipe();
  ReadLimits limits;
  limits.deadline = Clock::now() + 50ms;
  {
    const ReadScope scope{limits};
    EXPECT_EQ(read_error(file), file + ": reading took too long");
  }
  std::stop_source stop;
  limits = {};
  limits.stop = stop.get_token();
  const ReadScope scope{limits};
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  }};
  const auto started_at = Clock::now();
  EXPECT_EQ(read_error(file), file + ": reading was cancelled");
  EXPECT_LT(Clock::now() - started_at, 1s);
}

TEST_F(Input, UsesTheLimitsOfTheInnermostScope) {
  EXPECT_FALSE(ReadScope::limits().refuses_pipes);
  {
    const auto outer = make_regular_only_scope();
    {
      const ReadScope inner{{}};
      EXPECT_FALSE(ReadScope::limits().refuses_pipes);
    }
    EXPECT_TRUE(ReadScope::limits().refuses_pipes);
    std::jthread{[] {
      EXPECT_FALSE(ReadScope::limits().refuses_pipes) << "on another thread";
    }}.join();
  }
  EXPECT_FALSE(ReadScope::limits().refuses_pipes);
}

TEST(ReadBudget, IsAThirdOfTheFreeMemory) {
  const ReadBudget budget{"x.csv"};
  EXPECT_TRUE(budget.check_total(1U << 20U));
  const auto refused = budget.check_total(static_cast<std::uint64_t>(free_memory_bytes()));
  ASSERT_FALSE(refused);
  const std::string& text = refused.error().message;
  double needed = 0;
  double valid = 0;
  double free = 0;
  ASSERT_EQ(std::sscanf(text.c_str(),
                        "x.csv: would take %lf GB of memory; valid: up to %lf GB, a third of the "
                        "%lf GB that are free",
                        &needed, &valid, &free),
            3)
      << text;
  EXPECT_NEAR(3 * valid, free, 0.2) << "the numbers are rounded to 0.1";
}

TEST(ReadBudget, IsTheLimitOfTheScope) {
  ReadLimits limits;
  limits.memory_max = 8'000'000;
  const ReadScope scope{limits};
  ReadBudget budget{"x.csv"};
  EXPECT_TRUE(budget.check_total(8'000'000));
  EXPECT_EQ(budget.check_total(9'000'000).error().message,
            "x.csv: would take 0.009 GB of memory; valid: up to 0.008 GB");
  std::uint64_t held_bytes = 0;
  while (held_bytes < 100'000'000 && budget.check_growth(held_bytes)) held_bytes += 1000;
  EXPECT_GE(held_bytes, 8'000'000U);
  EXPECT_LE(held_bytes, 8'500'000U + 1000) << "checked too rarely";
}

}  // namespace
}  // namespace starling
