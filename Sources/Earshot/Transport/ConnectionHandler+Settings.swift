package import EarshotWire

extension ConnectionHandler {
    /// What a connection needs to know from its beginning.
    package struct Settings: Sendable {
        package let role: HandshakeRole
        package let hello: Hello
        /// The peer that was dialled; any where `nil`.
        package let expectedPeer: PeerID?
        package let dialledAddress: PeerAddress?
        /// Who is not taken in plaintext, and where a peer that proves itself over TLS is noted.
        package let spokenTLS: SpokenTLS
        package let sign: @Sendable ([UInt8]) throws -> [UInt8]
        package let emit: @Sendable (ConnectionEvent) -> Void
        /// Called once, when the peer is proven or the connection has ended before.
        package let settled: @Sendable (Result<Void, EarshotError>) -> Void

        package init(
            role: HandshakeRole, hello: Hello, expectedPeer: PeerID?, dialledAddress: PeerAddress?, spokenTLS: SpokenTLS,
            sign: @escaping @Sendable ([UInt8]) throws -> [UInt8], emit: @escaping @Sendable (ConnectionEvent) -> Void,
            settled: @escaping @Sendable (Result<Void, EarshotError>) -> Void
        ) {
            self.role = role
            self.hello = hello
            self.expectedPeer = expectedPeer
            self.dialledAddress = dialledAddress
            self.spokenTLS = spokenTLS
            self.sign = sign
            self.emit = emit
            self.settled = settled
        }
    }
}
