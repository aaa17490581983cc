import EarshotWire
import NIOCore
import NIOEmbedded
import NIOTLS
import Testing

@testable import Earshot

/// Two peers dial each other at once: the slower connection is closed before it supersedes the existing one.
@Suite struct ConnectedPeersTests {
    private let bench: HandlerBench
    private let connectedPeers = ConnectedPeers()
    private let settled = Box<[String]>([])

    init() throws { self.bench = try HandlerBench() }

    /// Dials the bench's responder, and runs both sides until they are idle. Returns the result.
    private func dial(for purpose: ConnectionHandler.Purpose = .control) throws -> [String] {
        let identity = self.bench.initiator
        var hello = try makeHello(identity, "alice")
        hello.extensions = purpose.helloExtensions
        let settings = ConnectionHandler.Settings(
            role: .initiator, purpose: purpose, tickets: DataTickets(), hello: hello,
            expectedPeer: self.bench.responder.id, dialledAddress: nil, tlsPins: TLSPins(), connectedPeers: self.connectedPeers,
            sign: { try identity.sign($0) }, emit: { _ in },
            settled: { [settled] result in
                settled.withLock { words in
                    if case .failure(let error) = result { words.append(error.code.rawValue) } else { words.append("proven") }
                }
            })
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let key = self.bench.responder.publicKey
        try channel.pipeline.syncOperations.addHandler(
            ConnectionHandler(settings: settings, logger: quietLogger, security: .tls { _ in key }))
        channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: nil))
        var isSpeaking = true
        while isSpeaking {
            isSpeaking = false
            while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
                if bytes.readableBytes > 0 { try self.bench.channel.writeInbound(bytes) }
                isSpeaking = true
            }
            while let bytes = try self.bench.channel.readOutbound(as: ByteBuffer.self) {
                if bytes.readableBytes > 0 { try channel.writeInbound(bytes) }
                isSpeaking = true
            }
        }
        return self.settled.value
    }

    private func isProvenThere() -> Bool { self.bench.events.value.contains { if case .proven = $0 { true } else { false } } }

    @Test func nobodyIsConnected() throws {
        #expect(try self.dial() == ["proven"])
        #expect(self.isProvenThere())
    }

    @Test func thePeerWasFaster() throws {
        self.connectedPeers.note(.proven(try deadConnection(of: self.bench.responder.id, accounts: PeerAccounts())))
        #expect(try self.dial() == ["conflict"])
        #expect(!self.isProvenThere(), "it was given no proof that could supersede the other one")
    }

    /// A closing connection does not prevent a new one, and its end is counted once.
    @Test func whatIsOverIsNotInTheWay() throws {
        let connection = try deadConnection(of: self.bench.responder.id, accounts: PeerAccounts())
        self.connectedPeers.note(.proven(connection))
        self.connectedPeers.remove(connection)
        #expect(!self.connectedPeers.contains(self.bench.responder.id))
        let other = try deadConnection(of: self.bench.responder.id, accounts: PeerAccounts())
        self.connectedPeers.note(.proven(other))
        self.connectedPeers.note(.closed(connection, .lost))
        #expect(self.connectedPeers.contains(self.bench.responder.id))
        self.connectedPeers.note(.closed(other, .lost))
        #expect(try self.dial() == ["proven"])
    }

    /// A data connection is made in addition to the control connection.
    @Test func dataConnectionsGoBesideIt() throws {
        self.connectedPeers.note(.proven(try deadConnection(of: self.bench.responder.id, accounts: PeerAccounts())))
        let ticket = DataTicket(transfer: .random(), token: DataToken())
        #expect(try self.dial(for: .data(ticket, attached: { _ in })).first == "proven")
    }
}
