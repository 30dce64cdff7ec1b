// The device on which a job computes, in builds with and without CUDA, on machines with and without
// a device.
#include <nlohmann/json.hpp>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// The command line of a small job.
const std::string job_command = "train --data digits:n=300 --steps 3 --workers 2 --json --quiet ";

/// Runs `starling`, and expects exit code 2 and one line of error.
ProgramResult run_refused(const Folder& folder, const std::string& line) {
  ProgramResult ran = starling(folder, line);
  EXPECT_EQ(ran.code, 2) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  return ran;
}

/// Returns the device in the JSON output of a program.
std::string device_in(const ProgramResult& ran) {
  return nlohmann::json::parse(ran.out).at("device").get<std::string>();
}

TEST(DeviceProgram, RefusesAnUnknownDevice) {
  const Folder folder;
  EXPECT_EQ(
      run_refused(folder, job_command + "--device gpu").err,
      "starling: --device: 'gpu' is not a device; valid: cpu, auto, cuda:0, cuda:1 and so on\n");
  folder.write("job.toml", "model = \"lenet5\"\ndevice = \"cuda:x\"\n");
  EXPECT_EQ(
      run_refused(folder, "train job.toml").err,
      "starling: job.toml:2: device: 'cuda:x' is not a device; valid: cpu, auto, cuda:0, cuda:1 "
      "and so on\n");
  EXPECT_EQ(
      run_refused(folder, "submit --to 127.0.0.1:1 --device gpu").err,
      "starling: --device: 'gpu' is not a device; valid: cpu, auto, cuda:0, cuda:1 and so on\n");
}

TEST(DeviceProgram, RefusesModelsThatComputeOnTheCpuOnly) {
  const Folder folder;
  EXPECT_EQ(run_refused(folder, job_command + "--model softmax --device cuda:0").err,
            "starling: --device: cuda:0: model softmax computes on the CPU only; valid: cpu, auto, "
            "or a net like lenet5\n");
  EXPECT_EQ(
      run_refused(folder, job_command + "--model lenet5 --dtype float64 --device cuda:0").err,
      "starling: --device: cuda:0: a net of float64 computes on the CPU only; valid: cpu, auto, "
      "or dtype float32\n");
}

// The error depends on the machine: a build without CUDA, no driver, no device, or too few devices.
TEST(DeviceProgram, SaysWhyADeviceCannotBeUsedAndWhatIsValid) {
  const Folder folder;
  const ProgramResult ran = run_refused(folder, job_command + "--model lenet5 --device cuda:977");
  EXPECT_TRUE(ran.err.starts_with("starling: --device: cuda:977: ")) << ran.err;
  EXPECT_NE(ran.err.find("cpu"), std::string::npos) << ran.err;
  folder.write("job.toml", "model = \"lenet5\"\ndevice = \"cuda:977\"\n");
  const ProgramResult from_file = run_refused(folder, "train job.toml --quiet --data digits:n=300");
  EXPECT_TRUE(from_file.err.starts_with("starling: job.toml:2: device: cuda:977: "))
      << from_file.err;
}

TEST(DeviceProgram, ComputesOnTheCpuByDefault) {
  const Folder folder;
  for (const std::string more : {"", "--device cpu", "--model softmax --device auto"}) {
    const ProgramResult ran = starling(folder, job_command + more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(device_in(ran), "cpu") << more;
  }
}

TEST(DeviceProgram, AutoUsesACudaDeviceIfThereIsOneForTheModel) {
  const Folder folder;
  const ProgramResult ran = starling(folder, job_command + "--model lenet5 --device auto");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const ProgramResult on_cuda = starling(folder, job_command + "--model lenet5 --device cuda:0");
  EXPECT_EQ(device_in(ran), on_cuda.code == 0 ? "cuda:0" : "cpu") << on_cuda.err;
  const ProgramResult verbose =
      starling(folder,
               "train --data digits:n=300 --steps 3 --json --model lenet5 "
               "--device auto");
  const std::string notice = "starling: --device: computing on the CPU: ";
  EXPECT_EQ(verbose.err.find(notice) != std::string::npos, on_cuda.code != 0) << verbose.err;
}

TEST(DeviceProgram, EvaluatesASavedModelOnTheDevice) {
  const Folder folder;
  ASSERT_EQ(starling(folder, job_command + "--model lenet5 --save net.safetensors").code, 0);
  const std::string device =
      device_in(starling(folder, job_command + "--model lenet5 --device auto"));
  const auto figures = [&](const std::string& device_flag) {
    const ProgramResult ran =
        starling(folder, "evaluate net.safetensors --json --device " + device_flag);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  };
  const auto on_cpu = figures("cpu");
  const auto on_device = figures("auto");
  EXPECT_EQ(on_cpu.at("device"), "cpu");
  EXPECT_EQ(on_device.at("device"), device);
  EXPECT_NEAR(on_cpu.at("loss").get<double>(), on_device.at("loss").get<double>(), 1e-4);
  const std::string predict = "predict net.safetensors --data digits:n=20 --device ";
  EXPECT_EQ(starling(folder, predict + "cpu").out, starling(folder, predict + "auto").out);
  for (const std::string command : {"evaluate net.safetensors", "predict net.safetensors"}) {
    EXPECT_EQ(run_refused(folder, command + " --device gpu").err,
              "starling: --device: 'gpu' is not a device; valid: cpu, auto, cuda:0, cuda:1 and so "
              "on\n");
    const ProgramResult ran = run_refused(folder, command + " --device cuda:977");
    EXPECT_TRUE(ran.err.starts_with("starling: --device: cuda:977: ")) << ran.err;
  }
}

}  // namespace
}  // namespace starling::program
