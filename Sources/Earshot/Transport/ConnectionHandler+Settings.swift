package import EarshotWire
package import NIOCore

extension ConnectionHandler {
    /// The protection of the transport.
    package enum Security {
        /// TLS, earlier in the pipeline. After its handshake, `peerKey` reads the key of the other side's certificate, and `validation`
        /// has the presented chain.
        case tls(validation: CertificateValidation = CertificateValidation(), peerKey: (ChannelHandlerContext) -> [UInt8]?)
        case plaintext
    }

    /// The purpose of a dialled connection. The initiator's hello tells the other side.
    package enum Purpose: Sendable {
        case control
        /// A data connection, with its ticket, and the function that receives it.
        case data(DataTicket, attached: @Sendable (DataConnection) -> Void)
    }

    /// The settings of a new connection.
    package struct Settings: Sendable {
        package let role: HandshakeRole
        package let purpose: Purpose
        /// The tickets of expected data connections.
        package let tickets: DataTickets
        package let hello: Hello
        /// The dialled peer; `nil` for any.
        package let expectedPeer: PeerID?
        package let dialledAddress: PeerAddress?
        /// The peers for which plaintext is refused. A peer that proves itself over TLS is added.
        package let tlsPins: TLSPins
        /// The peers with an existing connection.
        package let connectedPeers: ConnectedPeers
        /// The accounts of the peers.
        package let accounts: PeerAccounts
        /// The turns of the connections on the node's loop.
        let turns: LoopTurns?
        package let sign: @Sendable ([UInt8]) throws -> [UInt8]
        package let emit: @Sendable (ConnectionEvent) -> Void
        /// Called once, when the peer is proven or the connection has ended before that.
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

        /// Whether both hellos announce that streams may move to data connections.
        func reroutesStreams(with peer: ProvenPeer) -> Bool { self.shares(.streamReroute, with: peer) }

        /// Whether both hellos announce groups.
        func knowsGroups(with peer: ProvenPeer) -> Bool { self.shares(.groups, with: peer) }

        /// Whether both hellos announce file attributes in offers.
        func takesAttributes(with peer: ProvenPeer) -> Bool { self.shares(.fileAttributes, with: peer) }

        /// Whether both hellos announce messages that name the message to which they reply.
        func takesReplies(with peer: ProvenPeer) -> Bool { self.shares(.replies, with: peer) }

        private func shares(_ known: HelloExtension, with peer: ProvenPeer) -> Bool {
            self.hello.extensions.announce(known) && peer.extensions.announce(known)
        }
    }

    /// Returns the newly proven peer if this side has dialled it for a control connection, and already has one with it. This side's proof
    /// would supersede that connection. The case occurs if the dialled peer was unknown, or if both sides dialled at once and the peer was
    /// faster.
    func connectedPeer(_ outcome: Handshake.Outcome) -> PeerID? {
        guard self.settings.role == .initiator, case .control = self.settings.purpose, case .proven(let peer, _) = outcome,
            self.settings.connectedPeers.contains(peer.id)
        else { return nil }
        return peer.id
    }
}
