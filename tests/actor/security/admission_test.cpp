#include "starling/actor/security/admission.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/actor/security/certificates.hpp"

namespace starling::security {
namespace {

Key new_key() { return wire::make_key_pair().public_key; }

class AdmissionTest : public testing::Test {
 protected:
  Certificate issue(const std::string& name, UtcSeconds not_after = now + 600) {
    Certificate c = certificate_for(name, new_key(), cluster);
    c.not_after = not_after;
    return sign(c, cluster);
  }
  std::string error_of_learning(const Certificate& c, UtcSeconds at = now) {
    const auto learned = admission.learn(c, at);
    return learned ? "" : learned.error().message;
  }

  ClusterKey cluster = make_cluster_key();
  Key handshake_key = new_key();
  Admission admission{
      cluster.public_key, handshake_key, {.certificates_max = 3, .revocations_max = 3}};
};

TEST_F(AdmissionTest, AdmitsTheKeyOfALearnedCertificate) {
  const Certificate c = issue("w");
  EXPECT_FALSE(admission.admits(c.key, now));
  ASSERT_TRUE(admission.learn(c, now));
  EXPECT_EQ(admission.access_of(c.key, now), KeyAccess::certified);
  EXPECT_TRUE(admission.admits(c.key, now));
  EXPECT_EQ(admission.certificate_of(c.key, now), c);
  EXPECT_EQ(admission.access_of(new_key(), now), KeyAccess::none);
  EXPECT_FALSE(admission.certificate_of(new_key(), now));
}

TEST_F(AdmissionTest, AdmitsTheHandshakeKeyForHandshakesOnly) {
  EXPECT_EQ(admission.access_of(handshake_key, now), KeyAccess::handshake);
  EXPECT_TRUE(admission.admits(handshake_key, now));
  EXPECT_FALSE(admission.certificate_of(handshake_key, now));
}

/// All key files contain the handshake key. With such a certificate, each holder of a key file
/// could act as the member that the certificate names.
TEST_F(AdmissionTest, RefusesACertificateForTheHandshakeKey) {
  EXPECT_EQ(error_of_learning(certificate_for("w", handshake_key, cluster)),
            "the certificate of w is for the handshake key");
  EXPECT_EQ(admission.access_of(handshake_key, now), KeyAccess::handshake);
}

TEST_F(AdmissionTest, RefusesForgedForeignEarlyAndExpiredCertificates) {
  Certificate forged = issue("w");
  forged.key = new_key();
  EXPECT_NE(error_of_learning(forged).find("does not match"), std::string::npos);
  const Certificate foreign = certificate_for("w", new_key(), make_cluster_key());
  EXPECT_NE(error_of_learning(foreign).find("of another cluster"), std::string::npos);
  const Certificate early = issue("w");
  EXPECT_NE(error_of_learning(early, now - 601).find("not yet valid"), std::string::npos);
  EXPECT_NE(error_of_learning(early, now + 601).find("expired on"), std::string::npos);
  for (const Key& key : {forged.key, foreign.key, early.key})
    EXPECT_FALSE(admission.admits(key, now));
}

TEST_F(AdmissionTest, AdmitsAKeyOnlyWhileItsCertificateIsValid) {
  const Certificate c = issue("w");
  ASSERT_TRUE(admission.learn(c, now));
  EXPECT_TRUE(admission.admits(c.key, c.not_after));
  EXPECT_FALSE(admission.admits(c.key, c.not_after + 1));
  EXPECT_FALSE(admission.admits(c.key, c.not_before - 1));
  EXPECT_FALSE(admission.certificate_of(c.key, c.not_after + 1));
  EXPECT_NE(error_of_learning(c, c.not_after + 1), "");
  EXPECT_EQ(admission.certificates(now), std::vector{c});
  EXPECT_TRUE(admission.certificates(c.not_after + 1).empty());
}

TEST_F(AdmissionTest, RevocationEndsACertificateForGood) {
  const Certificate c = issue("w");
  ASSERT_TRUE(admission.learn(c, now));
  const auto revoked = admission.revoke(revocation_of(c.serial, cluster), now);
  ASSERT_TRUE(revoked);
  EXPECT_EQ(*revoked, std::vector{c.key});
  EXPECT_FALSE(admission.admits(c.key, now));
  EXPECT_TRUE(admission.is_revoked(c.serial));
  EXPECT_NE(error_of_learning(c).find("is revoked"), std::string::npos);
  EXPECT_FALSE(admission.admits(c.key, now));
}

TEST_F(AdmissionTest, RefusesACertificateThatWasRevokedBeforeItWasLearned) {
  const Certificate c = issue("w");
  const auto revoked = admission.revoke(revocation_of(c.serial, cluster), now);
  ASSERT_TRUE(revoked);
  EXPECT_TRUE(revoked->empty());
  EXPECT_NE(error_of_learning(c).find("is revoked"), std::string::npos);
}

TEST_F(AdmissionTest, RefusesRevocationsThatTheClusterDidNotSign) {
  const Certificate c = issue("w");
  ASSERT_TRUE(admission.learn(c, now));
  EXPECT_FALSE(admission.revoke(revocation_of(c.serial, make_cluster_key()), now));
  Revocation forged = revocation_of(c.serial + 1, cluster);
  forged.serial = c.serial;
  EXPECT_FALSE(admission.revoke(forged, now));
  EXPECT_TRUE(admission.admits(c.key, now));
}

TEST_F(AdmissionTest, AdmitsAKeyUntilItsLastCertificateIsRevoked) {
  const Certificate first = issue("w");
  Certificate second = first;
  second.serial = make_serial();
  second.not_after += 60;
  second = sign(second, cluster);
  ASSERT_TRUE(admission.learn(first, now));
  ASSERT_TRUE(admission.learn(second, now));
  EXPECT_EQ(admission.certificate_of(first.key, now), second)
      << "the certificate that expires last counts";
  EXPECT_TRUE(admission.revoke(revocation_of(second.serial, cluster), now)->empty());
  EXPECT_EQ(admission.certificate_of(first.key, now), first);
  EXPECT_EQ(*admission.revoke(revocation_of(first.serial, cluster), now), std::vector{first.key});
  EXPECT_FALSE(admission.admits(first.key, now));
}

TEST_F(AdmissionTest, KeepsNoMoreCertificatesThanItsBound) {
  const std::vector<Certificate> three{issue("a", now + 10), issue("b"), issue("c")};
  for (const Certificate& c : three) ASSERT_TRUE(admission.learn(c, now));
  for (const Certificate& c : three) EXPECT_TRUE(admission.learn(c, now)) << "known already";
  const Certificate late = issue("d");
  EXPECT_EQ(error_of_learning(late),
            "there is no capacity for the certificate of d: the limit is 3");
  EXPECT_FALSE(admission.admits(late.key, now));
  ASSERT_EQ(error_of_learning(late, now + 11), "") << "expired certificates are removed";
  EXPECT_TRUE(admission.admits(late.key, now + 11));
  EXPECT_TRUE(admission.admits(three[1].key, now + 11));
}

TEST_F(AdmissionTest, KeepsNoMoreRevocationsThanItsBound) {
  ASSERT_TRUE(admission.revoke(revocation_of(1, cluster, now + 10), now));
  ASSERT_TRUE(admission.revoke(revocation_of(2, cluster), now));
  ASSERT_TRUE(admission.revoke(revocation_of(3, cluster), now));
  const auto full = admission.revoke(revocation_of(4, cluster), now);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("no capacity"), std::string::npos);
  ASSERT_TRUE(admission.revoke(revocation_of(4, cluster), now + 11));
  EXPECT_FALSE(admission.is_revoked(1))
      << "a revocation is removed when its certificate has expired";
  EXPECT_TRUE(admission.is_revoked(2));
  EXPECT_TRUE(admission.is_revoked(4));
}

TEST_F(AdmissionTest, RevocationsSpreadInParts) {
  for (const std::uint64_t serial : {10U, 20U, 30U})
    ASSERT_TRUE(admission.revoke(revocation_of(serial, cluster), now));
  Admission other{cluster.public_key, handshake_key};
  const auto first = admission.revocations_since(0, 2);
  EXPECT_EQ(first.revocations.size(), 2U);
  EXPECT_EQ(other.merge(first.revocations, now).added.size(), 2U);
  const auto rest = admission.revocations_since(first.next, 2);
  ASSERT_EQ(rest.revocations.size(), 1U);
  EXPECT_EQ(rest.revocations[0].serial, 30U);
  EXPECT_EQ(other.merge(rest.revocations, now).added.size(), 1U);
  EXPECT_TRUE(admission.revocations_since(rest.next, 2).revocations.empty());
  EXPECT_EQ(admission.revocations_since(rest.next, 2).next, rest.next);
  for (const std::uint64_t serial : {10U, 20U, 30U}) EXPECT_TRUE(other.is_revoked(serial));
}

TEST_F(AdmissionTest, MergingAgainInAnyOrderChangesNothing) {
  Certificate c = issue("w");
  ASSERT_TRUE(admission.learn(c, now));
  std::vector<Revocation> list{revocation_of(c.serial, cluster), revocation_of(2, cluster)};
  const MergeResult once = admission.merge(list, now);
  EXPECT_EQ(once.added.size(), 2U);
  EXPECT_EQ(once.removed_keys, std::vector{c.key});
  std::swap(list[0], list[1]);
  const MergeResult again = admission.merge(list, now);
  EXPECT_EQ(again.added.size(), 0U);
  EXPECT_EQ(again.refused, 0U);
  EXPECT_TRUE(again.removed_keys.empty());
  EXPECT_EQ(admission.revocations_since(0, 9).revocations.size(), 2U);
}

/// Nodes send each other their revocations only if their digests differ.
TEST_F(AdmissionTest, TheDigestTellsWhichRevocationsAreKnown) {
  const auto digest_of = [&](const std::vector<std::uint64_t>& serials) {
    Admission node{cluster.public_key, handshake_key};
    for (const std::uint64_t serial : serials)
      EXPECT_TRUE(node.revoke(revocation_of(serial, cluster), now));
    return node.revocations_digest();
  };
  const std::uint64_t a = make_serial();
  const std::uint64_t b = make_serial();
  EXPECT_EQ(digest_of({a, b}), digest_of({b, a}));
  EXPECT_NE(digest_of({a}), digest_of({}));
  EXPECT_NE(digest_of({a}), digest_of({b}));
  EXPECT_NE(digest_of({a, b}), digest_of({a, make_serial()}));
  EXPECT_NE(digest_of({a, b}), digest_of({b}));
}

TEST_F(AdmissionTest, ABadRevocationDoesNotAffectOthersInAList) {
  const std::vector<Revocation> list{
      revocation_of(1, cluster), revocation_of(2, make_cluster_key()), revocation_of(3, cluster)};
  const MergeResult merged = admission.merge(list, now);
  EXPECT_EQ(merged.added.size(), 2U);
  EXPECT_EQ(merged.refused, 1U);
  EXPECT_TRUE(admission.is_revoked(1));
  EXPECT_FALSE(admission.is_revoked(2));
  EXPECT_TRUE(admission.is_revoked(3));
}

/// Two threads learn certificates, one thread revokes every second certificate, and one checks that
/// the key of a revoked certificate is not admitted again.
TEST(AdmissionThreads, NeverAdmitARevokedKeyWhileOthersLearnAndRevoke) {
  const ClusterKey cluster = make_cluster_key();
  const Key handshake_key = new_key();
  Admission admission{cluster.public_key, handshake_key};
  std::vector<Certificate> all;
  all.reserve(60);
  for (int i = 0; i < 60; ++i)
    all.push_back(certificate_for("w" + std::to_string(i), new_key(), cluster));
  std::atomic<bool> stops = false;
  std::atomic<std::size_t> admitted_after_revocation = 0;
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 2; ++round)
        for (const Certificate& c : all) (void)admission.learn(c, now);
    });
  threads.emplace_back([&] {
    for (std::size_t i = 0; i < all.size(); i += 2)
      EXPECT_TRUE(admission.revoke(revocation_of(all[i].serial, cluster), now));
  });
  std::thread checker{[&] {
    while (!stops)
      for (const Certificate& c : all) {
        const bool was_revoked = admission.is_revoked(c.serial);
        if (was_revoked && admission.admits(c.key, now)) ++admitted_after_revocation;
        (void)admission.revocations_since(0, 100);
      }
  }};
  for (std::thread& thread : threads) thread.join();
  stops = true;
  checker.join();
  EXPECT_EQ(admitted_after_revocation, 0U);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(admission.admits(all[i].key, now), i % 2 == 1) << i;
  EXPECT_EQ(admission.revocations_since(0, 100).revocations.size(), 30U);
}

}  // namespace
}  // namespace starling::security
