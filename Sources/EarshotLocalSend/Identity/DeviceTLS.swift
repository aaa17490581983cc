import Earshot
import EarshotCore
import EarshotWire
import NIOCore
import NIOSSL
import Synchronization

/// The TLS configuration of LocalSend: versions 1.2 and 1.3, and certificates that are known by their SHA-256 alone. The server asks for a
/// client's certificate and serves a client without one too. The client always shows its own, and can pin that of the server.
struct DeviceTLS: Sendable {
    private let server: NIOSSLContext
    private let client: NIOSSLContext
    /// The turns of handshakes on each loop, in both directions.
    private let turns: [ObjectIdentifier: HandshakeTurns]

    init(_ certificate: DeviceCertificate, on group: any EventLoopGroup) throws {
        self.turns = Dictionary(uniqueKeysWithValues: group.makeIterator().map { (ObjectIdentifier($0), HandshakeTurns(on: $0)) })
        let chain = [NIOSSLCertificateSource.certificate(certificate.certificate)]
        var server = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(certificate.key))
        // Requests a certificate without demanding one (SSL_VERIFY_PEER alone).
        server.certificateVerification = .optionalVerification
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = chain
        client.privateKey = .privateKey(certificate.key)
        client.certificateVerification = .noHostnameVerification
        self.server = try Self.context(&server)
        self.client = try Self.context(&client)
    }

    private static func context(_ configuration: inout TLSConfiguration) throws -> NIOSSLContext {
        configuration.minimumTLSVersion = .tlsv12
        // The callbacks replace the verification, so the system's authorities need not be loaded.
        configuration.trustRoots = .certificates([])
        configuration.shutdownTimeout = TimeAmount(EarshotLimits.closingTime)
        return try NIOSSLContext(configuration: configuration)
    }

    /// Returns the handler before TLS, which bounds the handshake and must be opened after it.
    func gate(on loop: any EventLoop) -> HandshakeGate {
        HandshakeGate(turns: self.turns[ObjectIdentifier(loop)] ?? HandshakeTurns(on: loop))
    }

    /// Returns the listener's handler for a connection. After the handshake, ``id(of:)`` returns the id of the other side.
    func serverHandler() -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: self.server) { certificates, promise in
            promise.succeed(Self.id(certificates) == nil ? .failed : .certificateVerified)
        }
    }

    /// Returns the dialler's handler for a connection. `proof` receives the other side's id, and fails the handshake if it is another one
    /// than expected.
    func clientHandler(_ proof: DeviceProof) throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: self.client, serverHostname: nil) { certificates, promise in
            promise.succeed(proof.take(Self.id(certificates)) ? .certificateVerified : .failed)
        }
    }

    /// Returns the id that the certificate of a completed handshake proves; `nil` if the other side has shown none. TLS has checked that
    /// the other side holds the certificate's key (RFC 8446 section 4.4.3).
    static func id(of handler: NIOSSLHandler) -> PeerID? {
        guard let certificate = handler.peerCertificate, let bytes = try? certificate.toDERBytes() else { return nil }
        return PeerID(deviceCertificate: bytes)
    }

    /// Returns the id of the first certificate; `nil` if there are more, or larger, certificates than any device has.
    private static func id(_ certificates: [NIOSSLCertificate]) -> PeerID? {
        guard (1...EarshotLimits.shownCertificates).contains(certificates.count),
            let chain = try? certificates.map({ try $0.toDERBytes() }), chain.reduce(0, { $0 + $1.count }) <= EarshotLimits.chainBytes,
            let first = chain.first
        else { return nil }
        return PeerID(deviceCertificate: first)
    }
}

/// The id that the server of one connection proves, compared with the expected one before a byte of a request is sent.
final class DeviceProof: Sendable {
    private struct State {
        var shown: PeerID?
        var isMismatch = false
    }

    private let expected: PeerID?
    private let state = Mutex(State())

    /// Creates the proof. Without an expected id, any device is accepted.
    init(expected: PeerID?) { self.expected = expected }

    /// The shown id, which TLS has proven once the handshake is complete.
    var shown: PeerID? { self.state.withLock { $0.shown } }
    /// Whether another device than the expected one has answered.
    var isMismatch: Bool { self.state.withLock { $0.isMismatch } }

    /// Records the shown id. Returns whether the handshake may continue.
    func take(_ id: PeerID?) -> Bool {
        self.state.withLock { state in
            state.shown = id
            state.isMismatch = id != nil && self.expected != nil && id != self.expected
            return id != nil && !state.isMismatch
        }
    }
}
