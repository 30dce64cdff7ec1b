/// Runs programs in a folder, as a user would. For tests.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "programs.hpp"
#include "tests/tools/folder.hpp"

namespace starling::program {

/// The exit code and the output of a program that has ended.
struct ProgramResult {
  /// The exit code; 128 + the signal's number if a signal ended the program.
  int code = -1;
  std::string out;
  std::string err;
};

/// Splits a command line at spaces. `''` stands for an empty argument; other quotes have no
/// meaning.
inline std::vector<std::string> words(const std::string& line) {
  std::istringstream stream{line};
  std::vector<std::string> split{std::istream_iterator<std::string>{stream}, {}};
  for (std::string& word : split)
    if (word == "''") word.clear();
  return split;
}

/// A program that runs in a folder, and its output. The constructor throws std::system_error if the
/// system cannot start a process. The destructor waits for the program's end as wait() does.
class Process {
 public:
  /// A function that the child process calls between fork() and exec(). It must not allocate
  /// memory.
  using Prepare = std::function<void()>;

  Process(const Folder& folder, const std::string& program, const std::vector<std::string>& words,
          const Prepare& prepare = {})
      : out_(folder.path().string() + ".out"), err_(folder.path().string() + ".err") {
    std::vector<std::string> command{program};
    command.insert(command.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    child_ = ::fork();
    if (child_ < 0) throw std::system_error{errno, std::generic_category(), "fork"};
    if (child_ != 0) return;
    ::signal(SIGHUP, SIG_DFL);  // tests may run under nohup
    redirect(out_, STDOUT_FILENO);
    redirect(err_, STDERR_FILENO);
    if (prepare) prepare();
    if (::chdir(folder.path().c_str()) == 0) ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (child_ > 0) wait();
    std::error_code ignored;
    std::filesystem::remove(out_, ignored);
    std::filesystem::remove(err_, ignored);
  }

  [[nodiscard]] pid_t id() const { return child_; }
  /// Sends a signal, unless the program is known to have ended.
  void signal(int number) const {
    if (child_ > 0 && !has_ended_) ::kill(child_, number);
  }

  /// These two return what the program has written to stdout and to stderr so far.
  [[nodiscard]] std::string out() const { return content(out_); }
  [[nodiscard]] std::string err() const { return content(err_); }

  /// Returns false once the program has ended. Does not wait.
  [[nodiscard]] bool is_running() {
    return child_ > 0 && !has_ended_ && !(has_ended_ = ::waitpid(child_, &status_, WNOHANG) != 0);
  }

  /// Waits until the program has ended; kills it after two minutes.
  ProgramResult wait() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes{2};
    while (is_running()) {
      if (std::chrono::steady_clock::now() > limit) ::kill(child_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    const int status = status_;
    child_ = -1;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, content(out_), content(err_)};
  }

 private:
  static void redirect(const std::string& path, int to) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
  }
  static std::string content(const std::string& path) {
    std::ifstream stream{path, std::ios::binary};
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }

  std::string out_;
  std::string err_;
  pid_t child_ = -1;
  bool has_ended_ = false;
  int status_ = 0;
};

inline ProgramResult run(const Folder& folder, const std::string& program,
                         const std::vector<std::string>& arguments) {
  return Process{folder, program, arguments}.wait();
}

/// Returns the content of a safetensors file, changed: the element with index `element` of the
/// float32 tensor `tensor` is NaN, and the checksum is gone.
inline std::string with_nan(std::string file, const std::string& tensor, std::size_t element) {
  file.replace(file.find("crc32"), 5, "other");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const auto offsets = file.find("\"data_offsets\":[", file.find("\"" + tensor + "\":{"));
  const std::size_t begin = 8 + length + std::stoull(file.substr(offsets + 16));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(file.data() + begin + 4 * element, &nan, 4);
  return file;
}

/// Returns the content of a safetensors file, changed: the element with index `element` of the
/// uint64 tensor `tensor` is `number`, and the checksum is gone.
inline std::string with_number(std::string file, const std::string& tensor, std::size_t element,
                               std::uint64_t number) {
  file.replace(file.find("crc32"), 5, "other");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const auto offsets = file.find("\"data_offsets\":[", file.find("\"" + tensor + "\":{"));
  const std::size_t begin = 8 + length + std::stoull(file.substr(offsets + 16));
  std::memcpy(file.data() + begin + 8 * element, &number, 8);
  return file;
}

#ifdef STARLING_PROGRAM
/// Runs `starling` with the arguments in `line`, which words() splits.
inline ProgramResult starling(const Folder& folder, const std::string& line) {
  return run(folder, STARLING_PROGRAM, words(line));
}

/// The command line of a job that takes a fraction of a second and always gives the same model.
/// Ends with a space, so that flags can be appended.
inline constexpr const char* small_job =
    "train --data digits:n=300 --model softmax --mode central --barrier bsp --workers 2 --quiet ";
#endif

/// Returns a model for `--model` whose parameters take half of this machine's memory. Training
/// needs several times as much, so that jobs with this model must be refused.
inline std::string model_of_half_the_memory() {
  const double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const auto hidden = static_cast<std::uint64_t>(bytes / 2 / sizeof(float) / (784 + 1 + 10));
  return "mlp:784-" + std::to_string(hidden) + "-10";
}

}  // namespace starling::program
