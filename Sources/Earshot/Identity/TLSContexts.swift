import NIOCore
package import NIOSSL

/// The node's TLS configuration: only version 1.3, mutual authentication, certificates judged by their key ("Keys and peer ids" in
/// EarshotWire's Handshake.md).
package struct TLSContexts: Sendable {
    private let server: NIOSSLContext
    private let client: NIOSSLContext

    /// The TLS schemes of the supported kinds of keys. BoringSSL's default list does not include Ed25519.
    private static let algorithms: [SignatureAlgorithm] = [
        .ecdsaSecp256R1Sha256, .ecdsaSecp384R1Sha384, .ed25519, .rsaPssRsaeSha256, .rsaPssRsaeSha384, .rsaPssRsaeSha512,
    ]

    package init(_ identity: Identity) throws {
        let chain = identity.chain.map { NIOSSLCertificateSource.certificate($0) }
        var server = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(identity.tlsPrivateKey))
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateChain = chain
        client.privateKey = .privateKey(identity.tlsPrivateKey)
        self.server = try Self.context(&server)
        self.client = try Self.context(&client)
    }

    private static func context(_ configuration: inout TLSConfiguration) throws -> NIOSSLContext {
        configuration.minimumTLSVersion = .tlsv13
        configuration.verifySignatureAlgorithms = Self.algorithms
        configuration.signingSignatureAlgorithms = Self.algorithms
        // With a custom callback, this setting makes the listener request the dialler's certificate.
        configuration.certificateVerification = .noHostnameVerification
        // This also determines how long the TLS state of a connection stays in memory after closing, if its peer has sent no close
        // notification.
        configuration.shutdownTimeout = TimeAmount(EarshotLimits.closingTime)
        return try NIOSSLContext(configuration: configuration)
    }

    /// Returns the listener's handler for a connection. `validation` receives the presented chain.
    package func serverHandler(_ validation: CertificateValidation = CertificateValidation()) -> NIOSSLServerHandler {
        NIOSSLServerHandler(context: self.server, customVerificationCallback: self.judge(validation))
    }

    /// Returns the dialler's handler for a connection.
    package func clientHandler(_ validation: CertificateValidation = CertificateValidation()) throws -> NIOSSLClientHandler {
        try NIOSSLClientHandler(context: self.client, serverHostname: nil, customVerificationCallback: self.judge(validation))
    }

    /// Returns the verification callback. TLS itself checks, after the callback, that the other side holds its certificate's key (RFC 8446
    /// section 4.4.3). The hellos must then name the same key; names and dates in a certificate are irrelevant for that. Whether an
    /// authority has signed the certificate is checked when the key is proven, and no connection is refused because of the result.
    private func judge(
        _ validation: CertificateValidation
    ) -> @Sendable ([NIOSSLCertificate], EventLoopPromise<NIOSSLVerificationResult>) -> Void {
        { certificates, promise in
            guard let chain = Self.chain(certificates) else { return promise.succeed(.failed) }
            validation.note(chain)
            promise.succeed(.certificateVerified)
        }
    }

    /// Returns the certificates in DER; `nil` if there are none, or more than any peer needs.
    private static func chain(_ certificates: [NIOSSLCertificate]) -> [[UInt8]]? {
        guard (1...EarshotLimits.shownCertificates).contains(certificates.count),
            let chain = try? certificates.map({ try $0.toDERBytes() }), chain.reduce(0, { $0 + $1.count }) <= EarshotLimits.chainBytes
        else { return nil }
        return chain
    }
}
