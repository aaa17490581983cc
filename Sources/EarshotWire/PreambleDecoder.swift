package import NIOCore

/// Takes the preamble off the front of a connection, however its bytes arrive.
package struct PreambleDecoder: Sendable, Hashable {
    private var matched = 0

    package init() {}

    /// Consumes what of the preamble `buffer` holds; `true` once all of it has come, and what is left are frames.
    /// A byte that is not the preamble's throws at once.
    package mutating func consume(_ buffer: inout ByteBuffer) throws(WireError) -> Bool {
        while self.matched < WireLimits.preamble.count {
            guard let byte = buffer.readInteger(as: UInt8.self) else { return false }
            guard byte == WireLimits.preamble[self.matched] else { throw .foreignPreamble }
            self.matched += 1
        }
        return true
    }
}
