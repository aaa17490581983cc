package import EarshotWire
package import NIOCore

extension ConnectionHandler {
    /// What carries the frames.
    package enum Security {
        /// TLS, further forward in the pipeline; once it stands, `peerKey` reads the key of the other side's certificate.
        /// `validation` has what the other side has shown there.
        case tls(validation: CertificateValidation = CertificateValidation(), peerKey: (ChannelHandlerContext) -> [UInt8]?)
        case plaintext
    }

    /// What a connection is dialled for. Of one that comes in, its initiator's hello says it.
    package enum Purpose: Sendable {
        case control
        /// A data connection: the ticket that asks for it, and who takes it.
        case data(DataTicket, attached: @Sendable (DataConnection) -> Void)
    }

    /// What a connection needs to know from its beginning.
    package struct Settings: Sendable {
        package let role: HandshakeRole
        package let purpose: Purpose
        /// Which data connections may come in.
        package let tickets: DataTickets
        package let hello: Hello
        /// The peer that was dialled; any where `nil`.
        package let expectedPeer: PeerID?
        package let dialledAddress: PeerAddress?
        /// Who is not taken in plaintext, and where a peer that proves itself over TLS is noted.
        package let tlsPins: TLSPins
        /// With whom there is a connection already.
        package let connectedPeers: ConnectedPeers
        /// What peers make this machine hold.
        package let accounts: PeerAccounts
        /// Which turns the connections of the node's loop take.
        let turns: LoopTurns?
        package let sign: @Sendable ([UInt8]) throws -> [UInt8]
        package let emit: @Sendable (ConnectionEvent) -> Void
        /// Called once, when the peer is proven or the connection has ended before.
        package let settled: @Sendable (Result<Void, EarshotError>) -> Void

        package init(
            role: HandshakeRole, purpose: Purpose = .control, tickets: DataTickets, hello: Hello, expectedPeer: PeerID?,
            dialledAddress: PeerAddress?, tlsPins: TLSPins, connectedPeers: ConnectedPeers = ConnectedPeers(),
            accounts: PeerAccounts = PeerAccounts(), turns: LoopTurns? = nil,
            sign: @escaping @Sendable ([UInt8]) throws -> [UInt8], emit: @escaping @Sendable (ConnectionEvent) -> Void,
            settled: @escaping @Sendable (Result<Void, EarshotError>) -> Void
        ) {
            self.role = role
            self.purpose = purpose
            self.tickets = tickets
            self.hello = hello
            self.expectedPeer = expectedPeer
            self.dialledAddress = dialledAddress
            self.tlsPins = tlsPins
            self.connectedPeers = connectedPeers
            self.accounts = accounts
            self.turns = turns
            self.sign = sign
            self.emit = emit
            self.settled = settled
        }

        /// Whether both hellos say that streams may move to data connections.
        func reroutesStreams(with peer: ProvenPeer) -> Bool { self.shares(.streamReroute, with: peer) }

        /// Whether both hellos say that groups are known.
        func knowsGroups(with peer: ProvenPeer) -> Bool { self.shares(.groups, with: peer) }

        /// Whether both hellos say that files may be offered with their attributes.
        func takesAttributes(with peer: ProvenPeer) -> Bool { self.shares(.fileAttributes, with: peer) }

        private func shares(_ known: HelloExtension, with peer: ProvenPeer) -> Bool {
            [self.hello.extensions, peer.extensions].allSatisfy { $0.contains { $0.type == known.type } }
        }
    }

    /// The peer that has just proven itself, where this side dialled it for a control connection, and has one with it: by a proof of its own it
    /// would supersede that one. It did not know whom it dialled, or both dialled at once, and the peer was faster.
    func connectedPeer(_ outcome: Handshake.Outcome) -> PeerID? {
        guard self.settings.role == .initiator, case .control = self.settings.purpose, case .proven(let peer, _) = outcome,
            self.settings.connectedPeers.contains(peer.id)
        else { return nil }
        return peer.id
    }
}
