#include "starling/tools/program/subprocess.hpp"

#include <gtest/gtest.h>

namespace starling::program {
namespace {

TEST(Subprocess, TakesStandardFilesInAnyOrder) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto code =
      run_program({"sh", "-c", "echo output; echo error >&2"}, StandardFiles{0, 2, 1});
  const std::string output = testing::internal::GetCapturedStdout();
  const std::string error = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(output, "error\n");
  EXPECT_EQ(error, "output\n");
}

TEST(Subprocess, HasTheExitCodeThatAShellWouldGive) {
  EXPECT_EQ(run_program({"sh", "-c", "exit 3"}, std::nullopt).value(), 3);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, std::nullopt).value(), 128 + 9);
  EXPECT_EQ(run_program({"/nowhere/x"}, std::nullopt).error().message,
            "/nowhere/x: No such file or directory");
}

TEST(Subprocess, RefusesAFileThatIsNotOpen) {
  EXPECT_FALSE(run_program({"true"}, StandardFiles{0, 1, -1}));
}

}  // namespace
}  // namespace starling::program
