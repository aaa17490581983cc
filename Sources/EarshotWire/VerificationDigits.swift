import Crypto

/// The digits that two users compare: both sides derive six digits from the connection's transcript and a nonce of each.
///
/// An attacker in the middle has two transcripts, and one chance in a million to find nonces that give both sides the same digits: the
/// commitment fixes the first nonce before the second is known, and the second before the first is.
package enum VerificationDigits {
    /// The number of digits.
    package static let count = 6
    private static let commitmentLabel = "earshot/1 verification commitment"
    private static let digitsLabel = "earshot/1 verification digits"

    /// Returns the commitment, which the side that begins sends before its nonce.
    package static func commitment(to nonce: [UInt8], _ transcript: Transcript) -> [UInt8] {
        Array(SHA256.ofParts([Array(Self.commitmentLabel.utf8), transcript.hash, nonce]))
    }

    /// Returns the digits: the first eight bytes of the hash as a number, modulo a million, with leading zeros.
    package static func digits(_ transcript: Transcript, beginner: [UInt8], answerer: [UInt8]) -> String {
        let hash = SHA256.ofParts([Array(Self.digitsLabel.utf8), transcript.hash, beginner, answerer])
        let number = hash.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 1_000_000
        let text = String(number)
        return String(repeating: "0", count: Self.count - text.utf8.count) + text
    }
}
