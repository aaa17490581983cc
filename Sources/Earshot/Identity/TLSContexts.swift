package import FoundationEssentials
import NIOCore
package import NIOSSL
import Synchronization

/// How this node speaks TLS: 1.3 only, mutual, certificates judged by their key (design section 3).
package struct TLSContexts: Sendable {
    private let server: NIOSSLContext
    private let client: NIOSSLContext
    private let authorities: CertificateAuthorities

    /// The schemes of TLS for the kinds of keys that there are; BoringSSL's own list has no Ed25519.
    private static let algorithms: [SignatureAlgorithm] = [
        .ecdsaSecp256R1Sha256, .ecdsaSecp384R1Sha384, .ed25519, .rsaPssRsaeSha256, .rsaPssRsaeSha384, .rsaPssRsaeSha512,
    ]

    package init(_ identity: Identity, authorities: CertificateAuthorities = CertificateAuthorities()) throws {
        let chain = identity.chain.map { NIOSSLCertificateSource.certificate($0) }
        var server = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(identity.tlsPrivateKey))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = chain
        client.privateKey = .privateKey(identity.tlsPrivateKey)
        self.server = try Self.context(&server)
        self.client = try Self.context(&client)
        self.authorities = authorities
    }

    private static func context(_ configuration: inout TLSConfiguration) throws -> NIOSSLContext {
        configuration.minimumTLSVersion = .tlsv13
        configuration.verifySignatureAlgorithms = Self.algorithms
        configuration.signingSignatureAlgorithms = Self.algorithms
        // With a callback of ours this makes the listener ask for the dialler's certificate.
        configuration.certificateVerification = .noHostnameVerification
        return try NIOSSLContext(configuration: configuration)
    }

    /// The listener's side of a connection; `voucher` learns what the authorities say of the other side.
    package func serverHandler(_ voucher: Voucher = Voucher()) -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: self.server, customVerificationCallback: self.judge(voucher))
    }

    /// The dialler's side.
    package func clientHandler(_ voucher: Voucher = Voucher()) throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: self.client, serverHostname: nil, customVerificationCallback: self.judge(voucher))
    }

    /// TLS itself checks that the other side holds its certificate's key (RFC 8446 section 4.4.3). Whose key it is, is judged
    /// after the hellos, which must name the same one; names and dates in a certificate say nothing of that. Whether an authority has
    /// signed it is noted on the side, and refuses nobody.
    private func judge(_ voucher: Voucher) -> @Sendable ([NIOSSLCertificate], EventLoopPromise<NIOSSLVerificationResult>) -> Void {
        let authorities = self.authorities
        return { certificates, promise in
            guard !certificates.isEmpty, !authorities.isEmpty else {
                promise.succeed(certificates.isEmpty ? .failed : .certificateVerified)
                return
            }
            // Beside the event loop; one a handshake, of which there are few, and none waits for anything.
            promise.completeWithTask {
                voucher.set(await authorities.vouch(for: certificates))
                return .certificateVerified
            }
        }
    }
}

/// What the authorities say of the certificate of one connection's other side.
package final class Voucher: Sendable {
    private let state = Mutex<Date?>(nil)

    package init() {}

    /// Until when an authority's word holds; `nil` where none has spoken for it.
    package var validUntil: Date? { self.state.withLock { $0 } }

    func set(_ date: Date?) { self.state.withLock { $0 = date } }
}
