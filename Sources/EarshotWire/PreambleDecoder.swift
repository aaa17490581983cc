package import NIOCore

/// Removes the preamble from the front of a connection, however its bytes arrive.
package struct PreambleDecoder: Sendable, Hashable {
    private var matched = 0

    package init() {}

    /// Consumes the part of the preamble in `buffer`. Returns `true` once the preamble is complete; the remaining bytes are frames.
    /// - Throws: `foreignPreamble` at the first byte that differs.
    package mutating func consume(_ buffer: inout ByteBuffer) throws(WireError) -> Bool {
        while self.matched < WireLimits.preamble.count {
            guard let byte = buffer.readInteger(as: UInt8.self) else { return false }
            guard byte == WireLimits.preamble[self.matched] else { throw .foreignPreamble }
            self.matched += 1
        }
        return true
    }
}
