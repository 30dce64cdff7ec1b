/// `starling launch`, which starts nodes on other machines.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

/// `starling launch` runs a script in place of ssh. The script runs the command on this machine and
/// appends [USER@]HOST to the file `logins`.
class Launch : public testing::Test {
 protected:
  void SetUp() override {
    write("ssh.sh", "#!/bin/sh\necho \"$1\" >>logins\nexec sh -c \"$2\"\n");
    ASSERT_EQ(::chmod((work_.path() / "ssh.sh").c_str(), 0755), 0);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream{work_.path() / name} << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file{work_.path() / name};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  ProgramResult launch(const std::string& flags) {
    return starling(work_, "launch --hosts hosts --ssh ./ssh.sh " + flags);
  }

  Folder work_;
};

TEST_F(Launch, StartsNodesThatJoinEachOther) {
  for (const char* line :
       {"keys init-cluster", "keys node one", "keys node two", "keys node laptop --role client"})
    ASSERT_EQ(starling(work_, line).code, 0) << line;
  // These ports are below the range from which the system takes ports for outgoing connections.
  const std::string first_port = std::to_string(20000 + ::getpid() % 5000);
  const std::string second_port = std::to_string(25000 + ::getpid() % 5000);
  write("hosts", "# two on one machine\nme@127.0.0.1:" + first_port +
                     " one\n\n127.0.0.1:" + second_port + "\ttwo\n");
  // `launch` replaces NAME by the name of each node.
  const ProgramResult ran = launch("--keys NAME.key --program " STARLING_PROGRAM);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "one runs at 127.0.0.1:" + first_port +
                         "\ntwo runs at 127.0.0.1:" + second_port + "\n");
  const auto ask = [&](const std::string& command, const std::string& node) {
    return starling(work_, command + " --keys laptop.key --to " + node);
  };
  std::string status;
  for (int i = 0; i < 100 && status.find("two  tcp") == std::string::npos; ++i)
    status = ask("status", "one@127.0.0.1:" + first_port).out;
  EXPECT_NE(status.find("two  tcp://127.0.0.1:" + second_port + "  alive"), std::string::npos)
      << status;
  EXPECT_EQ(ask("leave", "two@127.0.0.1:" + second_port).code, 0);
  EXPECT_EQ(ask("leave", "one@127.0.0.1:" + first_port).code, 0);
  EXPECT_EQ(read("logins"), "me@127.0.0.1\n127.0.0.1\n");
}

TEST_F(Launch, RefusesBadHostsFiles) {
  const auto refusal = [&](const std::string& hosts) {
    write("hosts", hosts);
    const ProgramResult ran = launch("");
    EXPECT_EQ(ran.code, 2) << hosts;
    return ran.err;
  };
  EXPECT_NE(refusal("").find("--hosts: hosts: names no host"), std::string::npos);
  EXPECT_NE(refusal("a b c\n").find("hosts:1: 'a b c' is no host; valid: [USER@]HOST"),
            std::string::npos);
  EXPECT_NE(refusal("10.0.0.1\n10.0.0.1:99999\n").find("hosts:2: '10.0.0.1:99999' is no address"),
            std::string::npos);
  EXPECT_NE(refusal("10.0.0.1\n10.0.0.1\n").find("hosts:2: 10.0.0.1 at 10.0.0.1:7400 has the name"),
            std::string::npos);
  // In a line without a name, the host is the name; ::1 cannot be one, because of its colons.
  for (const char* name : {"[::1]:7400\n", "10.0.0.1 ../x\n"})
    EXPECT_NE(refusal(name).find("is not a valid name"), std::string::npos) << name;
  for (const char* flag : {"-oProxyCommand=x\n", "[-oProxyCommand=x]:7400 x\n"})
    EXPECT_NE(refusal(flag).find("is no host"), std::string::npos) << flag;
  EXPECT_NE(starling(work_, "launch --hosts .").err.find("is a folder"), std::string::npos);
  EXPECT_EQ(starling(work_, "launch").code, 2);
  // If the first node ends at once, no other node could join it, and none is started.
  write("hosts", "192.0.2.1 one\n192.0.2.2 two\n");
  const ProgramResult failed = launch("--insecure --program " STARLING_PROGRAM);
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.err.find("one at 192.0.2.1:7400: not started"), std::string::npos) << failed.err;
  EXPECT_EQ(failed.err.find("two"), std::string::npos) << failed.err;
}

/// The first node ends at once, because this machine does not have its address.
TEST_F(Launch, KeepsTheLogOfAnEarlierNode) {
  std::string earlier;
  for (int i = 1; i <= 30; ++i) earlier += "line " + std::to_string(i) + " of before\n";
  write("starling-one.log", earlier);
  write("hosts", "192.0.2.1 one\n");
  const ProgramResult failed = launch("--insecure --program " STARLING_PROGRAM);
  EXPECT_EQ(failed.code, 1);
  const std::string log = read("starling-one.log");
  ASSERT_TRUE(log.starts_with(earlier)) << log;
  const std::string added = log.substr(earlier.size());
  EXPECT_FALSE(added.empty());
  EXPECT_NE(failed.err.find(added), std::string::npos) << failed.err;
  EXPECT_EQ(failed.err.find("line 1 of before\n"), std::string::npos) << failed.err;
}

/// `kill` fails as for a user who may not send signals to the node.
TEST_F(Launch, DoesNotTakeANodeThatItCannotEndForEnded) {
  write("no-kill.sh", "#!/bin/sh\nkill() { return 1; }\neval \"$2\"\n");
  ASSERT_EQ(::chmod((work_.path() / "no-kill.sh").c_str(), 0755), 0);
  write("hosts", "127.0.0.1:" + std::to_string(20000 + ::getpid() % 5000) + " one\n");
  ASSERT_EQ(launch("--program " STARLING_PROGRAM).code, 0);
  const ProgramResult failed = starling(work_, "launch --hosts hosts --ssh ./no-kill.sh --stop");
  EXPECT_EQ(failed.code, 1) << failed.out;
  EXPECT_NE(failed.err.find("still runs"), std::string::npos) << failed.err;
  const ProgramResult stopped = launch("--stop");
  EXPECT_EQ(stopped.code, 0) << stopped.err;
}

}  // namespace
}  // namespace starling::program
