#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "device/config.h"
#include "remote/frame.h"

/// Peers that may connect over TCP: those that prove that they have the token, or the key
/// that all processes of a user on a host share. It is never sent.
namespace gdrperf::softnic {

/// The key of this process' user, made when there is none: a file in /dev/shm that
/// only that user can read. Empty, and `obstacle` says why, where it cannot be had.
std::string users_key(std::string& obstacle);
/// The device's token, or its user's key.
std::string secret_of(const DeviceConfig& device, std::string& obstacle);

/// HMAC-SHA-256 over both ends' words. Proofs of the two ends differ.
enum class ProofOf { kConnector, kListener };
void prove(ProofOf end, const std::string& secret, const TcpHello& hello, const std::uint8_t (&nonce)[kNonceBytes],
           std::uint8_t (&proof)[kProofBytes]);
/// Of a datagram, which nobody answers.
void prove_datagram(const std::string& secret, std::span<const std::uint8_t> head, std::span<const std::uint8_t> data,
                    std::uint8_t (&proof)[kProofBytes]);
/// In constant time.
bool same_proof(const std::uint8_t (&one)[kProofBytes], const std::uint8_t (&other)[kProofBytes]);
/// This library was built with what it takes (nettle).
bool can_prove();

}  // namespace gdrperf::softnic
