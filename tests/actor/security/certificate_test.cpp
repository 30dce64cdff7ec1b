#include "starling/actor/security/certificate.hpp"

#include <gtest/gtest.h>

#include "tests/actor/security/certificates.hpp"

namespace starling::security {
namespace {

/// Returns the error message, or "" for a success.
std::string error_of(const Result<void>& result) { return result ? "" : result.error().message; }

std::string error_of(std::span<const std::byte> bytes) {
  const auto decoded = decode_certificate(bytes);
  return decoded ? "" : decoded.error().message;
}

/// Returns the error in decoding and verifying an encoded certificate; empty if it is valid.
std::string verification_error_of(std::span<const std::byte> bytes, const ClusterPublic& cluster) {
  const auto decoded = decode_certificate(bytes);
  return decoded ? error_of(verify(*decoded, cluster, now)) : decoded.error().message;
}

TEST(Certificate, SurvivesEncodingAndIsValid) {
  const ClusterKey cluster = make_cluster_key();
  const Certificate sent = certificate_for("worker-1", wire::make_key_pair().public_key, cluster);
  const auto received = decode_certificate(encode(sent));
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(*received, sent);
  EXPECT_EQ(received->cluster, id_of(cluster.public_key));
  EXPECT_TRUE(verify(*received, cluster.public_key, now));
}

/// Test 1 of RFC 8032, section 7.1: the keys of clusters are Ed25519 keys in the RFC's encoding.
TEST(Certificate, AcceptsTheKeysOfTheStandard) {
  const ClusterKey key{
      bytes_of_hex<32>("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
      bytes_of_hex<64>("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
                       "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")};
  EXPECT_TRUE(is_pair(key));
  ClusterKey other = key;
  other.secret_key[5] ^= 1U;
  EXPECT_FALSE(is_pair(other));
  EXPECT_TRUE(is_pair(make_cluster_key()));
  KeyPair curve = wire::make_key_pair();
  EXPECT_TRUE(is_pair(curve));
  curve.secret_key[5] ^= 1U;
  EXPECT_FALSE(is_pair(curve));
}

TEST(Certificate, IsRefusedWithAnyBitFlipped) {
  const ClusterKey cluster = make_cluster_key();
  wire::Bytes bytes =
      encode(certificate_for("worker-1", wire::make_key_pair().public_key, cluster, Role::client));
  ASSERT_EQ(verification_error_of(bytes, cluster.public_key), "");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[i] ^= std::byte{1} << bit;
      EXPECT_NE(verification_error_of(bytes, cluster.public_key), "")
          << "byte " << i << ", bit " << bit;
      bytes[i] ^= std::byte{1} << bit;
    }
}

TEST(Certificate, IsRefusedIfBytesAreMissingOrLeftOver) {
  const ClusterKey cluster = make_cluster_key();
  wire::Bytes bytes = encode(certificate_for("w", wire::make_key_pair().public_key, cluster));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error_of(std::span{bytes}.first(size)), "") << size;
  bytes.push_back({});
  EXPECT_EQ(error_of(bytes), "a certificate has bytes left over at its end");
}

TEST(Certificate, IsValidFromItsFirstToItsLastSecond) {
  const ClusterKey cluster = make_cluster_key();
  const Certificate c = certificate_for("w", wire::make_key_pair().public_key, cluster);
  const std::string subject = "the certificate of w (" + print_serial(c.serial) + ")";
  EXPECT_EQ(error_of(verify(c, cluster.public_key, now)), "");
  EXPECT_EQ(error_of(verify(c, cluster.public_key, c.not_before)), "");
  EXPECT_EQ(error_of(verify(c, cluster.public_key, c.not_after)), "");
  EXPECT_EQ(error_of(verify(c, cluster.public_key, c.not_before - 1)),
            subject + " is not yet valid: it is from 2026-11-21 10:11:08 UTC on");
  EXPECT_EQ(error_of(verify(c, cluster.public_key, c.not_after + 1)),
            subject + " expired on 2026-11-21 10:31:08 UTC");
}

TEST(Certificate, IsRefusedIfOfAnotherCluster) {
  const ClusterKey cluster = make_cluster_key();
  const ClusterKey other = make_cluster_key();
  const Certificate c = certificate_for("w", wire::make_key_pair().public_key, other);
  const std::string message = error_of(verify(c, cluster.public_key, now));
  EXPECT_NE(message.find("is of another cluster, " + short_id(id_of(other.public_key)) +
                         "; valid here: of " + short_id(id_of(cluster.public_key))),
            std::string::npos)
      << message;
}

TEST(Certificate, IsRefusedIfAnotherKeySignedIt) {
  const ClusterKey cluster = make_cluster_key();
  Certificate c = certificate_for("w", wire::make_key_pair().public_key, make_cluster_key());
  c.cluster = id_of(cluster.public_key);
  const std::string message = error_of(verify(c, cluster.public_key, now));
  EXPECT_NE(message.find("does not match: it is forged or damaged"), std::string::npos) << message;
}

TEST(Certificate, IsNotDecodedWithInvalidFields) {
  const ClusterKey cluster = make_cluster_key();
  const Certificate good = certificate_for("w", wire::make_key_pair().public_key, cluster);
  const auto error_after = [&](auto change) {
    Certificate c = good;
    change(c);
    return error_of(encode(c));
  };
  EXPECT_EQ(error_after([](Certificate& c) { c.name = "\x1b[2J"; }),
            "a certificate has an invalid name");
  EXPECT_EQ(error_after([](Certificate& c) { c.name = std::string(65, 'a'); }),
            "a certificate has an invalid name");
  EXPECT_EQ(error_after([](Certificate& c) { c.role = static_cast<Role>(2); }),
            "a certificate is for an unknown role");
  EXPECT_EQ(error_after([](Certificate& c) { c.not_after = utc_max + 1; }),
            "a certificate has impossible dates");
  EXPECT_EQ(error_after([](Certificate& c) { c.not_before = -1; }),
            "a certificate has impossible dates");
  EXPECT_EQ(error_after([](Certificate& c) { c.not_before = c.not_after + 1; }),
            "a certificate has impossible dates");
  wire::Bytes bytes = encode(good);
  bytes[0] = std::byte{2};
  EXPECT_EQ(error_of(bytes), "a certificate is of version 2; valid here: 1");
}

TEST(Certificate, NamesAreShortAndNotWrittenLikeSerials) {
  for (const char* name : {"a", "7", "node-1.rack_2", "0123456789abcde", "0123456789abcdefg"})
    EXPECT_TRUE(check_name(name)) << name;
  for (const char* name : {"", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n"})
    EXPECT_NE(error_of(check_name(name)).find("is not a valid name; valid: "), std::string::npos)
        << name;
  EXPECT_TRUE(check_name(std::string(64, 'a')));
  EXPECT_FALSE(check_name(std::string(65, 'a')));
  EXPECT_NE(error_of(check_name("0123456789ABCDEF")).find("written like a serial"),
            std::string::npos);
}

TEST(Certificate, SerialsAreReadAsTheyArePrinted) {
  EXPECT_EQ(print_serial(0xabc), "0000000000000abc");
  for (const std::uint64_t serial : {std::uint64_t{0}, UINT64_MAX, make_serial()})
    EXPECT_EQ(*parse_serial(print_serial(serial)), serial);
  for (const char* text : {"", "abc", "0000000000000abg", "00000000000000abc"})
    EXPECT_FALSE(parse_serial(text)) << text;
  EXPECT_NE(make_serial(), make_serial());
}

TEST(Certificate, TimesArePrintedInUtc) {
  EXPECT_EQ(print_utc(0), "1970-01-01 00:00:00 UTC");
  EXPECT_EQ(print_utc(951'782'399), "2000-02-28 23:59:59 UTC");
  EXPECT_EQ(print_utc(951'782'400), "2000-02-29 00:00:00 UTC");
  EXPECT_EQ(print_utc(utc_max), "9999-12-31 23:59:59 UTC");
}

TEST(Revocation, SurvivesEncodingAndIsRefusedWithAnyBitFlipped) {
  const ClusterKey cluster = make_cluster_key();
  const Revocation sent = revocation_of(make_serial(), cluster);
  wire::Bytes bytes = encode(sent);
  const auto received = decode_revocation(bytes);
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(*received, sent);
  EXPECT_TRUE(check_signature(*received, cluster.public_key));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[i] ^= std::byte{1} << bit;
      const auto damaged = decode_revocation(bytes);
      EXPECT_FALSE(damaged && check_signature(*damaged, cluster.public_key))
          << "byte " << i << ", bit " << bit;
      bytes[i] ^= std::byte{1} << bit;
    }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_revocation(std::span{bytes}.first(size))) << size;
}

}  // namespace
}  // namespace starling::security
