/// Runs nodes with key files as processes, and checks whose messages they accept and how they keep
/// their secrets.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/tools/cluster/nodes.hpp"

namespace starling::program {
namespace {

/// Three nodes, each with a key file.
class KeyedNodes : public Nodes {
 protected:
  void SetUp() override {
    for (const char* line :
         {"keys init-cluster", "keys node a b c", "keys node laptop desk --role client"})
      ASSERT_EQ(starling(work_, line).code, 0) << line;
    start();
  }

  /// Returns the path of the key file of `name`.
  std::string key(const std::string& name) { return (work_.path() / (name + ".key")).string(); }
  std::string own_flags(const std::string& name) override { return " --keys " + key(name); }
  std::string seed(const std::string& name, const std::string& address) override {
    return name + "@" + address;
  }
  std::string to(std::size_t node) override {
    return " --to " + seed(std::string(1, static_cast<char>('a' + node)), addresses_.at(node)) +
           " --keys " + key("laptop") + " ";
  }
  /// Returns the exit code of `status` for the client desk, which is never revoked.
  int ask_from_desk(std::size_t node) {
    const std::string name(1, static_cast<char>('a' + node));
    return starling(work_,
                    "status --to " + seed(name, addresses_.at(node)) + " --keys " + key("desk"))
        .code;
  }
};

TEST_F(KeyedNodes, TrainAndIgnoreRevokedNodesAndClients) {
  const ProgramResult ran =
      starling(work_, "submit" + to(2) + "--data digits:n=300 --model softmax --workers 3 --quiet");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(status().find("a  tcp"), std::string::npos);

  const ProgramResult without_keys = starling(work_, "status --to " + addresses_[1]);
  EXPECT_EQ(without_keys.code, 1);
  EXPECT_NE(
      without_keys.err.find("something listens: the node may be busy, or cannot connect to this "
                            "machine; a node with keys answers only clients with keys of its "
                            "cluster, --keys FILE"),
      std::string::npos)
      << without_keys.err;

  const ProgramResult revoked = starling(work_, "keys revoke c --to " + seed("a", addresses_[0]));
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_TRUE(wait_until([&] {
    return status().find("c  " + addresses_[2] + "  revoked") != std::string::npos;
  })) << status();
  const ProgramResult client_revoked =
      starling(work_, "keys revoke laptop --to " + seed("b", addresses_[1]));
  EXPECT_EQ(client_revoked.code, 0) << client_revoked.err;
  EXPECT_EQ(starling(work_, "status" + to(1)).code, 1);
  EXPECT_EQ(ask_from_desk(1), 0) << "node b refuses the revoked client only";

  // Revocations hold after a restart too, because nodes keep them in files.
  EXPECT_TRUE(wait_until([&] {
    std::ifstream file{key("a") + ".revocations"};
    return std::count(std::istreambuf_iterator<char>{file}, {}, '\n') >= 5;
  }));
  for (std::size_t node = 0; node < 2; ++node) {
    processes_[node]->signal(SIGKILL);
    processes_[node].reset();
  }
  Process restarted{folders_[0], program(), words("node --listen 127.0.0.1:* --keys " + key("a"))};
  addresses_[0] = address_of(restarted, "a");
  ASSERT_FALSE(addresses_[0].empty()) << restarted.err();
  EXPECT_EQ(starling(work_, "status" + to(0)).code, 1);
  EXPECT_EQ(ask_from_desk(0), 0) << restarted.err();
  restarted.signal(SIGKILL);
}

/// Returns the rest of the line that begins with `name` in /proc/PID/`file` of the process.
std::string proc_value(const Process& process, const char* file, const std::string& name) {
  std::ifstream in{"/proc/" + std::to_string(process.id()) + "/" + file};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return line.substr(name.size());
  return {};
}

TEST_F(KeyedNodes, KeepTheirSecretsInLockedMemoryAndWriteNoCoreDump) {
  for (const auto& process : processes_) {
    std::istringstream core{proc_value(*process, "limits", "Max core file size")};
    std::string soft_limit;
    std::string hard_limit;
    core >> soft_limit >> hard_limit;
    EXPECT_EQ(soft_limit, "0");
    EXPECT_EQ(hard_limit, "0");
    std::istringstream open_files{proc_value(*process, "limits", "Max open files")};
    open_files >> soft_limit >> hard_limit;
    EXPECT_EQ(soft_limit, hard_limit);
    // If the system does not let the node lock memory, the node logs that.
    std::istringstream locked{proc_value(*process, "status", "VmLck:")};
    int kib = 0;
    locked >> kib;
    EXPECT_NE(kib > 0, process->err().find("lock memory") != std::string::npos) << process->err();
  }
}

TEST_F(KeyedNodes, RefuseKeyFilesThatAreNotForThem) {
  const std::string listen = "node --listen 127.0.0.1:* ";
  const auto refusal = [&](const std::string& line) {
    const ProgramResult ran = starling(work_, line);
    EXPECT_EQ(ran.code, 2) << line;
    return ran.err;
  };
  EXPECT_NE(refusal(listen + "--keys " + key("laptop")).find("is for a client"), std::string::npos);
  EXPECT_NE(refusal(listen + "--insecure --keys " + key("a")).find("valid: either"),
            std::string::npos);
  EXPECT_NE(refusal(listen + "--fabric udp --keys " + key("a"))
                .find("--fabric: unknown provider 'udp'; valid: shm, tcp, verbs, none"),
            std::string::npos);
  EXPECT_NE(refusal(listen + "--fabric shm").find("valid: with --keys FILE, or none"),
            std::string::npos);
  EXPECT_NE(refusal(listen + "--fabric shm --insecure-fabric --keys " + key("a"))
                .find("valid: with --fabric tcp or verbs"),
            std::string::npos);
  EXPECT_NE(refusal(listen + "--insecure-fabric").find("valid: with --fabric tcp or verbs"),
            std::string::npos);
  EXPECT_NE(refusal(listen + "--name b --keys " + key("a")).find("is not the name of the key file"),
            std::string::npos);
  EXPECT_NE(refusal(listen + "--name b/c").find("--name: "), std::string::npos);
  EXPECT_NE(refusal(listen + "--keys nothing.key").find("--keys: "), std::string::npos);
  EXPECT_NE(
      refusal(listen + "--keys cluster/cluster.key").find("valid here: the key file of a node"),
      std::string::npos);
  EXPECT_NE(refusal(listen + "--join a@" + addresses_[0]).find("without a key file"),
            std::string::npos);
  EXPECT_NE(refusal("status --to " + addresses_[0] + " --keys " + key("laptop"))
                .find("--to: the name of the node is missing"),
            std::string::npos);
  EXPECT_NE(refusal("status --to d@" + addresses_[0] + " --keys " + key("laptop"))
                .find("valid: one of a, b, c"),
            std::string::npos);
  EXPECT_NE(refusal("keys revoke c --to d@" + addresses_[0]).find("valid: one of a, b"),
            std::string::npos);
  // A client gets no answer from a node whose public key is not the one that the client expects.
  const ProgramResult other =
      starling(work_, "status --to b@" + addresses_[0] + " --keys " + key("laptop"));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("ask for it by its own name, NAME@HOST:PORT"), std::string::npos)
      << other.err;
  ASSERT_EQ(::chmod(key("a").c_str(), 0644), 0);
  EXPECT_NE(refusal(listen + "--keys " + key("a")).find("chmod 600"), std::string::npos);
}

}  // namespace
}  // namespace starling::program
