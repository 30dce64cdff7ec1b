#include "starling/base/mapped_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace starling {
namespace {

class MappedFiles : public testing::Test {
 protected:
  MappedFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "starling-mapped-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~MappedFiles() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string write(const char* name, const std::string& content) const {
    const std::string path = (folder_ / name).string();
    std::ofstream{path, std::ios::binary} << content;
    return path;
  }
  [[nodiscard]] static std::string error_of(const std::string& path) {
    const auto file = MappedFile::open(path);
    return file ? "no error" : file.error().message;
  }

  std::filesystem::path folder_;
};

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFiles, HoldTheContentAsLongAsTheyAreOpen) {
  const std::string content(100'000, 'x');
  const std::string path = write("a", content + "y");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  std::filesystem::remove(path);
  EXPECT_EQ(text_of(**file), content + "y");
  (*file)->will_need((*file)->bytes().subspan(99'000, 1001));
  (*file)->will_need({});
  EXPECT_EQ(text_of(**file).back(), 'y');
}

TEST_F(MappedFiles, MayBeEmpty) {
  const auto file = MappedFile::open(write("empty", ""));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST_F(MappedFiles, AreRegularFilesThatMayBeRead) {
  EXPECT_EQ(error_of((folder_ / "none").string()), (folder_ / "none").string() + ": no such file");
  EXPECT_EQ(error_of(folder_.string()), folder_.string() + ": is a folder, not a file");
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe), pipe + ": is a pipe; valid: a regular file");
}

TEST_F(MappedFiles, ThatAreCutShortEndTheProcessWithAMessage) {
  const std::string path = write("short", std::string(100'000, 'x'));
  const auto last_byte_after_cut = [&] {
    const auto file = MappedFile::open(path);
    std::filesystem::resize_file(path, 10);
    return std::to_integer<int>((*file)->bytes().back());
  };
  EXPECT_EXIT(std::exit(last_byte_after_cut()), testing::ExitedWithCode(1),
              "starling: .*short: was cut short while it was used; valid: a file that stays as it");
}

}  // namespace
}  // namespace starling
