package import EarshotWire

/// A simulated signature: cheap, bound to the signed bytes and the key, and used such that no machine can sign for another.
package enum ToySignature {
    package static func sign(_ input: [UInt8], by publicKey: [UInt8]) -> [UInt8] {
        // FNV-1a with two bases, after the key.
        var halves: (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x9E37_79B9_7F4A_7C15)
        for byte in publicKey + [0] + input {
            halves.0 = (halves.0 ^ UInt64(byte)) &* 0x100_0000_01B3
            halves.1 = (halves.1 &+ UInt64(byte)) &* 0x100_0000_01B3
        }
        return [halves.0, halves.1].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
    }

    package static func isValid(_ check: ProofCheck) -> Bool { check.signature == self.sign(check.input, by: check.publicKey) }
}
