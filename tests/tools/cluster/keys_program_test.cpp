/// `starling keys`, run as a program.
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>

#include "starling/actor/security/key_file.hpp"
#include "tests/tools/output.hpp"
#include "tests/tools/program.hpp"

namespace starling::program {
namespace {

using Json = nlohmann::json;
using security::NodeSecrets;
using std::filesystem::perms;

constexpr auto owner_only = perms::owner_read | perms::owner_write;

class Keys : public testing::Test {
 protected:
  void make_cluster() { EXPECT_EQ(keys("init-cluster").code, 0); }
  ProgramResult keys(const std::string& line) { return starling(folder, "keys " + line); }
  Json show(const std::string& file) { return Json::parse(keys("show --json " + file).out); }
  /// Parses a key file. Throws if it is not a `T`.
  template <class T>
  T parsed(const std::string& file) {
    return std::get<T>(security::parse_key_file(folder.read(file), file).value());
  }
  [[nodiscard]] perms mode_of(const std::string& file) const {
    return std::filesystem::status(folder.path() / file).permissions();
  }
  void set_mode(const std::string& file, unsigned mode) const {
    std::filesystem::permissions(folder.path() / file, static_cast<perms>(mode));
  }
  /// Returns the value on the line `key` = VALUE of a key file.
  [[nodiscard]] std::string value(const std::string& file, const std::string& key) const {
    const std::string text = folder.read(file);
    const auto begin = text.find("\n" + key + " = ") + key.size() + 4;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  Folder folder;
};

TEST_F(Keys, AKeyFileHasWhatANodeNeedsToJoin) {
  make_cluster();
  ASSERT_EQ(keys("node worker-1").code, 0);
  const ProgramResult ran = keys("node laptop --role client --days 7 --out mine.key");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "issued laptop (")) << ran.out;
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"cluster", "mine.key", "worker-1.key"}));

  const auto first = parsed<NodeSecrets>("worker-1.key");
  const auto second = parsed<NodeSecrets>("mine.key");
  const auto cluster = parsed<security::ClusterSecrets>("cluster/cluster.key");
  EXPECT_EQ(first.cluster, cluster.key.public_key);
  EXPECT_EQ(first.handshake_keys.secret_key, cluster.handshake_keys.secret_key);
  EXPECT_EQ(second.handshake_keys.secret_key, cluster.handshake_keys.secret_key);
  EXPECT_NE(first.keys.secret_key, second.keys.secret_key);
  EXPECT_EQ(second.known, std::vector{first.certificate})
      << "a key file has the certificates of the nodes before it, to join through them";
  EXPECT_EQ(first.certificate.role, security::Role::node);
  EXPECT_EQ(second.certificate.role, security::Role::client);
  // A certificate is valid from 300 s before its issue, because clocks differ.
  EXPECT_EQ(second.certificate.not_after - second.certificate.not_before, 7 * 86'400 + 300);
  EXPECT_EQ(first.certificate.not_after - first.certificate.not_before, 365 * 86'400 + 300);
  EXPECT_EQ(parsed<security::CertificateList>("cluster/certificates").certificates,
            (std::vector{first.certificate, second.certificate}));
}

TEST_F(Keys, CertificatesIssuedTogetherKnowEachOther) {
  make_cluster();
  ASSERT_EQ(keys("node old").code, 0);
  const ProgramResult ran = keys("node a b c --days 7");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* part : {"issued a (", "issued b (", "issued c (", "c.key is its key file"})
    EXPECT_TRUE(contains(ran.out, part)) << ran.out;
  const auto names_known = [&](const std::string& file) {
    std::set<std::string> names;
    for (const auto& c : parsed<NodeSecrets>(file).known) names.insert(c.name);
    return names;
  };
  EXPECT_EQ(names_known("a.key"), (std::set<std::string>{"b", "c", "old"}));
  EXPECT_EQ(names_known("c.key"), (std::set<std::string>{"a", "b", "old"}));
  EXPECT_EQ(parsed<security::CertificateList>("cluster/certificates").certificates.size(), 4U);
}

TEST_F(Keys, ShowListsWhichCertificatesAreRevoked) {
  make_cluster();
  ASSERT_EQ(keys("node a b").code, 0);
  EXPECT_FALSE(contains(keys("show cluster/certificates").out, "  revoked  "));
  ASSERT_EQ(keys("revoke a").code, 0);
  const Json list = show("cluster/certificates")["certificates"];
  EXPECT_EQ(list[0]["state"], "revoked");
  EXPECT_EQ(list[1]["state"], "valid");
  const ProgramResult text = keys("show cluster/certificates");
  EXPECT_TRUE(contains(text.out, "  revoked        a\n")) << text.out;
  folder.write("cluster/revocations", "nothing of the kind");
  const ProgramResult damaged = keys("show cluster/certificates");
  EXPECT_EQ(damaged.code, 2);
  EXPECT_TRUE(contains(damaged.err, "cluster/revocations:1: ")) << damaged.err;
}

TEST_F(Keys, ShowUsesTheRevocationsThatANodeHasReceived) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  ASSERT_EQ(keys("revoke w").code, 0);
  EXPECT_EQ(show("w.key")["certificate"]["state"], "valid");
  std::filesystem::copy(folder.path() / "cluster/revocations", folder.path() / "w.key.revocations");
  EXPECT_EQ(show("w.key")["certificate"]["state"], "revoked");
}

TEST_F(Keys, SecretFilesAreReadableByTheirOwnerOnly) {
  const auto before = ::umask(0);
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  ::umask(before);
  EXPECT_EQ(mode_of("cluster"), perms::owner_all);
  EXPECT_EQ(mode_of("cluster/cluster.key"), owner_only);
  EXPECT_EQ(mode_of("w.key"), owner_only);
}

TEST_F(Keys, SecretFilesThatOthersMayReadOrWriteAreRefused) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  for (const unsigned mode : {0640U, 0604U, 0620U, 0601U}) {
    set_mode("w.key", mode);
    const ProgramResult ran = keys("show w.key");
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(contains(ran.err, "w.key: is secret, but its mode 0")) << ran.err;
    EXPECT_TRUE(contains(ran.err, "valid: chmod 600 w.key")) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  set_mode("w.key", 0400);
  EXPECT_EQ(keys("show w.key").code, 0);
  set_mode("cluster/cluster.key", 0644);
  for (const char* line : {"node v", "revoke w"}) {
    const ProgramResult ran = keys(line);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(contains(ran.err, "valid: chmod 600 cluster/cluster.key")) << ran.err;
  }
  EXPECT_FALSE(folder.has("v.key"));
}

TEST_F(Keys, ShowPrintsNoSecret) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  const auto cluster = parsed<security::ClusterSecrets>("cluster/cluster.key");
  const auto node = parsed<NodeSecrets>("w.key");
  for (const char* line : {"show w.key", "show w.key --json", "show cluster/cluster.key",
                           "show cluster/cluster.key --json"}) {
    const ProgramResult ran = keys(line);
    ASSERT_EQ(ran.code, 0) << ran.err;
    for (const std::string& secret :
         {value("w.key", "own-secret"), value("w.key", "gate-secret"),
          value("cluster/cluster.key", "cluster-secret"), security::print_hex(node.keys.secret_key),
          security::print_hex(node.handshake_keys.secret_key),
          security::print_hex(std::span{cluster.key.secret_key}.first(32))})
      EXPECT_FALSE(contains(ran.out, secret.substr(0, 40))) << line;
  }
  const Json own = show("w.key")["certificate"];
  EXPECT_EQ(own["name"], "w");
  EXPECT_EQ(own["role"], "node");
  EXPECT_EQ(own["state"], "valid");
  EXPECT_EQ(own["serial"], security::print_serial(node.certificate.serial));
  EXPECT_EQ(own["public_key"], security::print_hex(node.keys.public_key));
  EXPECT_EQ(show("cluster/cluster.key")["cluster"], show("w.key")["cluster"]);
}

TEST_F(Keys, NoFileIsOverwritten) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  const std::string key = folder.read("w.key");
  const std::string cluster = folder.read("cluster/cluster.key");
  const std::string issued = folder.read("cluster/certificates");
  std::filesystem::create_symlink("nowhere", folder.path() / "link");
  for (const char* line :
       {"node w", "node v --out w.key", "node v --out link", "node v --out cluster/cluster.key",
        "init-cluster", "init-cluster cluster"}) {
    const ProgramResult ran = keys(line);
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_TRUE(contains(ran.err, "is there already")) << ran.err;
  }
  EXPECT_EQ(folder.read("w.key"), key);
  EXPECT_EQ(folder.read("cluster/cluster.key"), cluster);
  EXPECT_EQ(folder.read("cluster/certificates"), issued) << "nothing was issued";
}

TEST_F(Keys, ListsOfAnotherClusterAreRefused) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  std::filesystem::remove(folder.path() / "cluster/cluster.key");
  const ProgramResult again = keys("init-cluster");
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(contains(again.err, "cluster/certificates: is there already")) << again.err;
  ASSERT_EQ(keys("init-cluster other").code, 0);
  std::filesystem::copy(folder.path() / "cluster/certificates",
                        folder.path() / "other/certificates");
  const ProgramResult mixed = keys("node v --cluster other");
  EXPECT_EQ(mixed.code, 2);
  EXPECT_TRUE(
      contains(mixed.err, "other/certificates: is of another cluster than the key beside it"))
      << mixed.err;
  EXPECT_FALSE(folder.has("v.key"));
}

TEST_F(Keys, RevokingANameRevokesAllItsCertificates) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  ASSERT_EQ(keys("node w --out renewed.key").code, 0);
  ASSERT_EQ(keys("node v").code, 0);
  const ProgramResult ran = keys("revoke w");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto list = parsed<security::RevocationList>("cluster/revocations");
  std::set<std::uint64_t> serials;
  for (const auto& revocation : list.revocations) {
    EXPECT_TRUE(security::check_signature(revocation, list.cluster));
    serials.insert(revocation.serial);
  }
  const auto old = parsed<NodeSecrets>("w.key").certificate;
  const auto renewed = parsed<NodeSecrets>("renewed.key").certificate;
  EXPECT_EQ(serials, (std::set{old.serial, renewed.serial}));
  EXPECT_EQ(list.revocations[0].until, old.not_after);

  ASSERT_EQ(keys("node u").code, 0);
  const auto next = parsed<NodeSecrets>("u.key");
  EXPECT_EQ(next.known, std::vector{parsed<NodeSecrets>("v.key").certificate});
  EXPECT_EQ(next.revocations, list.revocations);
}

TEST_F(Keys, ANodeThatTheCommandRevokesCannotBeNotified) {
  make_cluster();
  ASSERT_EQ(keys("node a b").code, 0);
  const ProgramResult ran = keys("revoke b --to b@127.0.0.1:1");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, "valid: one of a\n")) << ran.err;
  EXPECT_FALSE(folder.has("cluster/revocations"));
}

TEST_F(Keys, RevokingASerialTwiceRevokesOneCertificateOnce) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  ASSERT_EQ(keys("node w --out renewed.key").code, 0);
  const std::string serial =
      security::print_serial(parsed<NodeSecrets>("w.key").certificate.serial);
  ASSERT_EQ(keys("revoke " + serial).code, 0);
  EXPECT_EQ(show("cluster/revocations")["revocations"].size(), 1U);
  EXPECT_EQ(show("cluster/revocations")["revocations"][0]["serial"], serial);
  const std::string list = folder.read("cluster/revocations");
  const ProgramResult again = keys("revoke " + serial);
  EXPECT_EQ(again.code, 0);
  EXPECT_TRUE(contains(again.out, "was already revoked: w (" + serial + ")")) << again.out;
  EXPECT_EQ(folder.read("cluster/revocations"), list);
}

TEST_F(Keys, CertificatesIssuedByConcurrentCommandsAreAllListed) {
  make_cluster();
  {
    std::vector<std::unique_ptr<Process>> commands;
    commands.reserve(6);
    for (int i = 0; i < 6; ++i)
      commands.push_back(std::make_unique<Process>(folder, STARLING_PROGRAM,
                                                   words("keys node w" + std::to_string(i))));
    for (auto& process : commands) EXPECT_EQ(process->wait().code, 0);
  }
  std::set<std::string> names;
  std::set<std::uint64_t> serials;
  for (const auto& c : parsed<security::CertificateList>("cluster/certificates").certificates) {
    names.insert(c.name);
    serials.insert(c.serial);
  }
  EXPECT_EQ(names, (std::set<std::string>{"w0", "w1", "w2", "w3", "w4", "w5"}));
  EXPECT_EQ(serials.size(), 6U);
}

TEST_F(Keys, DamagedFilesAreRefusedWithTheBadLine) {
  make_cluster();
  ASSERT_EQ(keys("node w").code, 0);
  std::string text = folder.read("w.key");
  text[text.find("own-certificate = ") + 100] ^= 1;
  folder.write("w.key", text);
  const ProgramResult ran = keys("show w.key");
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(ran.err.starts_with("starling: w.key:")) << ran.err;
  folder.write("model", "nothing of the kind");
  EXPECT_TRUE(contains(keys("show model").err, "model:1: is not a line of a key file"));
  const ProgramResult wrong = keys("node v --cluster .");
  EXPECT_TRUE(contains(wrong.err, "'.' holds no cluster's key: there is no ./cluster.key"));
  folder.write("certificates", folder.read("cluster/certificates"));
  std::filesystem::copy(folder.path() / "certificates", folder.path() / "cluster.key");
  EXPECT_TRUE(
      contains(keys("node v --cluster .").err,
               "./cluster.key: is a list of certificates; valid here: a cluster's key file"));
}

struct BadInput {
  /// The arguments of `starling keys`.
  std::string line;
  std::string error;
};

TEST_F(Keys, BadInputIsRefusedWithWhatIsValidAndWritesNothing) {
  make_cluster();
  ASSERT_EQ(keys("node worker-1").code, 0);
  const auto names = folder.names();
  const std::string issued = folder.read("cluster/certificates");
  const std::vector<BadInput> inputs{
      {"", "the command is missing; valid: init-cluster, node, revoke, show"},
      {"nod", "unknown command 'keys nod'; did you mean 'node'?"},
      {"--foo", "unknown flag '--foo'; `starling keys --help` lists what is valid"},
      {"init-cluster worker-1.key", "worker-1.key"},
      {"init-cluster no/such", "no/such: cannot be made: No such file or directory"},
      {"init-cluster a b", "'b' is one argument too many"},
      {"node", "the NAME is missing; valid: starling keys node NAME"},
      {"node a b a", "NAME: 'a' is given twice"},
      {"node a b/c", "NAME: 'b/c' is not a valid name"},
      {"node a b --out c.key", "--out: names one file for 2 names"},
      {"node a worker-1", "worker-1.key: is there already"},
      {"node a/b", "NAME: 'a/b' is not a valid name; valid: 1 to 64 letters"},
      {"node 0123456789abcdef",
       "NAME: '0123456789abcdef' is not a valid name: it is written like a serial"},
      {"node w --role cleint", "--role: 'cleint' is not a role; did you mean 'client'?"},
      {"node w --days 0", "--days: '0' must be a whole number >= 1 and <= 36500"},
      {"node w --days 36501", "--days: '36501' must be a whole number"},
      {"node w --days x", "--days: 'x' must be a whole number"},
      {"node w --days", "--days: needs a value"},
      {"node w --out --days", "--out: needs a value"},
      {"node w --rol client", "unknown flag '--rol'; did you mean '--role'?"},
      {"node w --cluster nowhere", "--cluster: 'nowhere' holds no cluster's key"},
      {"node w --out no/w.key", "--out: no/w.key: cannot be written: No such file or directory"},
      {"revoke", "the NAME|SERIAL is missing; valid: starling keys revoke NAME|SERIAL"},
      {"revoke worker-2",
       "no certificate has the name 'worker-2' in "
       "cluster/certificates; did you mean 'worker-1'?"},
      {"revoke 0123456789abcdef", "no certificate has the serial 0123456789abcdef"},
      {"revoke w --cluster nowhere", "--cluster: 'nowhere' holds no cluster's key"},
      {"show", "the FILE is missing; valid: starling keys show FILE"},
      {"show nowhere", "nowhere: cannot be opened: No such file or directory"},
      {"show cluster", "cluster: is not a regular file; valid: the name of a key file"},
      {"show /dev/null", "/dev/null: is not a regular file"},
  };
  for (const BadInput& bad : inputs) {
    const ProgramResult ran = keys(bad.line);
    EXPECT_EQ(ran.code, 2) << bad.line;
    EXPECT_EQ(ran.out, "") << bad.line;
    EXPECT_TRUE(contains(ran.err, "starling: ")) << ran.err;
    EXPECT_TRUE(contains(ran.err, bad.error)) << bad.line << "\n" << ran.err;
  }
  EXPECT_EQ(folder.names(), names);
  EXPECT_EQ(folder.read("cluster/certificates"), issued);
  EXPECT_FALSE(folder.has("cluster/revocations"));
}

TEST_F(Keys, HelpExistsForEachCommand) {
  for (const char* command : {"init-cluster", "node", "revoke", "show"}) {
    const ProgramResult ran = keys(std::string{command} + " --help");
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(contains(ran.out, std::string{"Usage: starling keys "} + command)) << ran.out;
  }
}

}  // namespace
}  // namespace starling::program
